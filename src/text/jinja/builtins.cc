// Global functions: what Jinja and Hugging Face's chat templates put into every template.

#include <fmt/format.h>

#include <array>
#include <ctime>

#include "text/jinja/evaluator.h"

namespace wring::text::jinja {
namespace {

constexpr std::int64_t kMaxRange = 100'000;  // Jinja's sandbox has the same limit

Value make_range(Arguments arguments) {
  const Bound bound("range", std::move(arguments), {"start", "stop", "step"}, 1);
  std::int64_t start = bound.integer(0, 0);
  std::int64_t stop = bound.integer(1, 0);
  const std::int64_t step = bound.integer(2, 1);
  if (bound.get(1) == nullptr) {
    stop = start;
    start = 0;
  }
  if (step == 0) fail("range() arg 3 must not be zero");
  // In 128 bits neither the distance nor its negation overflows.
  const __int128 distance = static_cast<__int128>(stop) - start;
  const __int128 wide_step = step;
  __int128 count = 0;
  if (step > 0 && distance > 0) count = (distance - 1) / wide_step + 1;
  if (step < 0 && distance < 0) count = (-distance - 1) / -wide_step + 1;
  if (count > kMaxRange) fail(fmt::format("range too big: more than {} items", kMaxRange));
  return Value::range(start, stop, step, static_cast<std::int64_t>(count));
}

/// The entries of dict(…) and namespace(…): a mapping or pairs, then keywords.
std::vector<std::pair<Value, Value>> make_entries(Evaluator& evaluator, std::string_view callee,
                                                  Arguments arguments) {
  std::vector<std::pair<Value, Value>> entries;
  if (arguments.positional.size() > 1) fail(fmt::format("{} expected at most 1 argument", callee));
  if (!arguments.positional.empty()) {
    const Value& from = arguments.positional[0];
    if (const DictData* dict = from.dict()) {
      entries = dict->entries;
    } else {
      for (const Value& pair : evaluator.items_of(from)) {
        std::vector<Value> parts = evaluator.items_of(pair);
        if (parts.size() != 2) fail(fmt::format("{} needs pairs of a key and a value", callee));
        entries.emplace_back(std::move(parts[0]), std::move(parts[1]));
      }
    }
  }
  for (auto& [name, value] : arguments.named) entries.emplace_back(Value(name), std::move(value));
  const auto size = static_cast<std::int64_t>(entries.size());
  evaluator.charge(size * size / 64);
  return entries;
}

Value make_namespace(Evaluator& evaluator, Arguments arguments) {
  const Value all = Value::dict(make_entries(evaluator, "namespace", std::move(arguments)));
  auto* space = evaluator.heap().make<Namespace>();
  for (const auto& [key, value] : all.dict()->entries) {
    if (!key.is_text()) fail("a namespace's names must be texts");
    if (key.text().starts_with('_')) {
      fail(fmt::format("a namespace's attribute may not begin with an underscore: {}", key.text()));
    }
    space->set(key.text(), value);
  }
  return Value(space);
}

/// datetime.now().strftime(format): local time without a zone, and no microseconds here.
Value strftime_now(Evaluator& evaluator, Arguments arguments) {
  const Bound bound("strftime_now", std::move(arguments), {"format"}, 1);
  const std::string& format = bound.text(0);
  if (format.size() > 200 || format.find('\0') != std::string::npos)
    fail("strftime_now() has a format it cannot use");
  std::string c_format;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      c_format += format[i];
      continue;
    }
    const char kind = format[++i];
    if (kind == 'f') {
      c_format += "000000";
    } else if (kind != 'z' && kind != 'Z') {
      c_format += '%';
      c_format += kind;
    }
  }
  if (c_format.empty()) return Value(std::string());
  const std::time_t now = evaluator.now();
  std::tm local{};
  localtime_r(&now, &local);
  c_format += '.';  // so that an empty result differs from a failure
  std::array<char, 4096> buffer{};
  const std::size_t size = std::strftime(buffer.data(), buffer.size(), c_format.c_str(), &local);
  if (size == 0) fail("strftime_now() has a format it cannot use");
  return Value(std::string(buffer.data(), size - 1));
}

}  // namespace

const Builtin* find_builtin(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, Builtin>, 7> kAll = {
      {{"range", Builtin::kRange},
       {"dict", Builtin::kDict},
       {"namespace", Builtin::kNamespace},
       {"raise_exception", Builtin::kRaiseException},
       {"strftime_now", Builtin::kStrftimeNow},
       {"cycler", Builtin::kCycler},
       {"joiner", Builtin::kJoiner}}};
  for (const auto& [known, function] : kAll) {
    if (known == name) return &function;
  }
  return nullptr;
}

Value call_builtin(Evaluator& evaluator, Builtin function, Arguments arguments) {
  switch (function) {
    case Builtin::kRange: {
      Value range = make_range(std::move(arguments));
      evaluator.charge(range.weight() / 32);
      return range;
    }
    case Builtin::kDict:
      return Value::dict(make_entries(evaluator, "dict", std::move(arguments)));
    case Builtin::kNamespace:
      return make_namespace(evaluator, std::move(arguments));
    case Builtin::kRaiseException: {
      const Bound bound("raise_exception", std::move(arguments), {"message"}, 1);
      fail(fmt::format("the chat template refuses its input: {}", to_text(bound.need(0))));
    }
    case Builtin::kStrftimeNow:
      return strftime_now(evaluator, std::move(arguments));
    case Builtin::kCycler: {
      if (arguments.positional.empty() || !arguments.named.empty()) fail("cycler() needs at least one item");
      auto* cycler = evaluator.heap().make<Cycler>();
      cycler->items = std::move(arguments.positional);
      return Value(cycler);
    }
    case Builtin::kJoiner: {
      const Bound bound("joiner", std::move(arguments), {"sep"});
      auto* joiner = evaluator.heap().make<Joiner>();
      joiner->separator = bound.get(0) != nullptr ? bound.need(0) : Value(std::string(", "));
      return Value(joiner);
    }
  }
  return Value();
}

}  // namespace wring::text::jinja
