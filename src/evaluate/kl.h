// How far a candidate's next-token distribution lies from the reference's: Kullback-Leibler divergence over
// the whole vocabulary at chosen positions, in nats, reference first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "evaluate/scorer.h"

namespace wring::evaluate {

enum class KlPositions {
  kThirtyTwo,  // ⌊(i+1)(T−1)/33⌋ for i = 0 … 31, each once: spread over the document, neither end
  kAll,        // every position that predicts a known token: 0 … T−2
};
std::string_view kl_positions_name(KlPositions positions);  // "32", "all"

/// Rising positions p < T − 1 of a document of T ≥ 2 tokens; row p predicts token p + 1. Documents of fewer
/// than 34 tokens have fewer than 32 distinct ones.
std::vector<std::int64_t> kl_positions(std::int64_t tokens, KlPositions which);

struct KlRow {
  double kl = 0;         // Σ p ln(p / q) ≥ 0, p of the reference; exactly 0 for equal rows
  bool same_top = true;  // both put the same token first (the lowest id of equal ones)
  double delta_p = 0;    // q − p at the token that follows
};

/// Both rows hold vocab_size float32 logits; `next` is the token that follows. Float64, one order of
/// summation.
KlRow compare_rows(std::span<const float> reference, std::span<const float> candidate, TokenId next);

}  // namespace wring::evaluate
