// Python's operators on template values: integers are exact to 64 bits and refused beyond, // and % round to
// minus infinity, / always gives a float, + joins and * repeats texts and lists.

#include <fmt/format.h>

#include <cmath>

#include "text/jinja/evaluator.h"

namespace wring::text::jinja {
namespace {

[[noreturn]] void fail_overflow() {
  fail_not_supported("the chat template computes an integer beyond 64 bits");
}

[[noreturn]] void fail_operands(std::string_view op, const Value& a, const Value& b) {
  fail(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", op, a.type(), b.type()));
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == -1) {
    if (a == INT64_MIN) fail_overflow();
    return -a;
  }
  const std::int64_t quotient = a / b;
  return quotient - (a % b != 0 && ((a % b < 0) != (b < 0)) ? 1 : 0);
}

std::int64_t floor_modulo(std::int64_t a, std::int64_t b) {
  if (b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest;
}

/// fmod with the divisor's sign, and the quotient that belongs to it, as CPython's float_divmod defines them.
std::pair<double, double> float_divmod(double a, double b) {
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0.0) {
    if ((b < 0) != (rest < 0)) {
      rest += b;
      quotient -= 1.0;
    }
  } else {
    rest = std::copysign(0.0, b);
  }
  if (quotient != 0.0) {
    const double whole = std::floor(quotient);
    quotient = quotient - whole > 0.5 ? whole + 1.0 : whole;
  } else {
    quotient = std::copysign(0.0, a / b);
  }
  return {quotient, rest};
}

Value integer_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  for (;;) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) fail_overflow();
    exponent >>= 1;
    if (exponent == 0) return Value(result);
    if (__builtin_mul_overflow(base, base, &base)) fail_overflow();
  }
}

Value float_operation(std::string_view op, double a, double b) {
  if (op == "+") return Value(a + b);
  if (op == "-") return Value(a - b);
  if (op == "*") return Value(a * b);
  if (op == "**") {
    if (a == 0.0 && b < 0.0) fail("0.0 cannot be raised to a negative power");
    if (a < 0.0 && b != std::floor(b) && std::isfinite(b))
      fail_not_supported("the chat template computes a complex number");
    const double power = std::pow(a, b);
    if (std::isinf(power) && std::isfinite(a) && std::isfinite(b)) fail("the result of ** is too large");
    return Value(power);
  }
  if (b == 0.0) fail("division by zero");
  if (op == "/") return Value(a / b);
  const auto [quotient, rest] = float_divmod(a, b);
  return Value(op == "//" ? quotient : rest);
}

}  // namespace

Value number_operation(std::string_view op, const Value& a, const Value& b) {
  if (a.is_float() || b.is_float() || op == "/") return float_operation(op, a.as_double(), b.as_double());
  const std::int64_t x = a.as_int();
  const std::int64_t y = b.as_int();
  std::int64_t result = 0;
  if (op == "+" && __builtin_add_overflow(x, y, &result)) fail_overflow();
  if (op == "-" && __builtin_sub_overflow(x, y, &result)) fail_overflow();
  if (op == "*" && __builtin_mul_overflow(x, y, &result)) fail_overflow();
  if (op == "**") return y < 0 ? float_operation(op, a.as_double(), b.as_double()) : integer_power(x, y);
  if (op == "//" || op == "%") {
    if (y == 0) fail("integer division or modulo by zero");
    result = op == "//" ? floor_divide(x, y) : floor_modulo(x, y);
  }
  return Value(result);
}

Value Evaluator::binary(std::string_view op, const Value& a, const Value& b) {
  if (a.is_undefined()) fail_undefined(a);
  if (op == "%" && a.is_text() && !a.is_safe_text()) {
    charge((a.weight() + b.weight()) / 16);
    return make_text(percent_format(a.text(), b));
  }
  if (b.is_undefined()) fail_undefined(b);
  if (a.is_number() && b.is_number()) return number_operation(op, a, b);
  if (a.is_safe_text() || b.is_safe_text()) {
    fail_not_supported(
        fmt::format("the chat template uses {} on a text marked safe, which Python escapes", op));
  }
  if (op == "+") return add(a, b);
  if (op == "*") return multiply(a, b);
  fail_operands(op, a, b);
}

Value Evaluator::add(const Value& a, const Value& b) {
  if (a.is_text() && b.is_text()) return make_text(a.text() + b.text());
  const SeqData* x = a.seq();
  const SeqData* y = b.seq();
  const auto is_tuple = [](const SeqData* s) {
    return s->kind == Sequence::kTuple || s->kind == Sequence::kGroup;
  };
  const bool lists = x != nullptr && y != nullptr && x->kind == Sequence::kList && y->kind == Sequence::kList;
  const bool tuples = x != nullptr && y != nullptr && is_tuple(x) && is_tuple(y);
  if (!lists && !tuples) fail_operands("+", a, b);
  charge(static_cast<std::int64_t>((x->items.size() + y->items.size()) / 32));
  std::vector<Value> items = x->items;
  items.insert(items.end(), y->items.begin(), y->items.end());
  return Value::sequence(lists ? Sequence::kList : Sequence::kTuple, std::move(items));
}

Value Evaluator::multiply(const Value& a, const Value& b) {
  if (b.is_integral()) return repeat(a, b.as_int());
  if (a.is_integral()) return repeat(b, a.as_int());
  fail_operands("*", a, b);
}

Value Evaluator::repeat(const Value& what, std::int64_t times) {
  times = std::max<std::int64_t>(times, 0);
  if (what.is_text()) {
    const std::string& text = what.text();
    const auto fitting = text.empty() ? INT64_MAX : static_cast<std::int64_t>(kMaxTextBytes / text.size());
    if (times > fitting) check_text_size(kMaxTextBytes + 1);
    if (text.size() == 1) return make_text(std::string(static_cast<std::size_t>(times), text[0]));
    std::string out;
    out.reserve(text.size() * static_cast<std::size_t>(times));
    for (std::int64_t i = 0; i < times && !text.empty(); ++i) out += text;
    return make_text(std::move(out));
  }
  const SeqData* seq = what.seq();
  if (seq == nullptr || seq->kind >= Sequence::kRange)
    fail(fmt::format("a {} cannot be repeated", what.type()));
  const auto size = static_cast<std::int64_t>(seq->items.size());
  if (size != 0 && times > kMaxValueWeight / size)
    fail(fmt::format("a list has more than {} items", kMaxValueWeight));
  charge(size * times / 32);
  std::vector<Value> items;
  for (std::int64_t i = 0; i < times && size != 0; ++i)
    items.insert(items.end(), seq->items.begin(), seq->items.end());
  return Value::sequence(seq->kind == Sequence::kList ? Sequence::kList : Sequence::kTuple, std::move(items));
}

}  // namespace wring::text::jinja
