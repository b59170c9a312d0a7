// The table is built once from its two-line definition, not written out (byte_level.h).
#include "text/byte_level.h"

#include <array>

namespace wring::text {

namespace {

constexpr int kChars = 0x100 + 68;  // the highest character used is U+0143

struct Table {
  std::array<std::uint16_t, 256> char_of{};
  std::array<std::int16_t, kChars> byte_of{};
};

constexpr bool stands_for_itself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr Table make_table() {
  Table t;
  for (auto& b : t.byte_of) b = -1;
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const int c = stands_for_itself(byte) ? byte : next++;
    t.char_of[static_cast<std::size_t>(byte)] = static_cast<std::uint16_t>(c);
    t.byte_of[static_cast<std::size_t>(c)] = static_cast<std::int16_t>(byte);
  }
  return t;
}

constexpr Table kTable = make_table();

}  // namespace

char32_t byte_level_char(std::uint8_t byte) {
  return kTable.char_of[byte];
}

std::string to_byte_level(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char b : bytes) {
    const unsigned c = kTable.char_of[static_cast<std::uint8_t>(b)];
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else {  // every character of the table fits two bytes
      out += static_cast<char>(0xC0 | (c >> 6));
      out += static_cast<char>(0x80 | (c & 0x3F));
    }
  }
  return out;
}

std::optional<std::string> from_byte_level(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<std::uint8_t>(text[i]);
    unsigned c = lead;
    if (lead >= 0x80) {
      if (lead < 0xC2 || lead > 0xDF || i + 1 >= text.size()) return std::nullopt;
      c = (lead & 0x1Fu) << 6 | (static_cast<std::uint8_t>(text[++i]) & 0x3Fu);
    }
    if (c >= kChars || kTable.byte_of[c] < 0) return std::nullopt;
    out += static_cast<char>(kTable.byte_of[c]);
  }
  return out;
}

}  // namespace wring::text
