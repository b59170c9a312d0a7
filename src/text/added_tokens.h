// Added tokens: whole strings that become one token before any other rule sees the text ("<|im_start|>").
// Found leftmost first, longest first. Source: AddedVocabulary of Hugging Face's tokenizers, whose flags
// these are.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace wring::text {

struct AddedToken {
  TokenId id = 0;
  std::string text;
  bool special = false;      // not read from documents (Specials::kPlain)
  bool single_word = false;  // only where no letter or digit touches it
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // and after it
  bool normalized = false;   // looked for in the normalized text
};

class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> tokens);

  bool empty() const { return sorted_.empty(); }

  using PlainText = std::function<void(std::string_view)>;
  using Token = std::function<void(TokenId)>;
  /// Calls `plain` and `token` for the parts of `text` in order; special tokens are passed over if `specials`
  /// is kPlain.
  void split(std::string_view text, Specials specials, const PlainText& plain, const Token& token) const;

 private:
  const AddedToken* longest_at(std::string_view text, std::size_t at) const;

  std::vector<AddedToken> sorted_;          // by text, bytewise
  std::array<std::uint32_t, 257> first_{};  // sorted_[first_[b], first_[b + 1]) begin with the byte b
};

}  // namespace wring::text
