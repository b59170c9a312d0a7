// Filters that take and give text. Python's soft_str turns the input into text first; a text that is marked
// safe stays so.

#include <fmt/format.h>

#include <array>

#include "text/jinja/evaluator.h"
#include "text/jinja/text.h"

namespace wring::text::jinja {
namespace {

std::string input_text(Evaluator& evaluator, const Value& input) {
  if (!input.is_text()) evaluator.charge(input.weight() / 32);
  return to_text(input);
}

template <std::string (*kMap)(std::string_view)>
Value mapped(Evaluator& evaluator, const Value& input, Arguments arguments) {
  const Bound none("a filter without parameters", std::move(arguments), {});
  const std::string text = input_text(evaluator, input);
  evaluator.charge(static_cast<std::int64_t>(text.size() / 32));
  return evaluator.make_text(kMap(text), input.is_safe_text());
}

Value trim(Evaluator& evaluator, const Value& input, Arguments arguments) {
  const Bound bound("trim", std::move(arguments), {"chars"});
  const std::string text = input_text(evaluator, input);
  std::optional<std::string_view> chars;
  if (bound.get_not_none(0) != nullptr) chars = bound.text(0);
  if (chars) evaluator.charge_search(text.size(), chars->size());
  return evaluator.make_text(std::string(strip(text, Side::kBoth, chars)), input.is_safe_text());
}

Value to_string(Evaluator& evaluator, const Value& input, Arguments arguments) {
  const Bound none("string", std::move(arguments), {});
  return input.is_text() ? input : evaluator.make_text(input_text(evaluator, input));
}

Value mark_safe(Evaluator& evaluator, const Value& input, Arguments arguments) {
  const Bound none("safe", std::move(arguments), {});
  return evaluator.make_text(input_text(evaluator, input), true);
}

Value escape(Evaluator& evaluator, const Value& input, Arguments arguments) {
  const Bound none("escape", std::move(arguments), {});
  if (input.is_safe_text()) return input;
  std::string out;
  for (const char c : input_text(evaluator, input)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return evaluator.make_text(std::move(out), true);
}

Value replace_filter(Evaluator& evaluator, const Value& input, Arguments arguments) {
  const Bound bound("replace", std::move(arguments), {"old", "new", "count"}, 2);
  const std::int64_t count = bound.get_not_none(2) != nullptr ? bound.integer(2, -1) : -1;
  return replace_text(evaluator, input_text(evaluator, input), to_text(bound.need(0)), to_text(bound.need(1)),
                      count);
}

Value indent(Evaluator& evaluator, const Value& input, Arguments arguments) {
  const Bound bound("indent", std::move(arguments), {"width", "first", "blank"});
  if (input.is_undefined()) fail_undefined(input);
  if (!input.is_text()) fail(fmt::format("indent needs a str, not {}", input.type()));
  std::string indention;
  if (bound.get(0) != nullptr && bound.need(0).is_text()) {
    indention = bound.text(0);
  } else {
    const std::int64_t width = std::max<std::int64_t>(bound.integer(0, 4), 0);
    check_text_size(static_cast<std::size_t>(width));
    indention.assign(static_cast<std::size_t>(width), ' ');
  }
  const bool first = bound.truth(1, false);
  const bool blank = bound.truth(2, false);
  const std::vector<std::string> lines = split_lines(input.text() + "\n", false);
  evaluator.charge(static_cast<std::int64_t>(lines.size() / 16));
  if (!indention.empty() && lines.size() > kMaxTextBytes / indention.size())
    check_text_size(kMaxTextBytes + 1);
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    if (i == 0 ? first : (blank || !lines[i].empty())) out += indention;
    out += lines[i];
  }
  return evaluator.make_text(std::move(out), input.is_safe_text());
}

Value format_filter(Evaluator& evaluator, const Value& input, Arguments arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty()) {
    fail("format cannot handle positional and keyword arguments at the same time");
  }
  const std::string format = input_text(evaluator, input);
  if (arguments.named.empty()) {
    return evaluator.make_text(percent_format(format, Value::tuple(std::move(arguments.positional))));
  }
  std::vector<std::pair<Value, Value>> entries;
  for (auto& [name, value] : arguments.named) entries.emplace_back(Value(name), std::move(value));
  return evaluator.make_text(percent_format(format, Value::dict(std::move(entries))));
}

Value tojson(Evaluator& evaluator, const Value& input, Arguments arguments) {
  return to_json(evaluator, input, std::move(arguments));
}

constexpr auto kTextFilters = std::to_array<Filter>({{"trim", trim},
                                                     {"upper", mapped<upper>},
                                                     {"lower", mapped<lower>},
                                                     {"title", mapped<title_words>},
                                                     {"capitalize", mapped<capitalize>},
                                                     {"string", to_string},
                                                     {"safe", mark_safe},
                                                     {"escape", escape},
                                                     {"e", escape},
                                                     {"replace", replace_filter},
                                                     {"indent", indent},
                                                     {"format", format_filter},
                                                     {"tojson", tojson}});

}  // namespace

std::span<const Filter> text_filters() {
  return kTextFilters;
}

Value replace_text(Evaluator& evaluator, const std::string& text, const std::string& old_text,
                   const std::string& new_text, std::int64_t limit) {
  evaluator.charge_search(text.size(), old_text.size());
  std::size_t count = 0;
  if (old_text.empty()) {
    count = length(text) + 1;
  } else {
    for (std::size_t at = text.find(old_text); at != std::string::npos;
         at = text.find(old_text, at + old_text.size()))
      ++count;
  }
  if (limit >= 0) count = std::min(count, static_cast<std::size_t>(limit));
  if (!new_text.empty() && count > kMaxTextBytes / new_text.size()) check_text_size(kMaxTextBytes + 1);
  return evaluator.make_text(replace(text, old_text, new_text, limit));
}

}  // namespace wring::text::jinja
