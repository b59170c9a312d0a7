// tojson as Hugging Face defines it for chat templates: Python's json.dumps without HTML escaping. Models are
// trained on exactly these separators and escapes.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "text/jinja/evaluator.h"
#include "text/jinja/text.h"

namespace wring::text::jinja {
namespace {

class JsonWriter {
 public:
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";

  std::string write(const Value& v) {
    append(v, 0);
    return std::move(out_);
  }

 private:
  void append(const Value& v, int level) {
    check_text_size(out_.size());
    const SeqData* seq = v.seq();
    if (v.is_text()) {
      append_text(v.text());
    } else if (const DictData* dict = v.dict()) {
      append_dict(*dict, level);
    } else if (seq != nullptr && seq->kind < Sequence::kRange) {
      append_list(seq->items, level);
    } else {
      out_ += scalar(v);
    }
  }

  /// None, booleans and numbers; as a key they are put between quotes.
  static std::string scalar(const Value& v) {
    if (v.is_none()) return "null";
    if (v.is_bool()) return v.as_int() != 0 ? "true" : "false";
    if (v.is_int()) return fmt::format("{}", v.as_int());
    if (!v.is_float()) {
      fail(v.is_undefined()
               ? fmt::format("Object of type Undefined is not JSON serializable: {}", v.why_undefined())
               : fmt::format("Object of type {} is not JSON serializable", v.type()));
    }
    const double d = v.as_double();
    if (std::isnan(d)) return "NaN";
    if (std::isinf(d)) return d > 0 ? "Infinity" : "-Infinity";
    return repr_float(d);
  }

  void new_line(int level) {
    if (!indent) return;
    out_ += '\n';
    for (int i = 0; i < level; ++i) out_ += *indent;
  }

  void append_list(const std::vector<Value>& items, int level) {
    out_ += '[';
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += item_separator;
      new_line(level + 1);
      append(items[i], level + 1);
    }
    if (!items.empty()) new_line(level);
    out_ += ']';
  }

  void append_dict(const DictData& dict, int level) {
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (sort_keys) {
      std::stable_sort(entries.begin(), entries.end(),
                       [](const auto* a, const auto* b) { return compare(a->first, b->first, "<") < 0; });
    }
    out_ += '{';
    bool first = true;
    for (const auto* entry : entries) {
      if (!first) out_ += item_separator;
      first = false;
      new_line(level + 1);
      if (entry->first.is_text()) {
        append_text(entry->first.text());
      } else {
        if (!entry->first.is_number() && !entry->first.is_none()) {
          fail(fmt::format("keys must be str, int, float, bool or None, not {}", entry->first.type()));
        }
        append_text(scalar(entry->first));
      }
      out_ += key_separator;
      append(entry->second, level + 1);
    }
    if (!entries.empty()) new_line(level);
    out_ += '}';
  }

  void append_text(std::string_view text) {
    out_ += '"';
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = at;
      const char32_t c = next_code_point(text, at);
      constexpr std::string_view kShort = "\"\\\n\r\t\f\b";
      constexpr std::string_view kNames = "\"\\nrtfb";
      const std::size_t known = c < 0x80 ? kShort.find(static_cast<char>(c)) : std::string_view::npos;
      if (known != std::string_view::npos) {
        out_ += '\\';
        out_ += kNames[known];
      } else if (c < 0x20 || (ensure_ascii && c >= 0x7F && c < 0x10000)) {
        out_ += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c));
      } else if (ensure_ascii && c >= 0x10000) {
        const auto rest = static_cast<std::uint32_t>(c) - 0x10000U;
        out_ += fmt::format("\\u{:04x}\\u{:04x}", 0xD800U + (rest >> 10), 0xDC00U + (rest & 0x3FFU));
      } else {
        out_ += text.substr(begin, at - begin);
      }
    }
    out_ += '"';
  }

  std::string out_;
};

}  // namespace

Value to_json(Evaluator& evaluator, const Value& input, Arguments arguments) {
  const Bound bound("tojson", std::move(arguments), {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonWriter writer;
  writer.ensure_ascii = bound.truth(0, false);
  writer.sort_keys = bound.truth(3, false);
  if (const Value* indent = bound.get_not_none(1)) {
    if (indent->is_text()) {
      if (indent->text().size() > 100) fail("tojson indents by more than 100");
      writer.indent = indent->text();
    } else {
      const std::int64_t width = bound.integer(1, 0);
      if (width > 100) fail("tojson indents by more than 100");
      writer.indent = std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
    }
    writer.item_separator.assign(1, ',');
  }
  if (const Value* separators = bound.get_not_none(2)) {
    const std::vector<Value> two = evaluator.items_of(*separators);
    if (two.size() != 2 || !two[0].is_text() || !two[1].is_text())
      fail("tojson needs two texts as separators");
    writer.item_separator = two[0].text();
    writer.key_separator = two[1].text();
  }
  evaluator.charge(input.weight() / 8);
  return evaluator.make_text(writer.write(input));
}

}  // namespace wring::text::jinja
