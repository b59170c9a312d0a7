#include "quantize/affine_block.h"

#include "quantize/scale_grid.h"

namespace wring::quantize {

AffineBlock fit_affine_block(const float* x, const float* importance, int code_max) noexcept {
  AffineBlock block;
  const float magnitude = largest_magnitude(x, kAffineGroup);
  if (magnitude <= kNothingBelow) return block;
  const ScaleGrid grid(magnitude);
  AffineGroup group;
  for (std::size_t i = 0; i < kAffineGroup; ++i) {
    group.x[i] = grid.from_file(x[i]);
    group.weight[i] = importance != nullptr ? importance[i] : 1.0F;
  }
  group.finish();
  const auto largest_code = static_cast<float>(code_max);

  // The searched fit and the plain one, as float16 holds them.
  AffineFit best;
  bool found = false;
  float least = 0;
  for (const AffineFit& fit :
       {plain_affine_fit(group, largest_code, false), search_affine_fit(group, largest_code, false)}) {
    const AffineFit rounded{grid.round_step(fit.scale), grid.round(fit.minimum)};
    const CodeSums sums = nearest_code_sums(group, rounded.scale, rounded.minimum, largest_code);
    const float error = affine_error(group, sums, rounded.scale, rounded.minimum);
    if (found && !(error < least)) continue;
    found = true;
    best = rounded;
    least = error;
  }
  block.d = grid.bits(best.scale);
  block.m = grid.bits(-best.minimum);
  if (!(best.scale > 0)) return block;
  const Lanes inverse = all_lanes(1.0F / best.scale), shift = all_lanes(best.minimum);
  for (std::size_t i = 0; i < kAffineGroup; i += kLaneCount) {
    const Lanes q = to_codes((load_lanes(group.x.data() + i) + shift) * inverse, largest_code);
    for (std::size_t lane = 0; lane < kLaneCount; ++lane)
      block.codes[i + lane] = static_cast<std::uint8_t>(q[lane]);
  }
  return block;
}

}  // namespace wring::quantize
