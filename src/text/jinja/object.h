// The changing things of a rendering: see value.h. The Heap owns them, so values may point to them
// freely.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace wring::text::jinja {

struct Statement;

/// Names in one scope or namespace: they are searched one by one.
inline constexpr std::size_t kMaxNames = 1000;

/// Variables of one block; a name is looked up from the innermost scope outwards.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string_view, Value>> variables;  // names live in the template or the context
  Value* find(std::string_view name);
  void set(std::string_view name, Value value);
};

struct Namespace final : Object {
  std::vector<std::pair<std::string, Value>> attributes;
  std::string_view type() const override { return "Namespace"; }
  Value* find(std::string_view name);
  void set(std::string_view name, Value value);
};

/// What Python calls a generator: passed through once, without length or index.
struct Iterator final : Object {
  std::vector<Value> items;
  std::size_t next = 0;
  std::string_view type() const override { return "generator"; }
};

struct Macro final : Object {
  const Statement* definition = nullptr;
  std::shared_ptr<Scope> scope;  // where it was defined
  std::string_view type() const override { return "Macro"; }
};

/// `loop`. The items are drawn one by one, since the loop's `if` may depend on what the body did.
struct Loop final : Object {
  std::vector<Value> source;
  std::size_t next_source = 0;
  std::function<bool(const Value&)> wanted;  // the loop's `if`; empty without one
  std::optional<Value> before, current, after;
  std::int64_t index0 = -1;
  std::optional<std::int64_t> total;
  std::optional<Value> changed_value;

  std::string_view type() const override { return "LoopContext"; }
  bool advance();  // false at the end
  bool peek();     // whether `after` holds the next item
  std::int64_t length();

 private:
  std::optional<Value> draw();
  bool drawing_ = false;
};

struct Cycler final : Object {
  std::vector<Value> items;
  std::size_t at = 0;
  std::string_view type() const override { return "Cycler"; }
};

struct Joiner final : Object {
  Value separator;
  bool used = false;
  std::string_view type() const override { return "Joiner"; }
};

class Heap {
 public:
  template <class T>
  T* make() {
    auto owned = std::make_unique<T>();
    T* raw = owned.get();
    objects_.push_back(std::move(owned));
    return raw;
  }

 private:
  std::vector<std::unique_ptr<Object>> objects_;
};

}  // namespace wring::text::jinja
