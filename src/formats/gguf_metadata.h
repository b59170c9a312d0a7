// What reader, parser and writer of GGUF share: the format's constants, integers within limits, and faults
// that name file, key and value.
#pragma once

#include "formats/gguf.h"

namespace wring::formats {

inline constexpr std::uint32_t kGgufArrayKind = 9;  // stored where a single value has its kind
inline constexpr std::uint32_t kMaxGgufRank = 4;    // ggml's limit

/// Throws kBadInput: "<key> must be <expected> — <path>, <key> = <value>".
[[noreturn]] void refuse_value(std::string_view path, std::string_view key, const GgufEntry& entry,
                               std::string_view expected);

/// The integer under `key`. Errors: kBadInput if it is missing, of another kind, or outside [low, high].
std::int64_t metadata_integer(const GgufMetadata& metadata, std::string_view path, std::string_view key,
                              std::int64_t low, std::int64_t high);

}  // namespace wring::formats
