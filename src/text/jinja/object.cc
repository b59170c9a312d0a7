// Look-ups in scopes and namespaces, and the loop's drawing of items.

#include "text/jinja/object.h"

#include <fmt/format.h>

#include <algorithm>

namespace wring::text::jinja {
namespace {

template <class List>
Value* find_in(List& list, std::string_view name) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.first == name; });
  return found == list.end() ? nullptr : &found->second;
}

void check_room(std::size_t size) {
  if (size >= kMaxNames) fail(fmt::format("more than {} names in one scope", kMaxNames));
}

}  // namespace

Value* Scope::find(std::string_view name) {
  for (Scope* scope = this; scope != nullptr; scope = scope->parent.get()) {
    if (Value* value = find_in(scope->variables, name)) return value;
  }
  return nullptr;
}

void Scope::set(std::string_view name, Value value) {
  if (Value* known = find_in(variables, name)) {
    *known = std::move(value);
  } else {
    check_room(variables.size());
    variables.emplace_back(name, std::move(value));
  }
}

Value* Namespace::find(std::string_view name) {
  return find_in(attributes, name);
}

void Namespace::set(std::string_view name, Value value) {
  if (Value* known = find(name)) {
    *known = std::move(value);
  } else {
    check_room(attributes.size());
    attributes.emplace_back(std::string(name), std::move(value));
  }
}

std::optional<Value> Loop::draw() {
  while (next_source < source.size()) {
    Value candidate = source[next_source++];
    if (!wanted) return candidate;
    if (drawing_) fail("the loop's own 'if' looks at the loop");
    drawing_ = true;
    const bool taken = wanted(candidate);
    drawing_ = false;
    if (taken) return candidate;
  }
  return std::nullopt;
}

bool Loop::peek() {
  if (!after) after = draw();
  return after.has_value();
}

bool Loop::advance() {
  if (!peek()) return false;
  before = std::move(current);
  current = std::move(after);
  after.reset();
  ++index0;
  return true;
}

std::int64_t Loop::length() {
  if (!total) {
    if (wanted) {  // Python draws all the rest now
      std::vector<Value> rest;
      while (std::optional<Value> item = draw()) rest.push_back(std::move(*item));
      total = static_cast<std::int64_t>(rest.size()) + index0 + 1 + (after ? 1 : 0);
      source = std::move(rest);
      next_source = 0;
      wanted = nullptr;
    } else {
      total = static_cast<std::int64_t>(source.size());
    }
  }
  return *total;
}

}  // namespace wring::text::jinja
