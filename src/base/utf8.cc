#include "base/utf8.h"

#include <fmt/format.h>

#include <cstdint>

namespace wring {
namespace {

struct Step {
  std::size_t length;  // bytes of the character, or of the maximal invalid part
  bool valid;
};

// Table 3-7 of the Unicode standard: the range of the second byte depends on the first.
Step next_character(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(s[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return {1, true};
  std::size_t more = 0;
  std::uint8_t low = 0x80, high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    more = 1;
  } else if (first >= 0xE0 && first <= 0xEF) {
    more = 2;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    more = 3;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return {1, false};
  }
  for (std::size_t i = 1; i <= more; ++i) {
    if (i >= s.size() || byte(i) < low || byte(i) > high) return {i, false};
    low = 0x80;
    high = 0xBF;
  }
  return {more + 1, true};
}

}  // namespace

std::size_t valid_utf8_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Step step = next_character(text.substr(at));
    if (!step.valid) break;
    at += step.length;
  }
  return at;
}

std::size_t character_bytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  const std::size_t n = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  return n <= text.size() && is_valid_utf8(text.substr(0, n)) ? n : 1;
}

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Step step = next_character(text.substr(at));
    const auto first = static_cast<std::uint8_t>(text[at]);
    if (!step.valid || first < 0x20 || first == 0x7F) {
      for (std::size_t i = 0; i < step.length; ++i, ++at) {
        const auto b = static_cast<std::uint8_t>(text[at]);
        out += b == '\n' ? "\\n" : b == '\t' ? "\\t" : fmt::format("\\x{:02X}", b);
      }
    } else {
      out.append(text.substr(at, step.length));
      at += step.length;
    }
  }
  return out;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Step step = next_character(text.substr(at));
    out.append(step.valid ? text.substr(at, step.length) : std::string_view("\xEF\xBF\xBD"));
    at += step.length;
  }
  return out;
}

}  // namespace wring
