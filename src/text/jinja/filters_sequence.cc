// Filters over sequences that keep their order. Those that Python makes generators give an Iterator here too:
// it can be gone through once, has no length and no index.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/jinja/evaluator.h"
#include "text/jinja/object.h"
#include "text/jinja/text.h"

namespace wring::text::jinja {
namespace {

Value length_filter(Evaluator& evaluator, const Value& input, Arguments arguments) {
  const Bound none("length", std::move(arguments), {});
  if (input.is_undefined()) return Value(std::int64_t{0});
  if (auto* loop = input.as<Loop>()) return Value(loop->length());
  std::size_t size = 0;
  if (input.is_text()) {
    evaluator.charge_bytes(input.text().size());
    size = length(input.text());
  } else if (const SeqData* seq = input.seq()) {
    size = seq->items.size();
  } else if (const DictData* dict = input.dict()) {
    size = dict->entries.size();
  } else {
    fail(fmt::format("object of type '{}' has no len()", input.type()));
  }
  return Value(static_cast<std::int64_t>(size));
}

Value first_filter(Evaluator& evaluator, const Value& input, Arguments arguments) {
  const Bound none("first", std::move(arguments), {});
  if (const SeqData* seq = input.seq(); seq != nullptr && !seq->items.empty()) return seq->items.front();
  if (auto* iterator = input.as<Iterator>()) {
    if (iterator->next < iterator->items.size()) return iterator->items[iterator->next++];
  } else {
    std::vector<Value> items = evaluator.items_of(input);
    if (!items.empty()) return std::move(items.front());
  }
  return Value::undefined("No first item, sequence was empty.");
}

Value last_filter(Evaluator& evaluator, const Value& input, Arguments arguments) {
  const Bound none("last", std::move(arguments), {});
  if (input.as<Iterator>() != nullptr) fail("'generator' object is not reversible");
  if (const SeqData* seq = input.seq(); seq != nullptr && !seq->items.empty()) return seq->items.back();
  std::vector<Value> items = evaluator.items_of(input);
  if (!items.empty()) return std::move(items.back());
  return Value::undefined("No last item, sequence was empty.");
}

Value list_filter(Evaluator& evaluator, const Value& input, Arguments arguments) {
  const Bound none("list", std::move(arguments), {});
  return Value::list(evaluator.items_of(input));
}

Value reverse_filter(Evaluator& evaluator, const Value& input, Arguments arguments) {
  const Bound none("reverse", std::move(arguments), {});
  std::vector<Value> items = evaluator.items_of(input);
  std::reverse(items.begin(), items.end());
  if (input.is_text()) {
    std::string out;
    for (const Value& item : items) out += item.text();
    return evaluator.make_text(std::move(out));
  }
  return input.as<Iterator>() != nullptr ? Value::list(std::move(items))
                                         : evaluator.make_iterator(std::move(items));
}

Value join_filter(Evaluator& evaluator, const Value& input, Arguments arguments) {
  const Bound bound("join", std::move(arguments), {"d", "attribute"});
  const std::string separator = bound.get(0) != nullptr ? to_text(bound.need(0)) : std::string();
  const Value* attribute = bound.get_not_none(1);
  std::string out;
  bool first = true;
  for (const Value& item : evaluator.items_of(input)) {
    if (!first) out += separator;
    first = false;
    if (attribute != nullptr) {
      out += to_text(evaluator.attribute_path(item, *attribute));
    } else {
      out += to_text(item);
    }
    evaluator.charge(item.weight() / 32);
    check_text_size(out.size());
  }
  return evaluator.make_text(std::move(out));
}

Value items_filter(Evaluator& evaluator, const Value& input, Arguments arguments) {
  const Bound none("items", std::move(arguments), {});
  if (input.is_undefined()) return evaluator.make_iterator({});
  if (input.dict() == nullptr) fail("Can only get item pairs from a mapping.");
  std::vector<Value> pairs;
  for (const auto& [key, value] : input.dict()->entries) pairs.push_back(Value::tuple({key, value}));
  evaluator.charge(static_cast<std::int64_t>(pairs.size() / 8));
  return evaluator.make_iterator(std::move(pairs));
}

Value map_filter(Evaluator& evaluator, const Value& input, Arguments arguments) {
  std::vector<Value> out;
  if (!input.truthy()) return evaluator.make_iterator({});  // none and 0 too
  auto& named = arguments.named;
  const auto by_attribute =
      std::find_if(named.begin(), named.end(), [](const auto& a) { return a.first == "attribute"; });
  if (arguments.positional.empty() && by_attribute != named.end()) {
    const Bound bound("map", std::move(arguments), {"attribute", "default"});
    const Value* fallback = bound.get_not_none(1);
    for (const Value& item : evaluator.items_of(input)) {
      evaluator.charge(1);
      out.push_back(evaluator.attribute_path(item, bound.need(0), fallback));
    }
    return evaluator.make_iterator(std::move(out));
  }
  if (arguments.positional.empty()) fail("map requires a filter argument");
  const Value name = arguments.positional.front();
  if (!name.is_text()) fail("map requires the name of a filter");
  arguments.positional.erase(arguments.positional.begin());
  for (const Value& item : evaluator.items_of(input)) {
    evaluator.charge(1);
    out.push_back(apply_filter(evaluator, name.text(), item, arguments));
  }
  return evaluator.make_iterator(std::move(out));
}

/// select, reject, selectattr, rejectattr: what the test says of the item or of its attribute.
template <bool kWanted, bool kByAttribute>
Value select_filter(Evaluator& evaluator, const Value& input, Arguments arguments) {
  std::vector<Value> out;
  if (!input.truthy()) return evaluator.make_iterator({});
  auto& given = arguments.positional;
  Value attribute;
  if constexpr (kByAttribute) {
    if (given.empty()) fail("Missing parameter for attribute name");
    attribute = given.front();
    given.erase(given.begin());
  }
  std::string test;
  const bool has_test = !given.empty();
  if (has_test) {
    if (!given.front().is_text() || !is_test(given.front().text()))
      fail(fmt::format("no test named {}", repr(given.front())));
    test = given.front().text();
    given.erase(given.begin());
  }
  for (const Value& item : evaluator.items_of(input)) {
    evaluator.charge(1);
    const Value subject = kByAttribute ? evaluator.attribute_path(item, attribute) : item;
    const bool holds = has_test ? apply_test(evaluator, test, subject, arguments) : subject.truthy();
    if (holds == kWanted) out.push_back(item);
  }
  return evaluator.make_iterator(std::move(out));
}

Value batch_filter(Evaluator& evaluator, const Value& input, Arguments arguments) {
  const Bound bound("batch", std::move(arguments), {"linecount", "fill_with"}, 1);
  const std::int64_t size = bound.integer(0, 0);
  const Value* fill = bound.get_not_none(1);
  if (size < 1 || size > kMaxValueWeight) fail("batch needs a positive size");
  std::vector<Value> out;
  std::vector<Value> row;
  for (const Value& item : evaluator.items_of(input)) {
    if (static_cast<std::int64_t>(row.size()) == size) out.push_back(Value::list(std::exchange(row, {})));
    row.push_back(item);
  }
  if (!row.empty()) {
    if (fill != nullptr) {
      evaluator.charge(size / 32);
      row.resize(static_cast<std::size_t>(size), *fill);
    }
    out.push_back(Value::list(std::move(row)));
  }
  return evaluator.make_iterator(std::move(out));
}

Value sum_filter(Evaluator& evaluator, const Value& input, Arguments arguments) {
  const Bound bound("sum", std::move(arguments), {"attribute", "start"});
  const Value* attribute = bound.get_not_none(0);
  Value total = bound.get(1) != nullptr ? bound.need(1) : Value(std::int64_t{0});
  if (total.is_text()) fail("sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value& item : evaluator.items_of(input)) {
    total = evaluator.binary("+", total,
                             attribute != nullptr ? evaluator.attribute_path(item, *attribute) : item);
  }
  return total;
}

constexpr auto kSequenceFilters = std::to_array<Filter>({{"length", length_filter},
                                                         {"count", length_filter},
                                                         {"first", first_filter},
                                                         {"last", last_filter},
                                                         {"list", list_filter},
                                                         {"reverse", reverse_filter},
                                                         {"join", join_filter},
                                                         {"items", items_filter},
                                                         {"map", map_filter},
                                                         {"select", select_filter<true, false>},
                                                         {"reject", select_filter<false, false>},
                                                         {"selectattr", select_filter<true, true>},
                                                         {"rejectattr", select_filter<false, true>},
                                                         {"batch", batch_filter},
                                                         {"sum", sum_filter}});

}  // namespace

std::span<const Filter> sequence_filters() {
  return kSequenceFilters;
}

}  // namespace wring::text::jinja
