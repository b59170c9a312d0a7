#include "quantize/affine_superblock.h"

#include <algorithm>

#include "quantize/affine_fit.h"
#include "quantize/scale_grid.h"

namespace wring::quantize {
namespace {

constexpr int kGroups = 8;
constexpr float kLargestScale = 63;

/// (d, dmin) are tried so that the largest scale falls on 63, 60, 57 and the largest min on 63, 60: other
/// rounding errors for the smaller ones. More tries lower the error by less than 0.1 %.
constexpr std::array<float, 3> kScaleTargets = {63, 60, 57};
constexpr std::array<float, 2> kMinTargets = {63, 60};
constexpr int kRefits = 2;

using Groups = std::array<AffineGroup, kGroups>;
using Fits = std::array<AffineFit, kGroups>;

/// Everything but the codes, in the block's own scale.
struct Choice {
  float d = 0, dmin = 0;
  std::array<float, kGroups> scales{}, mins{};  // integers 0 … 63
  std::array<CodeSums, kGroups> sums{};
  float error = 0;
};

float nearest_step(float value, float step) {
  return step > 0 ? round_to_even(std::clamp(value / step, 0.0F, kLargestScale)) : 0.0F;
}

/// Chooses scales and mins of the groups for given (d, dmin): for each scale next to the wanted one, codes,
/// then the min that is best for those codes, then codes again.
Choice choose(const Groups& groups, const Fits& wanted, float d, float dmin, float code_max) {
  Choice choice{d, dmin, {}, {}, {}, 0};
  for (std::size_t g = 0; g < kGroups; ++g) {
    const AffineGroup& group = groups[g];
    const float middle = nearest_step(wanted[g].scale, d), first_min = nearest_step(wanted[g].minimum, dmin);
    bool found = false;
    float least = 0;
    for (float scale = std::max(middle - 1, 0.0F); scale <= std::min(middle + 1, kLargestScale); scale += 1) {
      const float step = d * scale;
      float min = first_min;
      for (int pass = 0; pass < 2; ++pass) {
        const CodeSums sums = nearest_code_sums(group, step, dmin * min, code_max);
        const float better_min = nearest_step((step * sums.q - group.sum_wx) / group.sum_w, dmin);
        const float error = affine_error(group, sums, step, dmin * better_min);
        if (!found || error < least) {
          found = true;
          least = error;
          choice.scales[g] = scale;
          choice.mins[g] = better_min;
          choice.sums[g] = sums;
        }
        if (better_min == min) break;
        min = better_min;
      }
    }
    choice.error += least;
  }
  return choice;
}

/// The best (d, dmin) for the scales, mins and codes of `choice`, unrounded.
AffineFit solve_superblock(const Groups& groups, const Choice& choice) {
  // error = a d² − 2b d·dmin + c dmin² − 2p d + 2r dmin + constant
  double a = 0, b = 0, c = 0, p = 0, r = 0;
  for (std::size_t g = 0; g < kGroups; ++g) {
    const double scale = choice.scales[g], min = choice.mins[g];
    const CodeSums& sums = choice.sums[g];
    a += scale * scale * sums.qq;
    b += scale * min * sums.q;
    c += min * min * groups[g].sum_w;
    p += scale * sums.qx;
    r += min * groups[g].sum_wx;
  }
  const double determinant = a * c - b * b;
  AffineFit fit{choice.d, choice.dmin};
  if (determinant > 0) {
    fit.scale = static_cast<float>((p * c - b * r) / determinant);
    fit.minimum = static_cast<float>((b * p - a * r) / determinant);
  } else if (a > 0) {
    fit.scale = static_cast<float>(p / a);
  }
  fit.scale = std::max(fit.scale, 0.0F);
  fit.minimum = std::max(fit.minimum, 0.0F);
  return fit;
}

Choice search(const Groups& groups, const ScaleGrid& grid, float code_max) {
  Fits fits, plain;
  float largest_scale = 0, largest_min = 0, plain_scale = 0, plain_min = 0;
  for (std::size_t g = 0; g < kGroups; ++g) {
    plain[g] = plain_affine_fit(groups[g], code_max, true);
    fits[g] = search_affine_fit(groups[g], code_max, true);
    plain_scale = std::max(plain_scale, plain[g].scale);
    plain_min = std::max(plain_min, plain[g].minimum);
    largest_scale = std::max(largest_scale, fits[g].scale);
    largest_min = std::max(largest_min, fits[g].minimum);
  }
  // The plain fit takes part, so that the result is never worse.
  Choice best = choose(groups, plain, grid.round_step(plain_scale / kLargestScale),
                       grid.round_step(plain_min / kLargestScale), code_max);
  const auto keep_better = [&](const Choice& choice) {
    const bool better = choice.error < best.error;
    if (better) best = choice;
    return better;
  };
  for (const float scale_target : kScaleTargets) {
    for (const float min_target : kMinTargets) {
      keep_better(choose(groups, fits, grid.round_step(largest_scale / scale_target),
                         grid.round_step(largest_min / min_target), code_max));
    }
  }
  for (int i = 0; i < kRefits; ++i) {
    const AffineFit solved = solve_superblock(groups, best);
    for (std::size_t g = 0; g < kGroups; ++g) fits[g] = {best.d * best.scales[g], best.dmin * best.mins[g]};
    if (!keep_better(
            choose(groups, fits, grid.round_step(solved.scale), grid.round_step(solved.minimum), code_max)))
      break;
  }
  return best;
}

}  // namespace

AffineSuperBlock fit_affine_superblock(const float* x, const float* importance, int code_max) noexcept {
  AffineSuperBlock block;
  const float magnitude = largest_magnitude(x, formats::kSuperBlock);
  if (magnitude <= kNothingBelow) return block;
  const ScaleGrid grid(magnitude);

  Groups groups;
  for (std::size_t g = 0; g < kGroups; ++g) {
    for (std::size_t i = 0; i < kAffineGroup; ++i) {
      const std::size_t at = g * kAffineGroup + i;
      groups[g].x[i] = grid.from_file(x[at]);
      groups[g].weight[i] = importance != nullptr ? importance[at] : 1.0F;
    }
    groups[g].finish();
  }
  const auto largest_code = static_cast<float>(code_max);
  const Choice best = search(groups, grid, largest_code);

  block.d = grid.bits(best.d);
  block.dmin = grid.bits(best.dmin);
  for (std::size_t g = 0; g < kGroups; ++g) {
    block.scales[g] = static_cast<std::uint8_t>(best.scales[g]);
    block.mins[g] = static_cast<std::uint8_t>(best.mins[g]);
    const float step = best.d * best.scales[g], minimum = best.dmin * best.mins[g];
    if (!(step > 0)) continue;
    const Lanes inverse = all_lanes(1.0F / step), shift = all_lanes(minimum);
    for (std::size_t i = 0; i < kAffineGroup; i += kLaneCount) {
      const Lanes q = to_codes((load_lanes(groups[g].x.data() + i) + shift) * inverse, largest_code);
      for (std::size_t lane = 0; lane < kLaneCount; ++lane) {
        block.codes[g * kAffineGroup + i + lane] = static_cast<std::uint8_t>(q[lane]);
      }
    }
  }
  return block;
}

void pack_scales_and_mins(const AffineSuperBlock& block, std::uint8_t* out12) noexcept {
  for (std::size_t g = 0; g < 4; ++g) {
    const unsigned scale = block.scales[g], min = block.mins[g], scale4 = block.scales[g + 4],
                   min4 = block.mins[g + 4];
    out12[g] = static_cast<std::uint8_t>(scale | ((scale4 >> 4) << 6));
    out12[g + 4] = static_cast<std::uint8_t>(min | ((min4 >> 4) << 6));
    out12[g + 8] = static_cast<std::uint8_t>((scale4 & 15U) | ((min4 & 15U) << 4));
  }
}

}  // namespace wring::quantize
