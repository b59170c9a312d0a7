// Filters that compare items: sort, dictsort, unique, min, max, groupby. Texts compare without case unless
// asked.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "text/jinja/evaluator.h"
#include "text/jinja/text.h"

namespace wring::text::jinja {
namespace {

struct Keyed {
  Value key, item;
};

Value folded(const Value& v, bool case_sensitive) {
  return v.is_text() && !case_sensitive ? Value(lower(v.text())) : v;
}

void charge_sort(Evaluator& evaluator, const std::vector<Keyed>& all) {
  std::int64_t weight = 0;
  for (const Keyed& entry : all) weight += entry.key.weight();
  evaluator.charge(weight / 2);
}

void sort_by_key(std::vector<Keyed>& all, bool reverse) {
  // A merge of its own rules out what an inconsistent order (NaN) could do to std::sort; Python's is stable
  // in both directions.
  std::vector<Keyed> buffer(all.size());
  for (std::size_t width = 1; width < all.size(); width *= 2) {
    for (std::size_t low = 0; low < all.size(); low += 2 * width) {
      const std::size_t middle = std::min(low + width, all.size());
      const std::size_t high = std::min(low + 2 * width, all.size());
      std::size_t left = low;
      std::size_t right = middle;
      for (std::size_t to = low; to < high; ++to) {
        bool take_right = left == middle;
        if (!take_right && right < high) {
          const int order = compare(all[right].key, all[left].key, "<");
          take_right = reverse ? order > 0 : order < 0;
        }
        buffer[to] = std::move(all[take_right ? right++ : left++]);
      }
    }
    all.swap(buffer);
  }
}

/// Each item with its key: the attribute, or attributes parted by commas if `several`.
std::vector<Keyed> keyed_items(Evaluator& evaluator, const Value& input, const Value* attribute,
                               bool case_sensitive, bool several, const Value* fallback = nullptr) {
  std::vector<Keyed> out;
  std::vector<std::string> paths;
  if (several && attribute != nullptr && attribute->is_text())
    paths = split(attribute->text(), ",", -1, false);
  for (Value& item : evaluator.items_of(input)) {
    evaluator.charge(1);
    Value key;
    if (!paths.empty()) {
      std::vector<Value> parts;
      for (const std::string& path : paths) {
        parts.push_back(folded(evaluator.attribute_path(item, Value(path)), case_sensitive));
      }
      key = Value::list(std::move(parts));
    } else {
      key = attribute != nullptr ? evaluator.attribute_path(item, *attribute, fallback) : item;
      key = folded(key, case_sensitive);
    }
    out.push_back({std::move(key), std::move(item)});
  }
  charge_sort(evaluator, out);
  return out;
}

Value sort_filter(Evaluator& evaluator, const Value& input, Arguments arguments) {
  const Bound bound("sort", std::move(arguments), {"reverse", "case_sensitive", "attribute"});
  std::vector<Keyed> all = keyed_items(evaluator, input, bound.get_not_none(2), bound.truth(1, false), true);
  sort_by_key(all, bound.truth(0, false));
  std::vector<Value> out;
  for (Keyed& entry : all) out.push_back(std::move(entry.item));
  return Value::list(std::move(out));
}

Value dictsort_filter(Evaluator& evaluator, const Value& input, Arguments arguments) {
  const Bound bound("dictsort", std::move(arguments), {"case_sensitive", "by", "reverse"});
  const std::string by = bound.get(1) != nullptr ? bound.text(1) : "key";
  if (by != "key" && by != "value") fail("dictsort sorts by either \"key\" or \"value\"");
  if (input.is_undefined()) fail_undefined(input);
  if (input.dict() == nullptr) fail(fmt::format("'{}' object has no attribute 'items'", input.type()));
  std::vector<Keyed> all;
  for (const auto& [key, value] : input.dict()->entries) {
    all.push_back({folded(by == "key" ? key : value, bound.truth(0, false)), Value::tuple({key, value})});
  }
  charge_sort(evaluator, all);
  sort_by_key(all, bound.truth(2, false));
  std::vector<Value> out;
  for (Keyed& entry : all) out.push_back(std::move(entry.item));
  return Value::list(std::move(out));
}

Value unique_filter(Evaluator& evaluator, const Value& input, Arguments arguments) {
  const Bound bound("unique", std::move(arguments), {"case_sensitive", "attribute"});
  std::vector<Value> out;
  std::vector<Value> seen;
  for (Keyed& entry : keyed_items(evaluator, input, bound.get_not_none(1), bound.truth(0, false), false)) {
    if (!hashable(entry.key)) fail(fmt::format("unhashable type: '{}'", entry.key.type()));
    evaluator.charge(static_cast<std::int64_t>(seen.size() / 32));
    if (std::any_of(seen.begin(), seen.end(), [&](const Value& v) { return equal(v, entry.key); })) continue;
    seen.push_back(std::move(entry.key));
    out.push_back(std::move(entry.item));
  }
  return evaluator.make_iterator(std::move(out));
}

/// The first of the least (kSign -1) or greatest (1) items.
template <int kSign>
Value extreme_filter(Evaluator& evaluator, const Value& input, Arguments arguments) {
  const Bound bound(kSign < 0 ? "min" : "max", std::move(arguments), {"case_sensitive", "attribute"});
  std::vector<Keyed> all = keyed_items(evaluator, input, bound.get_not_none(1), bound.truth(0, false), false);
  if (all.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  Keyed* best = &all.front();
  for (Keyed& entry : all) {
    if (&entry != best && compare(entry.key, best->key, kSign < 0 ? "<" : ">") * kSign > 0) best = &entry;
  }
  return best->item;
}

Value groupby_filter(Evaluator& evaluator, const Value& input, Arguments arguments) {
  const Bound bound("groupby", std::move(arguments), {"attribute", "default", "case_sensitive"}, 1);
  std::vector<Keyed> all =
      keyed_items(evaluator, input, &bound.need(0), bound.truth(2, false), false, bound.get_not_none(1));
  sort_by_key(all, false);
  std::vector<Value> groups;
  for (std::size_t i = 0; i < all.size();) {
    std::vector<Value> members;
    Value name = evaluator.attribute_path(all[i].item, bound.need(0),
                                          bound.get_not_none(1));  // the first member's case
    const Value key = all[i].key;
    for (; i < all.size() && equal(all[i].key, key); ++i) members.push_back(std::move(all[i].item));
    groups.push_back(Value::sequence(Sequence::kGroup, {std::move(name), Value::list(std::move(members))}));
  }
  return Value::list(std::move(groups));
}

constexpr auto kOrderFilters = std::to_array<Filter>({{"sort", sort_filter},
                                                      {"dictsort", dictsort_filter},
                                                      {"unique", unique_filter},
                                                      {"min", extreme_filter<-1>},
                                                      {"max", extreme_filter<1>},
                                                      {"groupby", groupby_filter}});

}  // namespace

std::span<const Filter> order_filters() {
  return kOrderFilters;
}

}  // namespace wring::text::jinja
