// What a Tokenizer consists of, filled by tokenizer_hf.cc or tokenizer_gguf.cc and used by tokenizer.cc.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "text/added_tokens.h"
#include "text/alphabet.h"
#include "text/bpe.h"
#include "text/normalizer.h"
#include "text/pretokenizer.h"
#include "text/tokenizer.h"
#include "text/unigram.h"
#include "text/vocabulary.h"

namespace wring::text {

/// The models: how a word becomes tokens.
struct BpeDefinition {
  std::vector<Merge> merges;
  bool ignore_merges = false;
};
struct UnigramDefinition {
  std::vector<double> scores;  // by id
};

/// The parts of a definition as a file gives them.
struct TokenizerParts {
  Vocabulary vocabulary;
  TokenCoding coding;
  bool strips_leading_blank = false;
  Fallbacks fallbacks;
  std::variant<BpeDefinition, UnigramDefinition> model;
  std::vector<AddedToken> added;
  Normalizer normalizer;
  PreTokenizer pretokenizer;
  std::optional<TokenId> bos, eos;
  bool adds_bos = false;
};

struct Tokenizer::State {
  explicit State(TokenizerParts parts);

  /// Work space of one call of encode().
  struct Scratch {
    explicit Scratch(std::size_t text_bytes) : search(text_bytes) {}
    RegexSearch search;
    Bpe::Scratch bpe;
    Unigram::Scratch unigram;
  };
  /// Ids of a piece of normalized text without added tokens.
  void encode_plain(std::string_view text, bool begins_text, Scratch& scratch,
                    std::vector<TokenId>& out) const;
  /// Of the parts that are kept here, and of the model and added tokens in `parts`.
  std::string compute_hash(const TokenizerParts& parts) const;

  Vocabulary vocabulary;
  std::variant<Bpe, Unigram> model;
  Normalizer normalizer;
  AddedTokens added_raw;         // looked for in the text as it is
  AddedTokens added_normalized;  // looked for after normalization
  PreTokenizer pretokenizer;
  bool strips_leading_blank;
  std::optional<TokenId> bos, eos;
  bool adds_bos;
  std::string hash;
};

/// Splits "a b" into its two parts. Errors: kBadInput naming the merge's index.
std::pair<std::string_view, std::string_view> split_merge(std::string_view line, std::size_t index,
                                                          std::string_view where);

/// The merge of two tokens of `vocabulary`. Errors: kBadInput naming the index and the token that is missing.
Merge make_merge(const Vocabulary& vocabulary, std::string_view left, std::string_view right,
                 std::size_t index, std::string_view where);

}  // namespace wring::text
