// The two-way table of tokens: id -> text and bytes, text -> id. Ids come from files of strangers, so they
// are bounded before anything is sized by them; gaps are allowed (a padded vocabulary), two tokens of one id
// or one text are not.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/tokenizer.h"

namespace wring::text {

/// The longest token that is made of others by score (unigram models, SentencePiece's merges): their search
/// looks at all shorter ones from each character. SentencePiece's default is 16 characters.
inline constexpr std::size_t kMaxScoredBytes = 1024;

/// Published vocabularies end at 262,144; eight times that is still only a table of 64 MiB.
inline constexpr TokenId kMaxTokenId = (1 << 21) - 1;

enum class TokenKind : std::uint8_t {
  kAbsent,   // a gap
  kNormal,   // made by the model from text
  kAdded,    // an added token that documents may contain
  kSpecial,  // an added token that only templates write
  kUnused,   // a row of padding: never encoded
};

/// How the text of a token in a file becomes the bytes that it stands for.
struct TokenCoding {
  bool byte_level = false;  // a character for each byte (byte_level.h)
  /// Otherwise: strings of all tokens that are written differently ("▁" for a blank), in order; and whether
  /// "<0x0A>" is the byte.
  std::vector<std::pair<std::string, std::string>> replacements;
  bool byte_tokens = false;
};

/// How SentencePiece writes a blank: U+2581.
inline constexpr std::string_view kBlankMark = "\u2581";

/// The token of a byte: "<0x0A>".
std::string byte_token(std::uint8_t byte);
/// The byte of such a token.
std::optional<std::uint8_t> byte_of_token(std::string_view text);

class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;
  Vocabulary(const Vocabulary&) = delete;  // entries_ look into ids_
  Vocabulary& operator=(const Vocabulary&) = delete;

  /// `in_model`: the model itself knows the token, whatever else finds it in a text before.
  /// Errors: kBadInput naming id, text and limit, for an id out of [0, kMaxTokenId] or used twice and for a
  /// text used twice.
  void add(std::int64_t id, std::string_view text, TokenKind kind, std::string_view where,
           bool in_model = true);
  /// Changes the kind of a token that is there.
  void set_kind(TokenId id, TokenKind kind) { entries_[static_cast<std::size_t>(id)].kind = kind; }
  /// Call once, after the last add: fills the bytes of every token. `found_as`: tokens that a text holds in
  /// another form than theirs, decoded to that form.
  void finish(TokenCoding coding, const std::map<TokenId, std::string>& found_as = {});

  TokenId size() const { return static_cast<TokenId>(entries_.size()); }  // highest id + 1
  bool contains(std::int64_t id) const;
  TokenKind kind(TokenId id) const;
  /// Whether the model may make it from plain text: it knows the token, and it is neither special nor
  /// padding.
  bool can_be_made(TokenId id) const;
  std::string_view text(TokenId id) const { return entries_[static_cast<std::size_t>(id)].text; }
  std::string_view bytes(TokenId id) const;
  /// The token as the words of a text hold it.
  std::string_view word(TokenId id) const { return is_byte_level() ? bytes(id) : text(id); }
  bool is_byte_level() const { return coding_.byte_level; }
  std::optional<TokenId> find(std::string_view text) const;
  /// Errors: kBadInput naming a normal or added token of more than kMaxScoredBytes.
  void check_scored_lengths(std::string_view where) const;

 private:
  struct Entry {
    std::string_view text;       // a key of ids_, which do not move
    std::size_t bytes_from = 0;  // in bytes_
    std::uint32_t bytes_size = 0;
    TokenKind kind = TokenKind::kAbsent;
    bool in_model = true;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };
  std::vector<Entry> entries_;
  std::unordered_map<std::string, TokenId, Hash, std::equal_to<>> ids_;
  std::string bytes_;
  TokenCoding coding_;
};

}  // namespace wring::text
