// Builds nlohmann::json values from the library's event interface, because its own builder keeps the last of
// repeated keys, has no depth limit and gives no position to faults of meaning.
#include "formats/json.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"

namespace wring::formats {
namespace {

using nlohmann::json;

// Tells how far the parser has read: the library's events carry no position.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
  const char& operator*() const { return *at_; }
  CountingIterator& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** furthest_;
};

class Builder {
 public:
  Builder(std::string_view text, std::string_view where) : text_(text), where_(where), read_(text.data()) {}

  json build() {
    // The library takes a zero byte for the end of its input.
    if (const std::size_t zero = text_.find('\0'); zero != std::string_view::npos)
      fail(zero + 1, "zero byte");
    json::sax_parse(CountingIterator(text_.data(), &read_),
                    CountingIterator(text_.data() + text_.size(), &read_), this);
    return std::move(root_);
  }

  // The library's event interface.
  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(json::number_integer_t value) { return add(value); }
  bool number_unsigned(json::number_unsigned_t value) { return add(value); }
  bool number_float(json::number_float_t value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(json::binary_t&) { return false; }  // only in binary formats
  bool start_object(std::size_t) { return open(json::value_t::object); }
  bool start_array(std::size_t) { return open(json::value_t::array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    const auto [place, is_new] = open_.back()->get_ref<json::object_t&>().try_emplace(name);
    last_key_ = name;
    if (!is_new) fail(position(), fmt::format("duplicate key \"{}\"", name));
    slot_ = &place->second;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const json::exception& fault) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ...": keep what follows
    // the position.
    std::string_view what = fault.what();
    const std::size_t column = what.find("column ");
    const std::size_t start = what.find(column == std::string_view::npos ? "] " : ": ",
                                        column == std::string_view::npos ? 0 : column);
    if (start != std::string_view::npos) what.remove_prefix(start + 2);
    fail(position(), what);
  }

 private:
  std::size_t position() const { return static_cast<std::size_t>(read_ - text_.data()); }

  [[noreturn]] void fail(std::size_t position, std::string_view what) const {
    const std::string_view before = text_.substr(0, position);
    const std::size_t line = 1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
    const std::size_t newline = before.rfind('\n');
    const std::size_t column =
        newline == std::string_view::npos ? before.size() : before.size() - newline - 1;
    const std::string after = last_key_.empty() ? "" : fmt::format(" (after key \"{}\")", last_key_);
    throw Error(ErrorCode::kBadInput, fmt::format("not valid JSON: {}", what),
                fmt::format("{}, line {}, column {}{}", where_, line, column, after));
  }

  json* place(json&& value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_array()) {
      auto& items = open_.back()->get_ref<json::array_t&>();
      return &items.emplace_back(std::move(value));
    }
    *slot_ = std::move(value);
    return slot_;
  }

  bool add(json value) {
    place(std::move(value));
    return true;
  }

  bool open(json::value_t kind) {
    if (open_.size() >= kMaxJsonDepth)
      fail(position(), fmt::format("nested deeper than {} levels", kMaxJsonDepth));
    open_.push_back(place(json(kind)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_, where_;
  const char* read_;
  json root_;
  std::vector<json*> open_;  // containers not yet closed; they do not move while their children grow
  json* slot_ = nullptr;     // where the value of the last key goes
  std::string last_key_;
};

[[noreturn]] void refuse_field(std::string_view key, const json& value, std::string_view where,
                               std::string_view expected) {
  throw Error(ErrorCode::kBadInput, fmt::format("{} must be {}", key, expected),
              fmt::format("{}, {} = {}", where, key, shown(value)));
}

// The value under `key`, or nullptr where it is missing or null.
const json* find(const json& object, std::string_view key, std::string_view where) {
  if (!object.is_object()) {
    throw Error(ErrorCode::kBadInput, fmt::format("an object with {} is needed", key),
                fmt::format("{}, found {}", where, shown(object)));
  }
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const json& require(const json& object, std::string_view key, std::string_view where) {
  const json* value = find(object, key, where);
  if (value == nullptr)
    throw Error(ErrorCode::kBadInput, fmt::format("{} is missing", key), std::string(where));
  return *value;
}

std::int64_t checked_int(const json& value, std::string_view key, std::int64_t low, std::int64_t high,
                         std::string_view where) {
  const bool fits =
      value.is_number_integer() &&
      !(value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX));
  if (!fits || value.get<std::int64_t>() < low || value.get<std::int64_t>() > high) {
    refuse_field(key, value, where, fmt::format("an integer from {} to {}", low, high));
  }
  return value.get<std::int64_t>();
}

double checked_number(const json& value, std::string_view key, double low, double high,
                      std::string_view where) {
  if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < low ||
      value.get<double>() > high) {
    refuse_field(key, value, where, fmt::format("a number from {} to {}", low, high));
  }
  return value.get<double>();
}

}  // namespace

std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  constexpr std::size_t kMost = 80;
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

json parse_json(std::string_view text, std::string_view where) {
  return Builder(text, where).build();
}

json read_json_file(const std::filesystem::path& path, std::size_t limit_bytes) {
  return parse_json(read_text_file(path, limit_bytes), path.string());
}

std::int64_t json_int(const json& object, std::string_view key, std::int64_t low, std::int64_t high,
                      std::string_view where) {
  return checked_int(require(object, key, where), key, low, high, where);
}

std::int64_t json_int_or(const json& object, std::string_view key, std::int64_t fallback, std::int64_t low,
                         std::int64_t high, std::string_view where) {
  const json* value = find(object, key, where);
  return value == nullptr ? fallback : checked_int(*value, key, low, high, where);
}

double json_number(const json& object, std::string_view key, double low, double high,
                   std::string_view where) {
  return checked_number(require(object, key, where), key, low, high, where);
}

double json_number_or(const json& object, std::string_view key, double fallback, double low, double high,
                      std::string_view where) {
  const json* value = find(object, key, where);
  return value == nullptr ? fallback : checked_number(*value, key, low, high, where);
}

bool json_bool_or(const json& object, std::string_view key, bool fallback, std::string_view where) {
  const json* value = find(object, key, where);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) refuse_field(key, *value, where, "true or false");
  return value->get<bool>();
}

std::string json_string_or(const json& object, std::string_view key, std::string_view fallback,
                           std::string_view where) {
  const json* value = find(object, key, where);
  if (value == nullptr) return std::string(fallback);
  if (!value->is_string()) refuse_field(key, *value, where, "a string");
  return value->get<std::string>();
}

}  // namespace wring::formats
