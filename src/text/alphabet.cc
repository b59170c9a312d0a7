// See alphabet.h.
#include "text/alphabet.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "text/byte_level.h"

namespace wring::text {

namespace {

[[noreturn]] void no_token(std::string_view what) {
  throw Error(ErrorCode::kBadInput, fmt::format("the tokenizer's vocabulary has no token for {}", what), {},
              "remove this character from the text: it would be lost");
}

}  // namespace

Alphabet::Alphabet(const Vocabulary& vocabulary, const Fallbacks& fallbacks)
    : vocabulary_(&vocabulary), fallbacks_(fallbacks) {
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const char b = static_cast<char>(byte);
    const auto id = vocabulary.find(vocabulary.is_byte_level() ? to_byte_level({&b, 1})
                                                               : byte_token(static_cast<std::uint8_t>(byte)));
    byte_ids_[byte] = id && vocabulary.kind(*id) == TokenKind::kNormal ? *id : -1;
  }
}

void Alphabet::spell(std::string_view word, std::vector<TokenId>& out) const {
  if (!vocabulary_->is_byte_level()) return spell_characters(word, out);
  for (const char b : word) {
    const auto byte = static_cast<unsigned char>(b);
    if (byte_ids_[byte] < 0) no_token(fmt::format("the byte 0x{:02X}", byte));
    out.push_back(byte_ids_[byte]);
  }
}

bool Alphabet::spell_as_bytes(std::string_view character, std::vector<TokenId>& out) const {
  const auto id = [&](char b) { return byte_ids_[static_cast<unsigned char>(b)]; };
  if (!std::ranges::all_of(character, [&](char b) { return id(b) >= 0; })) return false;
  for (const char b : character) out.push_back(id(b));
  return true;
}

void Alphabet::spell_characters(std::string_view word, std::vector<TokenId>& out) const {
  // Unknown characters wait for the next known one, past any that are spelled as bytes: as in the reference.
  bool waiting = false;
  for (std::string_view rest = word; !rest.empty();) {
    const std::string_view c = rest.substr(0, character_bytes(rest));
    rest.remove_prefix(c.size());
    const auto id = vocabulary_->find(c);
    if (id && vocabulary_->can_be_made(*id)) {
      if (waiting) out.push_back(*fallbacks_.unk);
      waiting = false;
      out.push_back(*id);
    } else if (fallbacks_.bytes && spell_as_bytes(c, out)) {
      continue;
    } else if (fallbacks_.unk) {
      if (waiting && !fallbacks_.fuse_unk) out.push_back(*fallbacks_.unk);
      waiting = true;
    } else {
      no_token(fmt::format("'{}'", printable(c)));
    }
  }
  if (waiting) out.push_back(*fallbacks_.unk);
}

}  // namespace wring::text
