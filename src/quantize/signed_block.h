// Blocks of 32 weights with one float16 scale and no minimum: Q4_0, Q5_0, Q8_0 and IQ4_NL differ only in
// their levels.
#pragma once

#include <array>
#include <cstdint>

#include "quantize/scale_grid.h"
#include "quantize/signed_fit.h"

namespace wring::quantize {

struct SignedBlock {
  std::uint16_t d = 0;                               // float16 bits
  std::array<float, formats::kSmallBlock> levels{};  // what d multiplies
};

/// x: 32 finite values; importance: null, or 32 positive ones.
template <class Levels>
SignedBlock fit_signed_block(const Levels& levels, const float* x, const float* importance) {
  SignedBlock block;
  const float magnitude = largest_magnitude(x, formats::kSmallBlock);
  if (magnitude <= kNothingBelow) return block;
  const ScaleGrid grid(magnitude);
  alignas(16) std::array<float, formats::kSmallBlock> scaled, weight;
  for (std::size_t i = 0; i < formats::kSmallBlock; ++i) {
    scaled[i] = grid.from_file(x[i]);
    weight[i] = importance != nullptr ? importance[i] : 1.0F;
  }
  const SignedGroup group = SignedGroup::of(scaled.data(), weight.data(), formats::kSmallBlock);

  // The searched scale and the plain one, as float16 holds them; below its smallest number, that number.
  float best = 0, least = group.sum_wxx;
  for (const float scale :
       {group.extreme / levels.targets()[0], search_scale(levels, group), grid.from_file(kSmallestScale)}) {
    const float rounded = grid.round(scale);
    const float error = signed_error(group, nearest_level_sums(levels, group, rounded), rounded);
    if (error < least) {
      best = rounded;
      least = error;
    }
  }
  if (best == 0) return block;
  block.d = grid.bits(best);
  for (std::size_t i = 0; i < formats::kSmallBlock; i += kLaneCount) {
    store_lanes(block.levels.data() + i,
                levels.nearest(load_lanes(scaled.data() + i) * all_lanes(1.0F / best)));
  }
  return block;
}

}  // namespace wring::quantize
