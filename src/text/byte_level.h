// The byte <-> character table of byte-level BPE: every byte is written as one printable character, so that a
// vocabulary file is plain text. Printable Latin-1 bytes stand for themselves, the other 68 for U+0100
// upwards in byte order. Source: bytes_to_unicode() of GPT-2's encoder.py, as kept by Hugging Face's
// ByteLevel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wring::text {

/// The character (a code point below U+0144) that stands for `byte`.
char32_t byte_level_char(std::uint8_t byte);

/// Bytes as the characters that stand for them, in UTF-8.
std::string to_byte_level(std::string_view bytes);

/// The bytes that the characters of `text` (valid UTF-8) stand for; nothing if a character is outside the
/// table.
std::optional<std::string> from_byte_level(std::string_view text);

}  // namespace wring::text
