// How the readers of tokenizer.json look into its objects: every part is an object with a "type", and what a
// file leaves out is null.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/json.h"

namespace wring::text {

/// The member `key` of an object; null if it has none.
inline const nlohmann::json& member(const nlohmann::json& object, const char* key) {
  static const nlohmann::json null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

/// The "type" of a part, fit to be shown. Errors: kBadInput where `part` is not an object.
inline std::string type_of(const nlohmann::json& part, std::string_view where) {
  if (!part.is_object()) throw Error(ErrorCode::kBadInput, "not an object with a type", std::string(where));
  return printable(formats::json_string_or(part, "type", "", where));
}

/// Published definitions have at most a dozen rules of a kind; each costs a pass over every text. Errors:
/// kNotSupported for more than 64.
inline void check_rules(std::size_t count, std::string_view where) {
  constexpr std::size_t kMost = 64;
  if (count <= kMost) return;
  throw Error(ErrorCode::kNotSupported, fmt::format("{} rules, more than {}", count, kMost),
              std::string(where));
}

/// The list `key` of a Sequence. Errors: kBadInput where it is no list.
inline const nlohmann::json& parts_of(const nlohmann::json& sequence, const char* key,
                                      std::string_view where) {
  const nlohmann::json& parts = member(sequence, key);
  if (!parts.is_array()) {
    throw Error(ErrorCode::kBadInput, fmt::format("a Sequence without the list {}", key), std::string(where));
  }
  return parts;
}

/// A pattern: {"String": text} or {"Regex": text}.
struct HfPattern {
  std::string text;
  bool is_regex = false;
};

/// The member "pattern" of a Split or Replace. Errors: kBadInput for another form, and for an empty string;
/// kNotSupported naming another kind.
inline HfPattern read_pattern(const nlohmann::json& rule, std::string_view where) {
  const nlohmann::json& pattern = member(rule, "pattern");
  if (!pattern.is_object() || pattern.size() != 1 || !pattern.begin().value().is_string()) {
    throw Error(ErrorCode::kBadInput, "pattern is not {\"Regex\": text} or {\"String\": text}",
                std::string(where));
  }
  const std::string& kind = pattern.begin().key();
  if (kind != "Regex" && kind != "String") {
    throw Error(ErrorCode::kNotSupported,
                fmt::format("the pattern kind '{}' is not supported", printable(kind)), std::string(where));
  }
  HfPattern out{pattern.begin().value().get<std::string>(), kind == "Regex"};
  if (out.text.empty()) throw Error(ErrorCode::kBadInput, "pattern is empty", std::string(where));
  return out;
}

}  // namespace wring::text
