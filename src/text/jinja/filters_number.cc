// Filters around numbers and plain values: int, float, round, abs, default.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "text/jinja/evaluator.h"
#include "text/jinja/text.h"

namespace wring::text::jinja {
namespace {

/// Digits may be parted by single underscores, as in Python's literals; nothing else is stripped.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const auto is_alnum = [](char c) {
      return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
    };
    if (i == 0 || i + 1 == text.size() || !is_alnum(text[i - 1]) || !is_alnum(text[i + 1]))
      return std::nullopt;
  }
  return out;
}

/// Python's int(text, base).
std::optional<std::int64_t> parse_int(std::string_view text, int base) {
  text = strip(text, Side::kBoth);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const auto prefix = [&](char letter) {
    return text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == letter;
  };
  const int prefixed = prefix('x') ? 16 : (prefix('o') ? 8 : (prefix('b') ? 2 : 0));
  if (prefixed != 0 && (base == prefixed || base == 0)) {
    base = prefixed;
    text.remove_prefix(text[2] == '_' ? 3 : 2);
  } else if (base == 0) {
    base = 10;
    if (text.size() > 1 && text[0] == '0' && text.find_first_not_of("0_") != std::string_view::npos)
      return std::nullopt;
  }
  const auto digits = without_underscores(text);
  if (!digits || digits->empty() || digits->front() == '-') return std::nullopt;
  const std::string signed_digits = (negative ? "-" : "") + *digits;
  std::int64_t value = 0;
  const auto [end, error] =
      std::from_chars(signed_digits.data(), signed_digits.data() + signed_digits.size(), value, base);
  if (error == std::errc::result_out_of_range)
    fail_not_supported("the chat template reads an integer beyond 64 bits");
  if (error != std::errc() || end != signed_digits.data() + signed_digits.size()) return std::nullopt;
  return value;
}

/// Python's float(text).
std::optional<double> parse_float(std::string_view text) {
  const auto plain = without_underscores(strip(text, Side::kBoth));
  if (!plain || plain->empty()) return std::nullopt;
  const std::string word = lower(*plain);
  const std::string_view unsigned_word =
      std::string_view(word).substr(word[0] == '+' || word[0] == '-' ? 1 : 0);
  const bool is_word = unsigned_word == "inf" || unsigned_word == "infinity" || unsigned_word == "nan";
  if (!is_word && unsigned_word.find_first_not_of("0123456789.e+-") != std::string_view::npos)
    return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (end != word.c_str() + word.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> truncated(double d) {
  if (!std::isfinite(d)) return std::nullopt;
  if (!(std::fabs(d) < 9.2e18)) fail_not_supported("the chat template makes an integer beyond 64 bits");
  return static_cast<std::int64_t>(d);
}

Value int_filter(Evaluator&, const Value& input, Arguments arguments) {
  const Bound bound("int", std::move(arguments), {"default", "base"});
  const std::int64_t base = bound.integer(1, 10);
  if (base != 0 && (base < 2 || base > 36)) fail("int() base must be >= 2 and <= 36, or 0");
  if (input.is_undefined()) fail_undefined(input);
  std::optional<std::int64_t> value;
  if (input.is_integral()) {
    value = input.as_int();
  } else if (input.is_float()) {
    value = truncated(input.as_double());
  } else if (input.is_text()) {
    value = parse_int(input.text(), static_cast<int>(base));
    if (!value) {
      const auto real = parse_float(input.text());
      if (real) value = truncated(*real);
    }
  }
  if (value) return Value(*value);
  return bound.get(0) != nullptr ? bound.need(0) : Value(std::int64_t{0});
}

Value float_filter(Evaluator&, const Value& input, Arguments arguments) {
  const Bound bound("float", std::move(arguments), {"default"});
  if (input.is_undefined()) fail_undefined(input);
  if (input.is_number()) return Value(input.as_double());
  if (input.is_text()) {
    if (const auto value = parse_float(input.text())) return Value(*value);
  }
  return bound.get(0) != nullptr ? bound.need(0) : Value(0.0);
}

Value abs_filter(Evaluator&, const Value& input, Arguments arguments) {
  const Bound none("abs", std::move(arguments), {});
  if (!input.is_number()) fail(fmt::format("bad operand type for abs(): '{}'", input.type()));
  if (input.is_float()) return Value(std::fabs(input.as_double()));
  return input.as_int() < 0 ? number_operation("-", Value(std::int64_t{0}), input) : Value(input.as_int());
}

double power_of_ten(std::int64_t exponent) {
  return std::pow(10.0, static_cast<double>(exponent));
}

/// Python's round(): half to even on the exact decimal value. An integer stays one.
Value round_common(const Value& input, std::int64_t precision) {
  if (input.is_integral()) {
    if (precision < 0) fail_not_supported("the chat template rounds an integer to tens or more");
    return Value(input.as_int());
  }
  const double d = input.as_double();
  if (!std::isfinite(d) || precision > 300) return input;
  if (precision < 0) fail_not_supported("the chat template rounds to tens or more");
  return Value(std::strtod(fmt::format("{:.{}f}", d, precision).c_str(), nullptr));
}

Value round_filter(Evaluator&, const Value& input, Arguments arguments) {
  const Bound bound("round", std::move(arguments), {"precision", "method"});
  const std::string method = bound.get(1) != nullptr ? bound.text(1) : "common";
  const std::int64_t precision = bound.integer(0, 0);
  if (method != "common" && method != "ceil" && method != "floor")
    fail("round's method must be common, ceil or floor");
  if (!input.is_number()) fail(fmt::format("type {} doesn't define __round__ method", input.type()));
  if (method == "common") return round_common(input, precision);
  if (precision < -300 || precision > 300) fail("round's precision is out of range");
  const double scale = power_of_ten(precision);
  const double scaled = input.as_double() * scale;
  if (!std::isfinite(scaled)) fail("cannot round this number");
  return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

Value default_filter(Evaluator&, const Value& input, Arguments arguments) {
  const Bound bound("default", std::move(arguments), {"default_value", "boolean"});
  if (!input.is_undefined() && !(bound.truth(1, false) && !input.truthy())) return input;
  return bound.get(0) != nullptr ? bound.need(0) : Value(std::string());
}

constexpr auto kNumberFilters = std::to_array<Filter>({{"int", int_filter},
                                                       {"float", float_filter},
                                                       {"abs", abs_filter},
                                                       {"round", round_filter},
                                                       {"default", default_filter},
                                                       {"d", default_filter}});

}  // namespace

std::span<const Filter> number_filters() {
  return kNumberFilters;
}

}  // namespace wring::text::jinja
