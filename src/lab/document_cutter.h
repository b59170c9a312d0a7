// Cuts a long text into documents that each hold enough tokens to be evaluated on the first N of them, at
// places where a reader would pause.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace wring::lab {

/// Tokens of a text. Must grow with the text; need not be exactly additive over pieces.
using TokenCounter = std::function<std::int64_t(std::string_view)>;

/// About one token in four bytes: what is used where no tokenizer is given.
std::int64_t estimated_tokens(std::string_view text);

struct CutText {
  std::vector<std::string_view> documents;  // into the text, in order; none begins or ends with a blank line
  std::size_t left_over_bytes = 0;          // at the end, too short to be a document
};

/// Each document is at least `tokens` tokens by `count`, and ends at the first end of a paragraph (blank
/// line) after that; where none comes before a quarter more, at the end of a line; lines over 2,000 bytes may
/// be cut at a blank, else between characters. `text` is valid UTF-8 with \n line ends. Linear time if
/// `count` is.
CutText cut_documents(std::string_view text, std::int64_t tokens, const TokenCounter& count);

}  // namespace wring::lab
