// Tests, the words after `is`; select and its like take them by name.

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "text/jinja/evaluator.h"
#include "text/jinja/object.h"
#include "text/jinja/text.h"

namespace wring::text::jinja {
namespace {

struct Test {
  std::string_view name;
  int arguments;
  bool (*holds)(Evaluator&, const Value& v, const Value& other);
};

bool remainder_is(Evaluator& evaluator, const Value& v, const Value& by, std::int64_t wanted) {
  return equal(evaluator.binary("%", v, by), Value(wanted));
}

bool is_sequence(const Value& v) {
  if (v.is_undefined() || v.is_text() || v.dict() != nullptr) return true;
  return v.seq() != nullptr && v.seq()->kind < Sequence::kKeys;  // views have no index
}

bool is_iterable(const Value& v) {
  return v.is_undefined() || v.is_text() || v.dict() != nullptr || v.seq() != nullptr ||
         v.as<Iterator>() != nullptr || v.as<Loop>() != nullptr;
}

bool is_callable(const Value& v) {
  return v.method() != nullptr || v.builtin() != nullptr || v.as<Macro>() != nullptr ||
         v.as<Joiner>() != nullptr || v.as<Loop>() != nullptr || v.is_undefined();
}

/// Python's `is`, for the values that it can be asked of with a certain answer.
bool is_same(const Value& a, const Value& b) {
  if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
  if (a.is_bool() || b.is_bool()) return a.is_bool() && b.is_bool() && a.as_int() == b.as_int();
  if (a.object() != nullptr || b.object() != nullptr) return a.object() == b.object();
  fail_not_supported("the chat template asks whether two values are the same object");
}

template <int kLow, int kHigh>
bool ordered(const Value& a, const Value& b, std::string_view op) {
  const int order = compare(a, b, op);
  const auto is_nan = [](const Value& v) { return v.is_float() && std::isnan(v.as_double()); };
  return !is_nan(a) && !is_nan(b) && order >= kLow && order <= kHigh;
}

bool less(Evaluator&, const Value& a, const Value& b) {
  return ordered<-1, -1>(a, b, "<");
}
bool less_equal(Evaluator&, const Value& a, const Value& b) {
  return ordered<-1, 0>(a, b, "<=");
}
bool greater(Evaluator&, const Value& a, const Value& b) {
  return ordered<1, 1>(a, b, ">");
}
bool greater_equal(Evaluator&, const Value& a, const Value& b) {
  return ordered<0, 1>(a, b, ">=");
}
bool same(Evaluator& evaluator, const Value& a, const Value& b) {
  return evaluator.equals(a, b);
}
bool different(Evaluator& evaluator, const Value& a, const Value& b) {
  return !evaluator.equals(a, b);
}

using E = Evaluator;
using V = const Value;

constexpr auto kTests = std::to_array<Test>({
    {"defined", 0, [](E&, V& v, V&) { return !v.is_undefined(); }},
    {"undefined", 0, [](E&, V& v, V&) { return v.is_undefined(); }},
    {"none", 0, [](E&, V& v, V&) { return v.is_none(); }},
    {"boolean", 0, [](E&, V& v, V&) { return v.is_bool(); }},
    {"true", 0, [](E&, V& v, V&) { return v.is_bool() && v.as_int() == 1; }},
    {"false", 0, [](E&, V& v, V&) { return v.is_bool() && v.as_int() == 0; }},
    {"integer", 0, [](E&, V& v, V&) { return v.is_int(); }},
    {"float", 0, [](E&, V& v, V&) { return v.is_float(); }},
    {"number", 0, [](E&, V& v, V&) { return v.is_number(); }},
    {"string", 0, [](E&, V& v, V&) { return v.is_text(); }},
    {"mapping", 0, [](E&, V& v, V&) { return v.dict() != nullptr; }},
    {"sequence", 0, [](E&, V& v, V&) { return is_sequence(v); }},
    {"iterable", 0, [](E&, V& v, V&) { return is_iterable(v); }},
    {"callable", 0, [](E&, V& v, V&) { return is_callable(v); }},
    {"escaped", 0, [](E&, V& v, V&) { return v.is_safe_text(); }},
    {"odd", 0, [](E& e, V& v, V&) { return remainder_is(e, v, Value(std::int64_t{2}), 1); }},
    {"even", 0, [](E& e, V& v, V&) { return remainder_is(e, v, Value(std::int64_t{2}), 0); }},
    {"divisibleby", 1, [](E& e, V& v, V& by) { return remainder_is(e, v, by, 0); }},
    {"lower", 0, [](E&, V& v, V&) { return has_only_case(to_text(v), true); }},
    {"upper", 0, [](E&, V& v, V&) { return has_only_case(to_text(v), false); }},
    {"in", 1, [](E& e, V& v, V& container) { return e.contains(container, v); }},
    {"sameas", 1, [](E&, V& v, V& other) { return is_same(v, other); }},
    {"filter", 0, [](E&, V& v, V&) { return v.is_text() && is_filter(v.text()); }},
    {"test", 0, [](E&, V& v, V&) { return v.is_text() && is_test(v.text()); }},
    {"eq", 1, same},
    {"equalto", 1, same},
    {"==", 1, same},
    {"ne", 1, different},
    {"!=", 1, different},
    {"lt", 1, less},
    {"lessthan", 1, less},
    {"<", 1, less},
    {"le", 1, less_equal},
    {"<=", 1, less_equal},
    {"gt", 1, greater},
    {"greaterthan", 1, greater},
    {">", 1, greater},
    {"ge", 1, greater_equal},
    {">=", 1, greater_equal},
});

const Test* find_test(std::string_view name) {
  for (const Test& test : kTests) {
    if (test.name == name) return &test;
  }
  return nullptr;
}

}  // namespace

bool is_test(std::string_view name) {
  return find_test(name) != nullptr;
}

bool apply_test(Evaluator& evaluator, std::string_view name, const Value& input, Arguments arguments) {
  const Test* test = find_test(name);
  if (test == nullptr) fail(fmt::format("no test named '{}'", name));
  if (!arguments.named.empty() || arguments.positional.size() != static_cast<std::size_t>(test->arguments)) {
    fail(fmt::format("the test '{}' takes {} argument(s)", name, test->arguments));
  }
  const Value none;
  const Value& other = arguments.positional.empty() ? none : arguments.positional[0];
  if (test->arguments == 1 && test->name != "in")
    evaluator.charge(std::min(input.weight(), other.weight()) / 32);
  if (input.is_text()) evaluator.charge_bytes(input.text().size() / 64);
  return test->holds(evaluator, input, other);
}

}  // namespace wring::text::jinja
