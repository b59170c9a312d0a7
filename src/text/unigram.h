// The unigram language model: of all ways to cut a word into pieces, the one whose scores (log-probabilities)
// have the highest sum. A character that begins no piece of its own counts as unknown, with a penalty.
// Source: Kudo 2018, "Subword regularization"; the Viterbi search as in SentencePiece's unigram_model and
// Hugging Face's models/unigram. Time: bytes of the word × those of the longest piece, at most.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/alphabet.h"
#include "text/vocabulary.h"

namespace wring::text {

class Unigram {
 public:
  /// `scores` by id, finite. Pieces are the tokens that text can become: normal and added ones, not bytes.
  Unigram(const Vocabulary& vocabulary, const Alphabet& alphabet, std::span<const double> scores);

  /// Work space of one thread.
  class Scratch {
   private:
    friend class Unigram;
    struct Node {  // the best way to cut the word up to here
      double score;
      std::int32_t begin;  // of the last piece; -1: no way yet
      TokenId id;          // of the last piece; -1: unknown
    };
    std::vector<Node> nodes_;
    std::vector<std::int32_t> ends_;
  };

  /// Appends the ids of `word`, given in bytes. Errors: those of Alphabet::spell for unknown characters.
  void encode(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const;

 private:
  struct State {  // of the trie over pieces
    TokenId id = -1;
    double score = 0;
  };
  void add(std::string_view piece, TokenId id, double score);
  void search(std::string_view word, std::vector<Scratch::Node>& nodes) const;

  Alphabet alphabet_;
  double unknown_score_ = 0;
  std::vector<State> states_;
  std::unordered_map<std::uint64_t, std::uint32_t> edges_;  // state << 8 | byte -> state
};

}  // namespace wring::text
