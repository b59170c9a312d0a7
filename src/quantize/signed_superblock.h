// 256 weights in groups with an integer scale each and one float16 number over them: Q6_K (16 groups of 16,
// 8-bit scales) and IQ4_XS (8 groups of 32, 6-bit scales). Chosen as in affine_superblock.h, without minima.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "quantize/scale_grid.h"
#include "quantize/signed_fit.h"

namespace wring::quantize {

template <std::size_t kGroups>
struct SignedSuperBlock {
  std::uint16_t d = 0;  // float16 bits
  std::array<int, kGroups> scales{};
  std::array<float, formats::kSuperBlock> levels{};
};

/// Scales lie in low_scale … high_scale.
template <std::size_t kGroups, class Levels>
class SignedSuperBlockFitter {
 public:
  SignedSuperBlockFitter(Levels levels, float low_scale, float high_scale)
      : levels_(levels), low_scale_(low_scale), high_scale_(high_scale) {}

  /// x: 256 finite values; importance: null, or 256 positive ones.
  SignedSuperBlock<kGroups> fit(const float* x, const float* importance) const {
    SignedSuperBlock<kGroups> block;
    const float magnitude = largest_magnitude(x, formats::kSuperBlock);
    if (magnitude <= kNothingBelow) return block;
    const ScaleGrid grid(magnitude);
    alignas(16) std::array<float, formats::kSuperBlock> scaled, weight;
    for (std::size_t i = 0; i < formats::kSuperBlock; ++i) {
      scaled[i] = grid.from_file(x[i]);
      weight[i] = importance != nullptr ? importance[i] : 1.0F;
    }
    Groups groups;
    for (std::size_t g = 0; g < kGroups; ++g)
      groups[g] = SignedGroup::of(scaled.data() + g * kSize, weight.data() + g * kSize, kSize);

    const Choice best = search(groups, grid);
    block.d = grid.bits(best.d);
    for (std::size_t g = 0; g < kGroups; ++g) {
      block.scales[g] = static_cast<int>(best.scales[g]);
      const float step = best.d * best.scales[g];
      const Lanes inverse = all_lanes(step == 0 ? 0.0F : 1.0F / step);
      for (std::size_t i = g * kSize; i < (g + 1) * kSize; i += kLaneCount) {
        store_lanes(block.levels.data() + i, levels_.nearest(load_lanes(scaled.data() + i) * inverse));
      }
    }
    return block;
  }

 private:
  static constexpr std::size_t kSize = formats::kSuperBlock / kGroups;
  using Groups = std::array<SignedGroup, kGroups>;

  struct Choice {
    float d = 0;
    std::array<float, kGroups> scales{};
    std::array<LevelSums, kGroups> sums{};
    float error = 0;
  };

  Choice choose(const Groups& groups, const std::array<float, kGroups>& wanted, float d) const {
    Choice choice;
    choice.d = d;
    for (std::size_t g = 0; g < kGroups; ++g) {
      const float middle = d == 0 ? 0.0F : round_to_even(std::clamp(wanted[g] / d, low_scale_, high_scale_));
      bool found = false;
      float least = 0;
      for (float scale = std::max(middle - 1, low_scale_); scale <= std::min(middle + 1, high_scale_);
           scale += 1) {
        const float step = d * scale;
        const LevelSums sums = nearest_level_sums(levels_, groups[g], step);
        const float error = signed_error(groups[g], sums, step);
        if (found && !(error < least)) continue;
        found = true;
        least = error;
        choice.scales[g] = scale;
        choice.sums[g] = sums;
      }
      choice.error += least;
    }
    return choice;
  }

  Choice search(const Groups& groups, const ScaleGrid& grid) const {
    std::array<float, kGroups> plain, searched;
    float plain_largest = 0, largest = 0;  // of largest magnitude, with sign
    for (std::size_t g = 0; g < kGroups; ++g) {
      plain[g] = groups[g].extreme / levels_.targets()[0];
      searched[g] = search_scale(levels_, groups[g]);
      if (std::abs(plain[g]) > std::abs(plain_largest)) plain_largest = plain[g];
      if (std::abs(searched[g]) > std::abs(largest)) largest = searched[g];
    }
    // The largest scale falls on the end of the range that reaches further, or a little before it.
    Choice best = choose(groups, plain, grid.round_step(plain_largest / low_scale_));
    const auto keep_better = [&](const Choice& choice) {
      const bool better = choice.error < best.error;
      if (better) best = choice;
      return better;
    };
    for (const float share : {1.0F, 0.95F, 0.9F})
      keep_better(choose(groups, searched, grid.round_step(largest / (low_scale_ * share))));
    keep_better(choose(groups, searched, grid.round_step(largest / high_scale_)));
    constexpr int kRefits = 2;
    for (int i = 0; i < kRefits; ++i) {
      double ll = 0, lx = 0;
      for (std::size_t g = 0; g < kGroups; ++g) {
        const double scale = best.scales[g];
        ll += scale * scale * best.sums[g].ll;
        lx += scale * best.sums[g].lx;
        searched[g] = best.d * best.scales[g];
      }
      if (!(ll > 0) || !keep_better(choose(groups, searched, grid.round_step(static_cast<float>(lx / ll)))))
        break;
    }
    return best;
  }

  Levels levels_;
  float low_scale_, high_scale_;
};

}  // namespace wring::quantize
