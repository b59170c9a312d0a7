// Search in a sorted list: each further byte of the text narrows the range of tokens that begin so
// (added_tokens.h).
#include "text/added_tokens.h"

#include <utf8proc.h>

#include <algorithm>

namespace wring::text {

namespace {

// The character that begins at `at`, or -1.
utf8proc_int32_t character_at(std::string_view text, std::size_t at) {
  utf8proc_int32_t c = -1;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                   static_cast<utf8proc_ssize_t>(text.size() - at), &c);
  return c;
}

// Where the character before `end` begins; `end` > 0.
std::size_t previous_character(std::string_view text, std::size_t end) {
  std::size_t at = end - 1;
  while (at > 0 && end - at < 4 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

bool is_white_space(utf8proc_int32_t c) {
  if (c < 0) return false;
  const auto category = utf8proc_category(c);
  return (c >= 9 && c <= 13) || c == 0x85 || category == UTF8PROC_CATEGORY_ZS ||
         category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

bool is_word(utf8proc_int32_t c) {
  if (c < 0) return false;
  const auto category = utf8proc_category(c);
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_ND) ||
         category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_PC;
}

bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
  const bool left = begin > 0 && is_word(character_at(text, previous_character(text, begin)));
  const bool right = end < text.size() && is_word(character_at(text, end));
  return !left && !right;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : sorted_(std::move(tokens)) {
  std::erase_if(sorted_, [](const AddedToken& t) { return t.text.empty(); });
  std::ranges::stable_sort(sorted_, {}, &AddedToken::text);
  const auto same_text = [](const AddedToken& a, const AddedToken& b) { return a.text == b.text; };
  sorted_.erase(std::unique(sorted_.begin(), sorted_.end(), same_text), sorted_.end());  // the first is found
  std::uint32_t at = 0;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    first_[byte] = at;
    while (at < sorted_.size() && static_cast<unsigned char>(sorted_[at].text[0]) == byte) ++at;
  }
  first_[256] = at;
}

const AddedToken* AddedTokens::longest_at(std::string_view text, std::size_t at) const {
  const auto byte = static_cast<unsigned char>(text[at]);
  auto low = sorted_.begin() + first_[byte], high = sorted_.begin() + first_[byte + 1u];
  const AddedToken* best = nullptr;
  for (std::size_t length = 1; low != high; ++length) {
    if (low->text.size() == length) best = &*low++;  // the shortest of a range stands first
    if (at + length >= text.size()) break;
    const auto next = static_cast<unsigned char>(text[at + length]);
    const auto at_byte = [length](const AddedToken& t) { return static_cast<unsigned char>(t.text[length]); };
    low = std::ranges::lower_bound(low, high, next, {}, at_byte);
    high = std::ranges::upper_bound(low, high, next, {}, at_byte);
  }
  return best;
}

void AddedTokens::split(std::string_view text, Specials specials, const PlainText& plain,
                        const Token& token) const {
  std::size_t done = 0, at = 0;
  std::size_t blank_until = 0;  // white space seen behind a token: not looked through again
  while (at < text.size() && !sorted_.empty()) {
    const AddedToken* found = longest_at(text, at);
    if (found == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = at + found->text.size();
    at = end;
    if (found->special && specials == Specials::kPlain) continue;
    if (found->single_word && !stands_alone(text, begin, end)) continue;
    if (found->lstrip) {
      while (begin > done) {
        const std::size_t before = previous_character(text, begin);
        if (before < done || !is_white_space(character_at(text, before))) break;
        begin = before;
      }
    }
    if (found->rstrip) {
      end = std::max(end, blank_until);
      while (end < text.size() && is_white_space(character_at(text, end))) {
        do ++end;
        while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
      }
    }
    if (found->rstrip) blank_until = end;
    if (begin > done) plain(text.substr(done, begin - done));
    token(found->id);
    // As in the reference the search goes on behind the token itself: one made of the blanks just taken is
    // still found.
    done = end;
  }
  if (done < text.size()) plain(text.substr(done));
}

}  // namespace wring::text
