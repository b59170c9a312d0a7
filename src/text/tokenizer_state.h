// What a Tokenizer consists of, filled by tokenizer_hf.cc or tokenizer_gguf.cc and used by tokenizer.cc.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/pretokenizer.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace wring::text {

/// The parts of a definition as a file gives them.
struct TokenizerParts {
  Vocabulary vocabulary;
  std::vector<Merge> merges;
  std::vector<AddedToken> added;
  PreTokenizer pretokenizer;
  bool nfc = false;
  bool ignore_merges = false;
  std::optional<TokenId> bos, eos;
  bool adds_bos = false;
};

struct Tokenizer::State {
  explicit State(TokenizerParts parts);

  void encode_plain(std::string_view text, RegexSearch& search, Bpe::Scratch& scratch,
                    std::vector<TokenId>& out) const;
  std::string compute_hash(const std::vector<AddedToken>& added) const;

  Vocabulary vocabulary;
  Bpe bpe;
  AddedTokens added_raw;         // looked for in the text as it is
  AddedTokens added_normalized;  // looked for after normalization
  PreTokenizer pretokenizer;
  bool nfc;
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
