// What a word begins as before anything is merged: one token for each byte (byte-level BPE), or one for each
// character, where a character that the vocabulary lacks becomes its bytes ("<0xE2>") or the unknown token.
// Source: merge_word of Hugging Face's models/bpe, which SentencePiece's BPE agrees with.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace wring::text {

/// What becomes of characters without a token, in this order.
struct Fallbacks {
  bool bytes = false;          // as byte tokens, if all of them are there
  std::optional<TokenId> unk;  // as this token
  bool fuse_unk = false;       // several in a row as one
};

class Alphabet {
 public:
  /// Keeps a pointer to `vocabulary`. Tokens that it lacks are an error only when a text needs them.
  Alphabet(const Vocabulary& vocabulary, const Fallbacks& fallbacks);

  /// Appends the tokens of `word`, which is given in bytes, UTF-8 or not. Errors: kBadInput naming a byte or
  /// character that has none.
  void spell(std::string_view word, std::vector<TokenId>& out) const;

 private:
  void spell_characters(std::string_view word, std::vector<TokenId>& out) const;
  bool spell_as_bytes(std::string_view character, std::vector<TokenId>& out) const;

  const Vocabulary* vocabulary_;
  Fallbacks fallbacks_;
  std::array<TokenId, 256> byte_ids_{};  // -1: none
};

}  // namespace wring::text
