// Names and arguments of the library's functions, and the tables that find them.

#include "text/jinja/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/jinja/evaluator.h"

namespace wring::text::jinja {
namespace {

const Filter* find_filter(std::string_view name) {
  for (const auto filters : {text_filters(), number_filters(), sequence_filters(), order_filters()}) {
    for (const Filter& filter : filters) {
      if (filter.name == name) return &filter;
    }
  }
  return nullptr;
}

template <std::size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Bound::Bound(std::string_view callee, Arguments arguments, std::initializer_list<std::string_view> parameters,
             std::size_t required)
    : callee_(callee), names_(parameters), values_(parameters.size()), given_(parameters.size(), 0) {
  if (arguments.positional.size() > names_.size()) {
    fail(fmt::format("{}() takes at most {} argument(s), not {}", callee, names_.size(),
                     arguments.positional.size()));
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    values_[i] = std::move(arguments.positional[i]);
    given_[i] = 1;
  }
  for (auto& [name, value] : arguments.named) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end())
      fail(fmt::format("{}() got an unexpected keyword argument '{}'", callee, name));
    const auto i = static_cast<std::size_t>(found - names_.begin());
    if (given_[i] != 0) fail(fmt::format("{}() got several values for '{}'", callee, name));
    values_[i] = std::move(value);
    given_[i] = 1;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (given_[i] == 0) fail(fmt::format("{}() misses the argument '{}'", callee, names_[i]));
  }
}

const Value* Bound::get_not_none(std::size_t parameter) const {
  const Value* value = get(parameter);
  return value != nullptr && !value->is_none() ? value : nullptr;
}

std::int64_t Bound::integer(std::size_t parameter, std::int64_t fallback) const {
  const Value* value = get(parameter);
  if (value == nullptr) return fallback;
  if (value->is_undefined()) fail_undefined(*value);
  if (!value->is_integral()) {
    fail(fmt::format("{}() needs an integer for '{}', not {}", callee_, names_[parameter], value->type()));
  }
  return value->as_int();
}

const std::string& Bound::text(std::size_t parameter) const {
  const Value& value = values_[parameter];
  if (value.is_undefined()) fail_undefined(value);
  if (!value.is_text())
    fail(fmt::format("{}() needs a str for '{}', not {}", callee_, names_[parameter], value.type()));
  return value.text();
}

bool Bound::truth(std::size_t parameter, bool fallback) const {
  const Value* value = get(parameter);
  return value == nullptr ? fallback : value->truthy();
}

bool is_filter(std::string_view name) {
  return find_filter(name) != nullptr;
}

Value apply_filter(Evaluator& evaluator, std::string_view name, const Value& input, Arguments arguments) {
  const Filter* filter = find_filter(name);
  if (filter == nullptr) fail(fmt::format("no filter named '{}'", name));
  if (input.is_text()) evaluator.charge_bytes(input.text().size());
  return filter->apply(evaluator, input, std::move(arguments));
}

bool is_unsupported_global(std::string_view name) {
  return name == "lipsum" || name == "super" || name == "gettext";
}

bool is_unsupported_method(std::string_view name) {
  constexpr std::array<std::string_view, 16> kNames = {
      "casefold",  "center",    "encode",       "expandtabs", "format_map",  "fromkeys",
      "isascii",   "isdecimal", "isidentifier", "isnumeric",  "isprintable", "istitle",
      "maketrans", "swapcase",  "translate",    "__class__"};
  return is_one_of(name, kNames);
}

}  // namespace wring::text::jinja
