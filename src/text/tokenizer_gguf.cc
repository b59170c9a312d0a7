// Tokenizer::from_gguf: the keys tokenizer.ggml.*. Source: the GGUF specification of the ggml project.
#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/gguf.h"
#include "text/pretokenizer_gguf.h"
#include "text/tokenizer_state.h"

namespace wring::text {

namespace {

namespace token_type = formats::token_type;

TokenKind kind_of(std::int64_t type, std::size_t index, const std::string& where) {
  switch (type) {
    case token_type::kNormal:
    case token_type::kByte:  // of SentencePiece; here an ordinary token
      return TokenKind::kNormal;
    case token_type::kUnknown:
    case token_type::kControl:
      return TokenKind::kSpecial;
    case token_type::kUserDefined:
      return TokenKind::kAdded;
    case token_type::kUnused:
      return TokenKind::kUnused;
    default:
      throw Error(ErrorCode::kBadInput, fmt::format("token {} has the type {}, outside [1, 6]", index, type),
                  where + ", tokenizer.ggml.token_type");
  }
}

void read_tokens(const formats::GgufReader& file, TokenizerParts& out) {
  const std::string where = file.file() + ", tokenizer.ggml.tokens";
  const auto& tokens = file.strings("tokenizer.ggml.tokens");
  if (tokens.empty()) throw Error(ErrorCode::kBadInput, "the vocabulary is empty", where);
  if (tokens.size() > static_cast<std::size_t>(kMaxTokenId) + 1) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} tokens, more than {}", tokens.size(), std::int64_t{kMaxTokenId} + 1), where);
  }
  std::vector<std::int64_t> types(tokens.size(), token_type::kNormal);
  if (file.has("tokenizer.ggml.token_type")) {
    types = file.integers("tokenizer.ggml.token_type");
    if (types.size() != tokens.size()) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("{} token types for {} tokens", types.size(), tokens.size()),
                  file.file() + ", tokenizer.ggml.token_type");
    }
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!is_valid_utf8(tokens[i])) {
      throw Error(ErrorCode::kBadInput, fmt::format("token {} ('{}') is not UTF-8", i, printable(tokens[i])),
                  where);
    }
    const TokenKind kind = kind_of(types[i], i, file.file());
    out.vocabulary.add(static_cast<std::int64_t>(i), tokens[i], kind, where);
    if (kind == TokenKind::kSpecial || kind == TokenKind::kAdded) {
      out.added.push_back(
          {.id = static_cast<TokenId>(i), .text = tokens[i], .special = kind == TokenKind::kSpecial});
    }
  }
}

std::optional<TokenId> token_key(const formats::GgufReader& file, std::string_view key, TokenId vocab_size) {
  if (!file.has(key)) return std::nullopt;
  return static_cast<TokenId>(file.integer(key, 0, vocab_size - 1));
}

}  // namespace

Tokenizer Tokenizer::from_gguf(const formats::GgufReader& file) {
  const std::string& model = file.string("tokenizer.ggml.model");
  if (model != "gpt2") {
    throw Error(ErrorCode::kNotSupported,
                fmt::format("the tokenizer model '{}' is not supported", printable(model)),
                file.file() + ", tokenizer.ggml.model", "supported: gpt2 (byte-level BPE)");
  }
  if (!file.has("tokenizer.ggml.pre")) {
    throw Error(ErrorCode::kNotSupported, "the file does not name its pre-tokenizer",
                file.file() + ", tokenizer.ggml.pre", "convert the model again with a current converter");
  }
  NamedPreTokenizer named = named_pretokenizer(file.string("tokenizer.ggml.pre"), file.file());
  TokenizerParts parts;
  parts.pretokenizer = std::move(named.rules);
  parts.nfc = named.nfc;
  parts.ignore_merges = named.ignore_merges;
  read_tokens(file, parts);

  const std::string merges_where = file.file() + ", tokenizer.ggml.merges";
  const auto& merges = file.strings("tokenizer.ggml.merges");
  parts.merges.reserve(merges.size());
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const auto [left, right] = split_merge(merges[i], i, merges_where);
    parts.merges.push_back(make_merge(parts.vocabulary, left, right, i, merges_where));
  }
  parts.bos = token_key(file, "tokenizer.ggml.bos_token_id", parts.vocabulary.size());
  parts.eos = token_key(file, "tokenizer.ggml.eos_token_id", parts.vocabulary.size());
  parts.adds_bos = file.boolean_or("tokenizer.ggml.add_bos_token", named.adds_bos && parts.bos.has_value());
  if (parts.adds_bos && !parts.bos) {
    throw Error(ErrorCode::kBadInput, "add_bos_token is true, but there is no tokenizer.ggml.bos_token_id",
                file.file() + ", tokenizer.ggml.add_bos_token");
  }
  return Tokenizer(std::make_unique<State>(std::move(parts)));
}

}  // namespace wring::text
