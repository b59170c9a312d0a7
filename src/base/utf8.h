// UTF-8 checks that every room needs: is it valid, and how to show bytes that may not be.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace wring {

/// Length in bytes of the longest prefix that is valid UTF-8 (no overlong forms, no surrogates, at most
/// U+10FFFF).
std::size_t valid_utf8_prefix(std::string_view text);

inline bool is_valid_utf8(std::string_view text) {
  return valid_utf8_prefix(text) == text.size();
}

/// Bytes of the character that `text` (not empty) begins with; 1 for a byte that begins none.
std::size_t character_bytes(std::string_view text);

/// One line that is safe to print: control characters and invalid bytes become \n, \t or \xNN.
std::string printable(std::string_view text);

/// Valid UTF-8 in which each maximal invalid part is U+FFFD, as Python's errors="replace" does.
std::string replace_invalid_utf8(std::string_view text);

}  // namespace wring
