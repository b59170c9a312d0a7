// Which token comes next. Randomness is counter-based (Philox 4x32-10, Salmon et al. 2011), keyed by (seed,
// choice) and counted by absolute position: one uniform a position, inverse distribution in token order in
// float64. So a position draws the same sample however it was reached: alone, in a batch, or as the verified
// row of a draft.
#pragma once

#include <cstdint>
#include <span>

#include "engine/batch.h"

namespace wring::engine {

struct SamplingParams {
  double temperature = 0;  // 0: greedy; the lowest id wins ties
  int top_k = 0;           // 0: all
  double top_p = 1;
  double min_p = 0;
  std::uint64_t seed = 0;
  std::uint32_t choice = 0;  // which of a request's n choices
};

/// A uniform in [0, 1) with 53 bits.
double uniform_at(std::uint64_t seed, std::uint32_t choice, std::int64_t position);

class Sampler {
 public:
  /// Errors: kUsage naming the parameter and its range.
  explicit Sampler(const SamplingParams& params);

  /// The token for `position`, given the logits of the position before it. Deterministic. Keeps scratch: one
  /// object a sequence.
  TokenId sample(std::span<const float> logits, std::int64_t position);

 private:
  SamplingParams params_;
  std::vector<std::int32_t> order_;
  std::vector<double> weights_;
};

/// The highest logit's id, the lowest id where several are equal.
TokenId argmax(std::span<const float> logits);

}  // namespace wring::engine
