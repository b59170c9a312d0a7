// Making values, and Python's equality and order over them.

#include "text/jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/jinja/object.h"

namespace wring::text::jinja {
namespace {

int checked_depth(int depth) {
  if (depth > kMaxValueDepth) fail(fmt::format("values are nested deeper than {}", kMaxValueDepth));
  return depth;
}

std::int64_t checked_weight(std::int64_t weight) {
  if (weight > kMaxValueWeight) fail(fmt::format("a value is larger than {} parts", kMaxValueWeight));
  return weight;
}

constexpr bool is_list_like(Sequence kind) {
  return kind == Sequence::kList;
}
constexpr bool is_tuple_like(Sequence kind) {
  return kind == Sequence::kTuple || kind == Sequence::kGroup;
}

bool equal_items(const std::vector<Value>& a, const std::vector<Value>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), equal);
}

int sign(auto a, auto b) {
  return a < b ? -1 : (b < a ? 1 : 0);
}

/// 80-bit floats hold every int64 and every double, so a mixed comparison is exact.
int compare_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return sign(a.as_int(), b.as_int());
  const auto wide = [](const Value& v) {
    return v.is_integral() ? static_cast<long double>(v.as_int()) : static_cast<long double>(v.as_double());
  };
  return sign(wide(a), wide(b));
}

bool is_nan(const Value& v) {
  return v.is_float() && std::isnan(v.as_double());
}

}  // namespace

void fail(std::string message) {
  throw Error(ErrorCode::kBadInput, std::move(message));
}

void fail_undefined(const Value& undefined) {
  fail(undefined.why_undefined());
}

void fail_not_supported(std::string message) {
  throw Error(ErrorCode::kNotSupported, std::move(message));
}

void check_text_size(std::size_t bytes) {
  if (bytes > kMaxTextBytes)
    fail(fmt::format("a text of the chat template has more than {} bytes", kMaxTextBytes));
}

Value Value::undefined(std::string why) {
  Value v;
  v.data_ = Undefined{std::make_shared<const std::string>(std::move(why))};
  return v;
}

Value Value::sequence(Sequence kind, std::vector<Value> items) {
  int depth = 0;
  std::int64_t weight = 1;
  for (const Value& item : items) {
    depth = std::max(depth, item.depth());
    weight = checked_weight(weight + item.weight());
  }
  Value v;
  v.data_ = std::make_shared<const SeqData>(
      SeqData{kind, std::move(items), 0, 0, 0, checked_depth(depth + 1), weight});
  return v;
}

Value Value::range(std::int64_t start, std::int64_t stop, std::int64_t step, std::int64_t count) {
  std::vector<Value> items;
  items.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) items.emplace_back(start + i * step);
  Value v;
  v.data_ = std::make_shared<const SeqData>(
      SeqData{Sequence::kRange, std::move(items), start, stop, step, 1, count + 1});
  return v;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): keys and values are moved out of it
Value Value::dict(std::vector<std::pair<Value, Value>> entries) {
  DictData data{{}, 0, 1};
  data.entries.reserve(entries.size());
  for (auto& [key, value] : entries) {
    if (!hashable(key)) fail(fmt::format("unhashable type: '{}'", key.type()));
    data.depth = std::max({data.depth, key.depth(), value.depth()});
    data.weight = checked_weight(data.weight + key.weight() + value.weight());
    if (const Value* known = data.find(key)) {
      *const_cast<Value*>(known) = std::move(value);
    } else {
      data.entries.emplace_back(std::move(key), std::move(value));
    }
  }
  data.depth = checked_depth(data.depth + 1);
  Value v;
  v.data_ = std::make_shared<const DictData>(std::move(data));
  return v;
}

Value Value::method(Value self, std::string_view name) {
  checked_depth(self.depth() + 1);
  Value v;
  v.data_ = std::make_shared<const MethodData>(MethodData{std::move(self), std::string(name)});
  return v;
}

Value Value::from_json(const nlohmann::ordered_json& json) {
  // Recursion is bounded: every level is checked before the next one is entered.
  const auto convert = [](const auto& self, const nlohmann::ordered_json& j, int depth) -> Value {
    checked_depth(depth);
    if (j.is_boolean()) return Value(j.get<bool>());
    if (j.is_number_unsigned() && j.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
      fail_not_supported(
          fmt::format("the integer {} in the template's input is above 2^63 - 1", j.get<std::uint64_t>()));
    }
    if (j.is_number_integer()) return Value(j.get<std::int64_t>());
    if (j.is_number_float()) return Value(j.get<double>());
    if (j.is_string()) return Value(j.get_ref<const std::string&>());
    if (j.is_array()) {
      std::vector<Value> items;
      items.reserve(j.size());
      for (const auto& item : j) items.push_back(self(self, item, depth + 1));
      return Value::list(std::move(items));
    }
    if (j.is_object()) {
      DictData data{{}, 0, 1};
      data.entries.reserve(j.size());
      for (const auto& [key, value] : j.items()) {  // keys differ already: no look-up
        const auto& [k, v] = data.entries.emplace_back(Value(key), self(self, value, depth + 1));
        data.depth = std::max(data.depth, v.depth());
        data.weight = checked_weight(data.weight + k.weight() + v.weight());
      }
      data.depth = checked_depth(data.depth + 1);
      Value made;
      made.data_ = std::make_shared<const DictData>(std::move(data));
      return made;
    }
    return Value();
  };
  return convert(convert, json, 0);
}

double Value::as_double() const {
  if (const auto* d = std::get_if<double>(&data_)) return *d;
  return static_cast<double>(as_int());
}

