// See vocabulary.h.
#include "text/vocabulary.h"

#include <fmt/format.h>

#include <charconv>

#include "base/error.h"
#include "base/utf8.h"
#include "text/byte_level.h"
#include "text/replace_string.h"

namespace wring::text {

namespace {

std::string decode(std::string_view text, TokenKind kind, const TokenCoding& coding) {
  if (coding.byte_level) {
    // Added tokens are text as it is; a normal token with a character outside the table stands for itself
    // too.
    const bool coded = kind == TokenKind::kNormal || kind == TokenKind::kUnused;
    const auto decoded = coded ? from_byte_level(text) : std::nullopt;
    return decoded ? *decoded : std::string(text);
  }
  if (coding.byte_tokens) {
    if (const auto byte = byte_of_token(text)) return {static_cast<char>(*byte)};
  }
  std::string out(text);
  for (const auto& [pattern, content] : coding.replacements) {
    out = replace_string(out, pattern, content);
    check_growth(text.size(), out.size());
  }
  return out;
}

}  // namespace

std::string byte_token(std::uint8_t byte) {
  return fmt::format("<0x{:02X}>", byte);
}

std::optional<std::uint8_t> byte_of_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  std::uint8_t byte = 0;
  const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
  if (error != std::errc() || end != text.data() + 5) return std::nullopt;
  return byte;
}

void Vocabulary::add(std::int64_t id, std::string_view text, TokenKind kind, std::string_view where,
                     bool in_model) {
  if (id < 0 || id > kMaxTokenId) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("token id {} of '{}' is outside [0, {}]", id, printable(text), kMaxTokenId),
                std::string(where));
  }
  const auto index = static_cast<std::size_t>(id);
  if (index < entries_.size() && entries_[index].kind != TokenKind::kAbsent) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("token id {} is used twice, for '{}' and '{}'", id,
                            printable(entries_[index].text), printable(text)),
                std::string(where));
  }
  const auto [place, is_new] = ids_.try_emplace(std::string(text), static_cast<TokenId>(id));
  if (!is_new) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("the token '{}' has two ids, {} and {}", printable(text), place->second, id),
                std::string(where));
  }
  if (index >= entries_.size()) entries_.resize(index + 1);
  entries_[index].text = place->first;
  entries_[index].kind = kind;
  entries_[index].in_model = in_model;
}

void Vocabulary::finish(TokenCoding coding, const std::map<TokenId, std::string>& found_as) {
  coding_ = std::move(coding);
  for (TokenId id = 0; id < size(); ++id) {
    Entry& e = entries_[static_cast<std::size_t>(id)];
    const auto found = found_as.find(id);
    const std::string bytes =
        decode(found == found_as.end() ? e.text : std::string_view(found->second), e.kind, coding_);
    e.bytes_from = bytes_.size();
    e.bytes_size = static_cast<std::uint32_t>(bytes.size());
    bytes_ += bytes;
  }
}

bool Vocabulary::contains(std::int64_t id) const {
  return id >= 0 && id < size() && entries_[static_cast<std::size_t>(id)].kind != TokenKind::kAbsent;
}

TokenKind Vocabulary::kind(TokenId id) const {
  return contains(id) ? entries_[static_cast<std::size_t>(id)].kind : TokenKind::kAbsent;
}

bool Vocabulary::can_be_made(TokenId id) const {
  const TokenKind k = kind(id);
  return (k == TokenKind::kNormal || k == TokenKind::kAdded) &&
         entries_[static_cast<std::size_t>(id)].in_model;
}

std::string_view Vocabulary::bytes(TokenId id) const {
  if (!contains(id)) return {};
  const Entry& e = entries_[static_cast<std::size_t>(id)];
  return std::string_view(bytes_).substr(e.bytes_from, e.bytes_size);
}

std::optional<TokenId> Vocabulary::find(std::string_view text) const {
  const auto found = ids_.find(text);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

void Vocabulary::check_scored_lengths(std::string_view where) const {
  for (TokenId id = 0; id < size(); ++id) {
    if (!can_be_made(id)) continue;
    if (text(id).size() <= kMaxScoredBytes) continue;
    throw Error(ErrorCode::kBadInput,
                fmt::format("token {} has {} bytes, one that is made by score at most {}", id,
                            text(id).size(), kMaxScoredBytes),
                std::string(where));
  }
}

}  // namespace wring::text
