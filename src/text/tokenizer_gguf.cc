// Tokenizer::from_gguf: the keys tokenizer.ggml.*. Source: the GGUF specification of the ggml project.
#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/gguf.h"
#include "text/pretokenizer_gguf.h"
#include "text/score_merges.h"
#include "text/tokenizer_state.h"
#include "text/vocabulary_gguf.h"

namespace wring::text {

namespace {

void read_tokens(const formats::GgufReader& file, TokenizerParts& out) {
  out.vocabulary =
      vocabulary_from_gguf(file.strings("tokenizer.ggml.tokens"), token_types(file), file.file());
  for (TokenId id = 0; id < out.vocabulary.size(); ++id) {
    const TokenKind kind = out.vocabulary.kind(id);
    if (kind != TokenKind::kSpecial && kind != TokenKind::kAdded) continue;
    out.added.push_back(
        {.id = id, .text = std::string(out.vocabulary.text(id)), .special = kind == TokenKind::kSpecial});
  }
}

std::optional<TokenId> token_key(const formats::GgufReader& file, const char* name,
                                 const Vocabulary& vocabulary, std::optional<TokenId> fallback) {
  const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
  if (!file.has(key)) return fallback && vocabulary.contains(*fallback) ? fallback : std::nullopt;
  return static_cast<TokenId>(file.integer(key, 0, vocabulary.size() - 1));
}

// BOS, EOS and whether BOS stands before a text; the fallbacks are those of llama.cpp.
void read_special_ids(const formats::GgufReader& file, std::optional<TokenId> bos, std::optional<TokenId> eos,
                      bool adds_bos, TokenizerParts& out) {
  out.bos = token_key(file, "bos", out.vocabulary, bos);
  out.eos = token_key(file, "eos", out.vocabulary, eos);
  out.adds_bos = file.boolean_or("tokenizer.ggml.add_bos_token", adds_bos && out.bos.has_value());
  if (out.adds_bos && !out.bos) {
    throw Error(ErrorCode::kBadInput, "add_bos_token is true, but there is no tokenizer.ggml.bos_token_id",
                file.file() + ", tokenizer.ggml.add_bos_token");
  }
}

TokenizerParts byte_level_bpe(const formats::GgufReader& file) {
  if (!file.has("tokenizer.ggml.pre")) {
    throw Error(ErrorCode::kNotSupported, "the file does not name its pre-tokenizer",
                file.file() + ", tokenizer.ggml.pre", "convert the model again with a current converter");
  }
  NamedPreTokenizer named = named_pretokenizer(file.string("tokenizer.ggml.pre"), file.file());
  TokenizerParts parts;
  parts.coding.byte_level = true;
  parts.pretokenizer = std::move(named.rules);
  if (named.nfc) parts.normalizer.add_nfc();
  read_tokens(file, parts);

  const std::string where = file.file() + ", tokenizer.ggml.merges";
  const auto& lines = file.strings("tokenizer.ggml.merges");
  std::vector<Merge> merges;
  merges.reserve(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto [left, right] = split_merge(lines[i], i, where);
    merges.push_back(make_merge(parts.vocabulary, left, right, i, where));
  }
  parts.model = BpeDefinition{std::move(merges), named.ignore_merges};
  read_special_ids(file, std::nullopt, std::nullopt, named.adds_bos, parts);
  return parts;
}

// The blanks of SentencePiece, which its two models share.
void set_sentencepiece_rules(const formats::GgufReader& file, TokenizerParts& out) {
  const bool prefix = file.boolean_or("tokenizer.ggml.add_space_prefix", true);
  if (prefix) out.normalizer.add_prepend(std::string(kBlankMark));
  out.normalizer.add_replace(" ", std::string(kBlankMark));
  out.coding = {.byte_level = false, .replacements = {{std::string(kBlankMark), " "}}, .byte_tokens = true};
  out.strips_leading_blank = prefix;
  out.fallbacks = {
      .bytes = true, .unk = token_key(file, "unknown", out.vocabulary, std::nullopt), .fuse_unk = true};
}

const std::vector<double>& read_scores(const formats::GgufReader& file, const Vocabulary& vocabulary) {
  vocabulary.check_scored_lengths(file.file() + ", tokenizer.ggml.tokens");
  const std::vector<double>& scores = file.numbers("tokenizer.ggml.scores");
  if (scores.size() != static_cast<std::size_t>(vocabulary.size())) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} scores for {} tokens", scores.size(), vocabulary.size()),
                file.file() + ", tokenizer.ggml.scores");
  }
  return scores;
}

TokenizerParts sentencepiece_bpe(const formats::GgufReader& file) {
  TokenizerParts parts;
  read_tokens(file, parts);
  set_sentencepiece_rules(file, parts);
  parts.model =
      BpeDefinition{merges_from_scores(parts.vocabulary, read_scores(file, parts.vocabulary)), false};
  read_special_ids(file, 1, 2, true, parts);
  return parts;
}

TokenizerParts unigram(const formats::GgufReader& file) {
  for (const char* key :
       {"tokenizer.ggml.remove_extra_whitespaces", "tokenizer.ggml.treat_whitespace_as_suffix"}) {
    if (!file.boolean_or(key, false)) continue;
    throw Error(ErrorCode::kNotSupported, fmt::format("{} is true, which is not supported", key),
                file.file());
  }
  if (file.has("tokenizer.ggml.precompiled_charsmap")) {
    throw Error(ErrorCode::kNotSupported, "a table of character replacements is not supported",
                file.file() + ", tokenizer.ggml.precompiled_charsmap");
  }
  TokenizerParts parts;
  read_tokens(file, parts);
  set_sentencepiece_rules(file, parts);
  parts.model = UnigramDefinition{read_scores(file, parts.vocabulary)};
  read_special_ids(file, std::nullopt, 1, false, parts);
  return parts;
}

TokenizerParts read_parts(const formats::GgufReader& file) {
  const std::string& model = file.string("tokenizer.ggml.model");
  if (model == "gpt2") return byte_level_bpe(file);
  if (model == "llama") return sentencepiece_bpe(file);
  if (model == "t5") return unigram(file);
  throw Error(ErrorCode::kNotSupported,
              fmt::format("the tokenizer model '{}' is not supported", printable(model)),
              file.file() + ", tokenizer.ggml.model",
              "supported: gpt2 (byte-level BPE), llama (SentencePiece's BPE), t5 (unigram)");
}

}  // namespace

Tokenizer Tokenizer::from_gguf(const formats::GgufReader& file) {
  return Tokenizer(std::make_unique<State>(read_parts(file)));
}

}  // namespace wring::text
