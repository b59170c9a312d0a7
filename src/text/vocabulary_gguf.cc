// See vocabulary_gguf.h.
#include "text/vocabulary_gguf.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/gguf.h"

namespace wring::text {

namespace {

TokenKind kind_of(std::int64_t type, std::size_t index, std::string_view file) {
  switch (type) {
    case formats::token_type::kNormal:
    case formats::token_type::kByte:  // told by its text
      return TokenKind::kNormal;
    case formats::token_type::kUnknown:
    case formats::token_type::kControl:
      return TokenKind::kSpecial;
    case formats::token_type::kUserDefined:
      return TokenKind::kAdded;
    case formats::token_type::kUnused:
      return TokenKind::kUnused;
    default:
      throw Error(ErrorCode::kBadInput, fmt::format("token {} has the type {}, outside [1, 6]", index, type),
                  fmt::format("{}, tokenizer.ggml.token_type", file));
  }
}

}  // namespace

std::vector<std::int64_t> token_types(const formats::GgufReader& file) {
  if (file.has("tokenizer.ggml.token_type")) return file.integers("tokenizer.ggml.token_type");
  return std::vector<std::int64_t>(file.strings("tokenizer.ggml.tokens").size(),
                                   formats::token_type::kNormal);
}

Vocabulary vocabulary_from_gguf(std::span<const std::string> texts, std::span<const std::int64_t> types,
                                std::string_view file) {
  const std::string where = fmt::format("{}, tokenizer.ggml.tokens", file);
  if (texts.empty()) throw Error(ErrorCode::kBadInput, "the vocabulary is empty", where);
  if (texts.size() > static_cast<std::size_t>(kMaxTokenId) + 1) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} tokens, more than {}", texts.size(), std::int64_t{kMaxTokenId} + 1), where);
  }
  if (types.size() != texts.size()) {
    throw Error(ErrorCode::kBadInput, fmt::format("{} token types for {} tokens", types.size(), texts.size()),
                fmt::format("{}, tokenizer.ggml.token_type", file));
  }
  Vocabulary out;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (!is_valid_utf8(texts[i])) {
      throw Error(ErrorCode::kBadInput, fmt::format("token {} ('{}') is not UTF-8", i, printable(texts[i])),
                  where);
    }
    out.add(static_cast<std::int64_t>(i), texts[i], kind_of(types[i], i, file), where);
  }
  return out;
}

}  // namespace wring::text
