// Python's str() and repr() of values: what {{ … }} prints, and how lists and dicts show their parts.

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "text/jinja/object.h"
#include "text/jinja/text.h"
#include "text/jinja/value.h"

namespace wring::text::jinja {
namespace {

void append_repr(std::string& out, const Value& v, int objects);

void append_items(std::string& out, const std::vector<Value>& items, int objects) {
  bool first = true;
  for (const Value& item : items) {
    if (!first) out += ", ";
    first = false;
    append_repr(out, item, objects);
  }
}

void append_sequence(std::string& out, const SeqData& s, int objects) {
  switch (s.kind) {
    case Sequence::kTuple:
    case Sequence::kGroup:
      out += '(';
      append_items(out, s.items, objects);
      out += s.items.size() == 1 ? ",)" : ")";
      return;
    case Sequence::kRange:
      out += s.step == 1 ? fmt::format("range({}, {})", s.start, s.stop)
                         : fmt::format("range({}, {}, {})", s.start, s.stop, s.step);
      return;
    case Sequence::kKeys:
      out += "dict_keys([";
      break;
    case Sequence::kValues:
      out += "dict_values([";
      break;
    case Sequence::kItems:
      out += "dict_items([";
      break;
    case Sequence::kList:
      out += '[';
      break;
  }
  append_items(out, s.items, objects);
  out += s.kind == Sequence::kList ? "]" : "])";
}

void append_dict(std::string& out, const std::vector<std::pair<Value, Value>>& entries, int objects) {
  out += '{';
  bool first = true;
  for (const auto& [key, value] : entries) {
    if (!first) out += ", ";
    first = false;
    append_repr(out, key, objects);
    out += ": ";
    append_repr(out, value, objects);
  }
  out += '}';
}

/// `objects`: how many namespaces stand around this one; they are the only values that can hold themselves.
void append_repr(std::string& out, const Value& v, int objects) {
  if (v.is_none()) {
    out += "None";
  } else if (v.is_undefined()) {
    out += "Undefined";
  } else if (v.is_bool()) {
    out += v.as_int() != 0 ? "True" : "False";
  } else if (v.is_int()) {
    out += fmt::format("{}", v.as_int());
  } else if (v.is_float()) {
    out += repr_float(v.as_double());
  } else if (v.is_text()) {
    out += v.is_safe_text() ? fmt::format("Markup({})", repr_text(v.text())) : repr_text(v.text());
  } else if (const SeqData* s = v.seq()) {
    append_sequence(out, *s, objects);
  } else if (const DictData* d = v.dict()) {
    append_dict(out, d->entries, objects);
  } else if (const auto* space = v.as<Namespace>()) {
    if (objects >= 4) fail("a namespace that is nested in namespaces has no text");
    std::vector<std::pair<Value, Value>> entries;
    for (const auto& [name, value] : space->attributes) entries.emplace_back(Value(name), value);
    out += "<Namespace ";
    append_dict(out, entries, objects + 1);
    out += '>';
  } else if (auto* loop = v.as<Loop>()) {
    out += fmt::format("<LoopContext {}/{}>", loop->index0 + 1, loop->length());
  } else {
    fail(fmt::format("a {} has no text to print", v.type()));
  }
}

}  // namespace

std::string repr_float(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d > 0 ? "inf" : "-inf";
  // The shortest digits that read back as d, laid out as Python does: an exponent below 1e-4 and from 1e16
  // on.
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::scientific).ptr;
  const std::string_view scientific(buffer, static_cast<std::size_t>(end - buffer));
  const std::size_t e = scientific.find('e');
  int exponent = 0;
  const char* digits_of_exponent = buffer + e + (scientific[e + 1] == '+' ? 2 : 1);
  std::from_chars(digits_of_exponent, end, exponent);
  if (exponent < -4 || exponent >= 16)
    return std::string(scientific);  // both write at least two digits of exponent
  const auto fixed_end = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::fixed).ptr;
  std::string fixed(buffer, fixed_end);
  if (fixed.find('.') == std::string::npos) fixed += ".0";
  return fixed;
}

std::string repr_text(std::string_view text) {
  const bool double_quotes =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = double_quotes ? '"' : '\'';
  std::string out(1, quote);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(text, at);
    if (c == static_cast<unsigned char>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out += text.substr(begin, at - begin);
    } else if (c < 0x100) {
      out += fmt::format("\\x{:02x}", static_cast<std::uint32_t>(c));
    } else if (c < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<std::uint32_t>(c));
    }
  }
  return out += quote;
}

std::string repr(const Value& v) {
  std::string out;
  append_repr(out, v, 0);
  return out;
}

std::string to_text(const Value& v) {
  if (v.is_text()) return v.text();
  if (v.is_undefined()) return {};
  return repr(v);
}

}  // namespace wring::text::jinja
