// A template's source as tokens: text between the tags, already trimmed by Jinja's whitespace rules with the
// settings that Hugging Face uses (trim_blocks and lstrip_blocks on, one final newline dropped), and the
// words and signs inside the tags. Rules: Jinja's documentation, "Template Designer Documentation —
// Whitespace Control".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wring::text::jinja {

enum class TokenKind {
  kText,
  kBlockBegin,
  kBlockEnd,
  kPrintBegin,
  kPrintEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd
};

struct Token {
  TokenKind kind;
  int line;
  std::string text;  // name, operator, or the content of a text or string
  std::int64_t integer = 0;
  double real = 0.0;
};

/// The last token is kEnd. Errors: kBadInput with the line for what is not a template; kNotSupported for an
/// integer above 2^63 - 1.
std::vector<Token> tokenize(std::string_view source);

/// How a message shows it.
std::string describe(const Token& token);

[[noreturn]] void fail_syntax(int line, std::string_view message);         // kBadInput
[[noreturn]] void refuse_construct(int line, std::string_view construct);  // kNotSupported

}  // namespace wring::text::jinja
