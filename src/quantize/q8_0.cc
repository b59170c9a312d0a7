// Q8_0: 32 weights in 34 bytes, x ≈ d·q with q in −127 … 127. The scale is searched a little around the plain
// one.
#include <array>

#include "quantize/block_codecs.h"
#include "quantize/lanes.h"
#include "quantize/scale_grid.h"

namespace wring::quantize {
namespace {

constexpr float kLargestCode = 127;
/// Where the largest magnitude falls: on 127 (the plain fit), a little beyond (it is clipped), or below.
constexpr std::array<float, 7> kTargets = {127.0F, 127.4F, 126.7F, 127.8F, 126.3F, 128.2F, 125.9F};

struct Scaled {
  alignas(16) std::array<float, formats::kSmallBlock> x;
  alignas(16) std::array<float, formats::kSmallBlock> weight;
};

Lanes signed_codes(Lanes x, float inverse) {
  return to_codes(x * all_lanes(inverse) + all_lanes(kLargestCode), 2 * kLargestCode) -
         all_lanes(kLargestCode);
}

float error_of(const Scaled& block, float d) {
  const float inverse = 1.0F / d;
  Lanes sum = {};
  for (std::size_t i = 0; i < formats::kSmallBlock; i += kLaneCount) {
    const Lanes x = load_lanes(block.x.data() + i), off = x - all_lanes(d) * signed_codes(x, inverse);
    sum += load_lanes(block.weight.data() + i) * off * off;
  }
  return sum_of(sum);
}

}  // namespace

void quantize_blocks(const float* x, const float* importance, std::size_t n,
                     formats::BlockQ8_0* out) noexcept {
  for (std::size_t at = 0; at < n; at += formats::kSmallBlock, ++out) {
    *out = {};
    const float magnitude = largest_magnitude(x + at, formats::kSmallBlock);
    if (magnitude <= kNothingBelow) continue;
    const ScaleGrid grid(magnitude);
    Scaled block;
    for (std::size_t i = 0; i < formats::kSmallBlock; ++i) {
      block.x[i] = grid.from_file(x[at + i]);
      block.weight[i] = importance != nullptr ? importance[at + i] : 1.0F;
    }
    float best = 0, least = 0;
    for (const float target : kTargets) {
      const float d = grid.round(grid.from_file(magnitude) / target);
      if (!(d > 0)) continue;  // below the smallest float16: a scale of 0 would lose the block
      const float error = error_of(block, d);
      if (best == 0 || error < least) {
        best = d;
        least = error;
      }
    }
    if (best == 0) best = grid.from_file(0x1p-24F);
    out->d = grid.bits(best);
    for (std::size_t i = 0; i < formats::kSmallBlock; i += kLaneCount) {
      const Lanes q = signed_codes(load_lanes(block.x.data() + i), 1.0F / best);
      for (std::size_t lane = 0; lane < kLaneCount; ++lane)
        out->qs[i + lane] = static_cast<std::int8_t>(q[lane]);
    }
  }
}

}  // namespace wring::quantize
