// JSON as files from strangers need it: strict (no trailing comma, no garbage after the value), iterative
// with a depth limit, repeated keys refused, every error with line and column. The library behind it is
// nlohmann::json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace wring::formats {

inline constexpr int kMaxJsonDepth = 100;

/// Parses `text`; key order is not kept. `where` names the source in errors. Errors: kBadInput.
nlohmann::json parse_json(std::string_view text, std::string_view where);

/// Reads and parses a file of at most `limit_bytes`. Errors: as above, and those of read_text_file.
nlohmann::json read_json_file(const std::filesystem::path& path,
                              std::size_t limit_bytes = std::size_t{256} << 20);

/// A value as errors show it: its JSON, cut after 80 characters.
std::string shown(const nlohmann::json& value);

/// object[key] as an integer in [low, high]; a float, a string, or a number outside is kBadInput naming
/// `where`, key, value and limit. A missing key is kBadInput too; see the _or form.
std::int64_t json_int(const nlohmann::json& object, std::string_view key, std::int64_t low, std::int64_t high,
                      std::string_view where);
std::int64_t json_int_or(const nlohmann::json& object, std::string_view key, std::int64_t fallback,
                         std::int64_t low, std::int64_t high, std::string_view where);

/// object[key] as a finite number in [low, high].
double json_number(const nlohmann::json& object, std::string_view key, double low, double high,
                   std::string_view where);
double json_number_or(const nlohmann::json& object, std::string_view key, double fallback, double low,
                      double high, std::string_view where);

/// object[key] as a boolean or string, or `fallback` where the key is missing or null; another type is
/// kBadInput.
bool json_bool_or(const nlohmann::json& object, std::string_view key, bool fallback, std::string_view where);
std::string json_string_or(const nlohmann::json& object, std::string_view key, std::string_view fallback,
                           std::string_view where);

}  // namespace wring::formats
