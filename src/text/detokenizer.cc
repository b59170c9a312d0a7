// StreamingDetokenizer (tokenizer.h): holds back bytes that may still become a character.
#include <algorithm>

#include "base/utf8.h"
#include "text/tokenizer.h"

namespace wring::text {

namespace {

// How many bytes at the end of `text` are the beginning of a character whose rest may follow: 0 to 3.
std::size_t unfinished_bytes(std::string_view text) {
  for (std::size_t n = 1; n <= 3 && n <= text.size(); ++n) {
    const std::string tail(text.substr(text.size() - n));
    const auto lead = static_cast<unsigned char>(tail[0]);
    const std::size_t length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (n >= length) continue;
    // Whatever the lead byte, one of the two ends of the range of continuation bytes may follow it.
    if (is_valid_utf8(tail + std::string(length - n, '\x80')) ||
        is_valid_utf8(tail + std::string(length - n, '\xBF'))) {
      return n;
    }
  }
  return 0;
}

}  // namespace

std::string StreamingDetokenizer::push(TokenId id) {
  if (skip_specials_ && tokenizer_->is_special(id)) return {};
  held_ += tokenizer_->bytes_of(id);
  const std::size_t complete = held_.size() - unfinished_bytes(held_);
  std::string piece = replace_invalid_utf8(std::string_view(held_).substr(0, complete));
  held_.erase(0, complete);
  return piece;
}

std::string StreamingDetokenizer::finish() {
  std::string piece = replace_invalid_utf8(held_);
  held_.clear();
  return piece;
}

}  // namespace wring::text
