// The two-way table of tokens: id -> text and bytes, text -> id. Ids come from files of strangers, so they
// are bounded before anything is sized by them; gaps are allowed (a padded vocabulary), two tokens of one id
// or one text are not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/tokenizer.h"

namespace wring::text {

/// Published vocabularies end at 262,144; eight times that is still only a table of 64 MiB.
inline constexpr TokenId kMaxTokenId = (1 << 21) - 1;

enum class TokenKind : std::uint8_t {
  kAbsent,   // a gap
  kNormal,   // made by merges
  kAdded,    // an added token that documents may contain
  kSpecial,  // an added token that only templates write
  kUnused,   // a row of padding: never encoded
};

class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;
  Vocabulary(const Vocabulary&) = delete;  // entries_ look into ids_
  Vocabulary& operator=(const Vocabulary&) = delete;

  /// Errors: kBadInput naming id, text and limit, for an id out of [0, kMaxTokenId] or used twice and for a
  /// text used twice.
  void add(std::int64_t id, std::string_view text, TokenKind kind, std::string_view where);
  /// Changes the kind of a token that is there.
  void set_kind(TokenId id, TokenKind kind) { entries_[static_cast<std::size_t>(id)].kind = kind; }
  /// Call once, after the last add: fills the bytes of every token.
  void finish();

  TokenId size() const { return static_cast<TokenId>(entries_.size()); }  // highest id + 1
  bool contains(std::int64_t id) const;
  TokenKind kind(TokenId id) const;
  std::string_view text(TokenId id) const { return entries_[static_cast<std::size_t>(id)].text; }
  std::string_view bytes(TokenId id) const;
  std::optional<TokenId> find(std::string_view text) const;

 private:
  struct Entry {
    std::string_view text;       // a key of ids_, which do not move
    std::size_t bytes_from = 0;  // in bytes_
    std::uint32_t bytes_size = 0;
    TokenKind kind = TokenKind::kAbsent;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };
  std::vector<Entry> entries_;
  std::unordered_map<std::string, TokenId, Hash, std::equal_to<>> ids_;
  std::string bytes_;
};

}  // namespace wring::text
