// Methods of lists, dicts, tuples and cyclers, and which names are methods at all: an attribute that is one
// hides a dict's key of that name, and one that would change its object is undefined in the sandbox.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/jinja/evaluator.h"
#include "text/jinja/object.h"

namespace wring::text::jinja {
namespace {

using Names = std::initializer_list<std::string_view>;

bool is_in(std::string_view name, Names names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_text_method(std::string_view name) {
  return is_in(
      name,
      {"capitalize", "casefold",     "center",       "count",   "encode",     "endswith",    "expandtabs",
       "find",       "format",       "format_map",   "index",   "isalnum",    "isalpha",     "isascii",
       "isdecimal",  "isdigit",      "isidentifier", "islower", "isnumeric",  "isprintable", "isspace",
       "istitle",    "isupper",      "join",         "ljust",   "lower",      "lstrip",      "maketrans",
       "partition",  "removeprefix", "removesuffix", "replace", "rfind",      "rindex",      "rjust",
       "rpartition", "rsplit",       "rstrip",       "split",   "splitlines", "startswith",  "strip",
       "swapcase",   "title",        "translate",    "upper",   "zfill"});
}

Value dict_method(Evaluator& evaluator, const Value& self, std::string_view name, Arguments arguments) {
  const DictData& dict = *self.dict();
  if (name == "get") {
    const Bound bound("get", std::move(arguments), {"key", "default"}, 1);
    evaluator.charge(static_cast<std::int64_t>(dict.entries.size() / 64));
    if (!hashable(bound.need(0))) fail(fmt::format("unhashable type: '{}'", bound.need(0).type()));
    const Value* found = dict.find(bound.need(0));
    if (found != nullptr) return *found;
    return bound.get(1) != nullptr ? bound.need(1) : Value();
  }
  const Bound none(name, std::move(arguments), {});
  evaluator.charge(static_cast<std::int64_t>(dict.entries.size() / 8));
  if (name == "copy") return self;
  std::vector<Value> out;
  for (const auto& [key, value] : dict.entries) {
    out.push_back(name == "items" ? Value::tuple({key, value}) : (name == "keys" ? key : value));
  }
  if (name == "items") return Value::sequence(Sequence::kItems, std::move(out));
  if (name == "keys") return Value::sequence(Sequence::kKeys, std::move(out));
  if (name == "values") return Value::sequence(Sequence::kValues, std::move(out));
  fail_not_supported(fmt::format("the chat template uses the method '{}' of a dict", name));
}

Value sequence_method(Evaluator& evaluator, const Value& self, std::string_view name, Arguments arguments) {
  const std::vector<Value>& items = self.seq()->items;
  if (name == "copy") {
    const Bound none("copy", std::move(arguments), {});
    return self;
  }
  const Bound bound(name, std::move(arguments), {"value"}, 1);
  evaluator.charge(static_cast<std::int64_t>(items.size() / 32));
  std::int64_t count = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!evaluator.equals(items[i], bound.need(0))) continue;
    if (name == "index") return Value(static_cast<std::int64_t>(i));
    ++count;
  }
  if (name == "index") fail(fmt::format("{} is not in the list", repr(bound.need(0))));
  return Value(count);
}

Value cycler_method(Cycler& cycler, std::string_view name, Arguments arguments) {
  const Bound none(name, std::move(arguments), {});
  if (name == "reset") {
    cycler.at = 0;
    return Value();
  }
  const Value item = cycler.items[cycler.at];
  cycler.at = (cycler.at + 1) % cycler.items.size();
  return item;
}

Value loop_method(Evaluator& evaluator, Loop& loop, std::string_view name, Arguments arguments) {
  if (!arguments.named.empty()) fail(fmt::format("{}() takes no keyword arguments", name));
  std::vector<Value>& values = arguments.positional;
  if (name == "cycle") {
    if (values.empty()) fail("no items for cycling given");
    return values[static_cast<std::size_t>(loop.index0) % values.size()];
  }
  const Value given = Value::tuple(std::move(values));
  const bool changed = !loop.changed_value || !evaluator.equals(*loop.changed_value, given);
  loop.changed_value = given;
  return Value(changed);
}

}  // namespace

bool has_method(const Value& self, std::string_view name) {
  if (self.is_text()) return is_text_method(name);
  if (self.dict() != nullptr) {
    return is_in(name, {"clear", "copy", "fromkeys", "get", "items", "keys", "pop", "popitem", "setdefault",
                        "update", "values"});
  }
  if (const SeqData* seq = self.seq()) {
    if (seq->kind >= Sequence::kKeys) return false;
    if (is_in(name, {"count", "index"})) return true;
    return seq->kind == Sequence::kList &&
           is_in(name, {"append", "clear", "copy", "extend", "insert", "pop", "remove", "reverse", "sort"});
  }
  if (self.as<Cycler>() != nullptr) return is_in(name, {"next", "reset"});
  if (self.as<Loop>() != nullptr) return is_in(name, {"cycle", "changed"});
  return false;
}

bool is_changing_method(const Value& self, std::string_view name) {
  if (self.dict() != nullptr) return is_in(name, {"clear", "pop", "popitem", "setdefault", "update"});
  return self.seq() != nullptr && !is_in(name, {"count", "index", "copy"});
}

Value call_method(Evaluator& evaluator, const MethodData& method, Arguments arguments) {
  const Value& self = method.self;
  if (self.is_text()) {
    if (self.is_safe_text()) fail_not_supported("the chat template calls a method of a text marked safe");
    return call_text_method(evaluator, self.text(), method.name, std::move(arguments));
  }
  if (self.dict() != nullptr) return dict_method(evaluator, self, method.name, std::move(arguments));
  if (self.seq() != nullptr) return sequence_method(evaluator, self, method.name, std::move(arguments));
  if (auto* cycler = self.as<Cycler>()) return cycler_method(*cycler, method.name, std::move(arguments));
  return loop_method(evaluator, *self.as<Loop>(), method.name, std::move(arguments));
}

}  // namespace wring::text::jinja
