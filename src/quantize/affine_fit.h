// Scale and minimum of a group of 32 weights: x ≈ scale · q − minimum with codes q in 0 … code_max, by search
// over candidates with the weighted squared error, each solved in closed form for the codes that it gives,
// then alternation of codes and solution. The weighted least-squares problem of k-means on a uniform grid
// (Lloyd 1982); the outer search follows the practice of ggml's K-quants and goes over both ends of the
// range.
#pragma once

#include <array>

#include "quantize/lanes.h"

namespace wring::quantize {

inline constexpr std::size_t kAffineGroup = 32;

/// The weights of one group and the sums that do not depend on codes.
struct AffineGroup {
  alignas(16) std::array<float, kAffineGroup> x;
  alignas(16) std::array<float, kAffineGroup> weight;  // > 0
  float low = 0, high = 0;                             // of x
  float sum_w = 0, sum_wx = 0, sum_wxx = 0;

  /// Computes everything below `weight`.
  void finish();
};

/// Σ w·q, Σ w·q², Σ w·q·x over a group for some codes q.
struct CodeSums {
  float q = 0, qq = 0, qx = 0;
};

/// The sums for the codes that are nearest under (scale, minimum); a scale of 0 has all codes 0.
CodeSums nearest_code_sums(const AffineGroup& group, float scale, float minimum, float code_max);

/// Σ w (x − scale·q + minimum)² from the sums.
inline float affine_error(const AffineGroup& group, const CodeSums& sums, float scale, float minimum) {
  return group.sum_wxx + scale * (scale * sums.qq - 2 * sums.qx - 2 * minimum * sums.q) +
         minimum * (minimum * group.sum_w + 2 * group.sum_wx);
}

struct AffineFit {
  float scale = 0, minimum = 0;
};

/// The plain fit: the range of the values (and 0, where minimum must be ≥ 0) divided evenly.
AffineFit plain_affine_fit(const AffineGroup& group, float code_max, bool minimum_not_negative);

/// The searched fit. `minimum_not_negative`: K-quants store only minimum ≥ 0.
AffineFit search_affine_fit(const AffineGroup& group, float code_max, bool minimum_not_negative);

}  // namespace wring::quantize
