// See vocabulary.h.
#include "text/vocabulary.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"
#include "text/byte_level.h"

namespace wring::text {

void Vocabulary::add(std::int64_t id, std::string_view text, TokenKind kind, std::string_view where) {
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
}

void Vocabulary::finish() {
  for (Entry& e : entries_) {
    // Added tokens are text as it is; a normal token with a character outside the table stands for itself
    // too.
    const bool coded = e.kind == TokenKind::kNormal || e.kind == TokenKind::kUnused;
    const auto decoded = coded ? from_byte_level(e.text) : std::nullopt;
    const std::string_view bytes = decoded ? std::string_view(*decoded) : e.text;
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

}  // namespace wring::text
