// The divergence of two rows of logits.
#include "evaluate/kl.h"

#include <algorithm>

#include "base/portable_math.h"

namespace wring::evaluate {

std::string_view kl_positions_name(KlPositions positions) {
  return positions == KlPositions::kAll ? "all" : "32";
}

std::vector<std::int64_t> kl_positions(std::int64_t tokens, KlPositions which) {
  std::vector<std::int64_t> positions;
  if (which == KlPositions::kAll) {
    for (std::int64_t p = 0; p + 1 < tokens; ++p) positions.push_back(p);
    return positions;
  }
  for (std::int64_t i = 0; i < 32; ++i) {
    const std::int64_t p = (i + 1) * (tokens - 1) / 33;
    if (positions.empty() || p > positions.back()) positions.push_back(p);
  }
  return positions;
}

KlRow compare_rows(std::span<const float> reference, std::span<const float> candidate, TokenId next) {
  // With r, c the logits, R, C their maxima and S = Σ exp(r − R):
  //   KL = Σ exp(r − R) (r − c) / S − (ln Σ exp r − ln Σ exp c),
  // in which equal rows give 0 − 0.
  const double top_r = *std::max_element(reference.begin(), reference.end());
  const double top_c = *std::max_element(candidate.begin(), candidate.end());
  double sum_r = 0, sum_c = 0, weighted = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const double r = reference[i], c = candidate[i];
    const double p = portable_exp(r - top_r);
    sum_r += p;
    sum_c += portable_exp(c - top_c);
    weighted += p * (r - c);
  }
  const double normalizer_r = top_r + portable_log(sum_r);
  const double normalizer_c = top_c + portable_log(sum_c);
  KlRow row;
  // Never negative but for rounding (about 1e-15), which would look odd in a table.
  row.kl = std::max(0.0, weighted / sum_r - (normalizer_r - normalizer_c));
  row.same_top = engine::argmax(reference) == engine::argmax(candidate);
  const auto at = static_cast<std::size_t>(next);
  row.delta_p = portable_exp(candidate[at] - normalizer_c) - portable_exp(reference[at] - normalizer_r);
  return row;
}

}  // namespace wring::evaluate