std::int64_t Value::as_int() const {
  if (const auto* b = std::get_if<bool>(&data_)) return *b ? 1 : 0;
  return std::get<std::int64_t>(data_);
}

const SeqData* Value::seq() const {
  const auto* p = std::get_if<std::shared_ptr<const SeqData>>(&data_);
  return p != nullptr ? p->get() : nullptr;
}

const DictData* Value::dict() const {
  const auto* p = std::get_if<std::shared_ptr<const DictData>>(&data_);
  return p != nullptr ? p->get() : nullptr;
}

const MethodData* Value::method() const {
  const auto* p = std::get_if<std::shared_ptr<const MethodData>>(&data_);
  return p != nullptr ? p->get() : nullptr;
}

Object* Value::object() const {
  const auto* p = std::get_if<Object*>(&data_);
  return p != nullptr ? *p : nullptr;
}

std::string_view Value::type() const {
  if (is_none()) return "NoneType";
  if (is_undefined()) return "Undefined";
  if (is_bool()) return "bool";
  if (is_int()) return "int";
  if (is_float()) return "float";
  if (is_text()) return is_safe_text() ? "Markup" : "str";
  if (dict() != nullptr) return "dict";
  if (object() != nullptr) return object()->type();
  if (const SeqData* s = seq()) {
    constexpr std::string_view kNames[] = {"list",      "tuple",       "tuple",     "range",
                                           "dict_keys", "dict_values", "dict_items"};
    return kNames[static_cast<int>(s->kind)];
  }
  return "builtin_function_or_method";
}

int Value::depth() const {
  if (const SeqData* s = seq()) return s->depth;
  if (const DictData* d = dict()) return d->depth;
  if (const MethodData* m = method()) return m->self.depth() + 1;
  return 0;
}

std::int64_t Value::weight() const {
  if (is_text()) return 1 + static_cast<std::int64_t>(text().size() / 16);
  if (const SeqData* s = seq()) return s->weight;
  if (const DictData* d = dict()) return d->weight;
  if (const MethodData* m = method()) return m->self.weight();
  return 1;
}

bool Value::truthy() const {
  if (is_none() || is_undefined()) return false;
  if (is_integral()) return as_int() != 0;
  if (is_float()) return as_double() != 0;
  if (is_text()) return !text().empty();
  if (const SeqData* s = seq()) return !s->items.empty();
  if (const DictData* d = dict()) return !d->entries.empty();
  if (auto* loop = as<Loop>()) return loop->length() != 0;
  return true;
}

const Value* DictData::find(const Value& key) const {
  if (key.is_text()) return find(key.text());
  for (const auto& [k, v] : entries) {
    if (equal(k, key)) return &v;
  }
  return nullptr;
}

const Value* DictData::find(std::string_view key) const {
  for (const auto& [k, v] : entries) {
    if (k.is_text() && k.text() == key) return &v;
  }
  return nullptr;
}

bool hashable(const Value& v) {
  if (v.dict() != nullptr) return false;
  if (const SeqData* s = v.seq()) {
    if (s->kind == Sequence::kRange) return true;
    return is_tuple_like(s->kind) && std::all_of(s->items.begin(), s->items.end(), hashable);
  }
  return true;
}

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return !is_nan(a) && !is_nan(b) && compare_numbers(a, b) == 0;
  if (a.is_text() && b.is_text()) return a.text() == b.text();
  if (a.is_none() || a.is_undefined()) return a.is_none() ? b.is_none() : b.is_undefined();
  if (const SeqData* x = a.seq()) {
    const SeqData* y = b.seq();
    if (y == nullptr) return false;
    if (x == y) return true;
    const bool same_type = x->kind == y->kind || (is_tuple_like(x->kind) && is_tuple_like(y->kind));
    return same_type && x->kind != Sequence::kValues && equal_items(x->items, y->items);
  }
  if (const DictData* x = a.dict()) {
    const DictData* y = b.dict();
    if (y == nullptr || x->entries.size() != y->entries.size()) return false;
    return std::all_of(x->entries.begin(), x->entries.end(), [&](const auto& entry) {
      const Value* other = y->find(entry.first);
      return other != nullptr && equal(entry.second, *other);
    });
  }
  if (const MethodData* x = a.method()) {
    const MethodData* y = b.method();
    return y != nullptr && x->name == y->name && equal(x->self, y->self);
  }
  if (a.builtin() != nullptr) return b.builtin() != nullptr && *a.builtin() == *b.builtin();
  return a.object() != nullptr && a.object() == b.object();
}

int compare(const Value& a, const Value& b, std::string_view op) {
  if (a.is_undefined()) fail_undefined(a);
  if (b.is_undefined()) fail_undefined(b);
  if (a.is_number() && b.is_number()) return compare_numbers(a, b);
  if (a.is_text() && b.is_text())
    return sign(a.text().compare(b.text()), 0);  // UTF-8 sorts as code points do
  const SeqData* x = a.seq();
  const SeqData* y = b.seq();
  if (x != nullptr && y != nullptr &&
      ((is_list_like(x->kind) && is_list_like(y->kind)) ||
       (is_tuple_like(x->kind) && is_tuple_like(y->kind)))) {
    for (std::size_t i = 0; i < std::min(x->items.size(), y->items.size()); ++i) {
      if (!equal(x->items[i], y->items[i])) return compare(x->items[i], y->items[i], op);
    }
    return sign(x->items.size(), y->items.size());
  }
  fail(fmt::format("'{}' not supported between instances of '{}' and '{}'", op, a.type(), b.type()));
}

}  // namespace wring::text::jinja
