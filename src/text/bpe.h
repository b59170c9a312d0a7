// Byte-pair encoding of one word: begin with one token a byte or character, and as long as some neighbours
// have a merge, join the pair whose merge ranks first (the leftmost of equals). Source: Sennrich et al. 2016,
// "Neural machine translation of rare words with subword units"; in the order of Hugging Face's models/bpe.
// Time n log n with a heap of candidate pairs, so that a word of ten megabytes is no hazard.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/alphabet.h"
#include "text/vocabulary.h"

namespace wring::text {

struct Merge {
  TokenId left, right, result;
  std::uint32_t rank;  // lower ones come first; pairs of equal rank are joined from the left
};

class Bpe {
 public:
  /// Of two merges of one pair the later in the list counts, as in the reference. With `ignore_merges` a word
  /// that is a token of `vocabulary` is that token.
  Bpe(const Vocabulary& vocabulary, const Alphabet& alphabet, const std::vector<Merge>& merges,
      bool ignore_merges);

  /// Work space of one thread: buffers, and the words it has seen, at most kMaxCached.
  class Scratch {
   public:
    static constexpr std::size_t kMaxCached = std::size_t{1} << 16;
    static constexpr std::size_t kMaxCachedBytes = 64;
    std::size_t words() const { return seen_.size(); }

   private:
    friend class Bpe;
    struct Hash {
      using is_transparent = void;
      std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
    };
    struct Range {
      std::size_t begin;
      std::uint32_t count;
    };
    struct Symbol {
      TokenId id;  // -1: merged into its left neighbour
      std::int32_t previous, next;
    };
    std::unordered_map<std::string, Range, Hash, std::equal_to<>> seen_;
    std::vector<TokenId> seen_ids_;
    std::vector<TokenId> letters_;
    std::vector<Symbol> symbols_;
    std::vector<std::uint64_t> heap_;  // rank in the high half, position in the low one
  };

  /// Appends the ids of `word`, given in bytes. Errors: those of Alphabet::spell.
  void encode(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const;

  /// Whether "a word that is a token is not merged up" changes any word's ids.
  bool ignores_merges() const { return !whole_words_.empty(); }

 private:
  struct Slot {
    std::uint64_t pair = ~std::uint64_t{0};  // left and right id; all ones: empty
    std::uint32_t rank = 0;
    TokenId result = 0;
  };
  const Slot* find(TokenId left, TokenId right) const;
  void insert(const Merge& merge);
  void merge_up(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const;
  void offer(Scratch& scratch, std::int32_t left) const;

  Alphabet alphabet_;
  std::vector<Slot> slots_;  // open addressing, at most half full
  /// The words that are tokens, where that is not what merges make of them too.
  std::unordered_map<std::string, TokenId, Scratch::Hash, std::equal_to<>> whole_words_;
};

}  // namespace wring::text
