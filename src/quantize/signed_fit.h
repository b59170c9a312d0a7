// Scale of a group of weights that have no minimum: x ≈ scale · level, levels being integers low … high
// (Q4_0, Q5_0, Q8_0, Q6_K) or a fixed table (IQ4_NL, IQ4_XS). Search over the level on which the largest
// magnitude falls, closed-form solution for the levels that each candidate gives, alternation of the two:
// affine_fit.h without the minimum.
#pragma once

#include <array>
#include <cstdint>

#include "formats/block_layouts.h"
#include "quantize/lanes.h"

namespace wring::quantize {

/// Integers low … high. The scale may be negative, so that the largest magnitude can fall on either end.
class UniformLevels {
 public:
  constexpr UniformLevels(float low, float high)
      : low_(low), span_(high - low), targets_{low,  low - 0.4F,  low + 0.4F,  low - 0.8F, low + 0.8F,
                                               high, high + 0.4F, high - 0.4F, high + 0.8F} {}

  Lanes nearest(Lanes v) const { return to_codes(v - all_lanes(low_), span_) + all_lanes(low_); }
  /// What is stored for a level.
  int code(float level) const { return static_cast<int>(level - low_); }
  /// Where the value of largest magnitude is put, the plain choice first.
  const std::array<float, 9>& targets() const { return targets_; }

 private:
  float low_, span_;
  std::array<float, 9> targets_;
};

/// formats::kIq4Values.
class Iq4Levels {
 public:
  Lanes nearest(Lanes v) const {
    // Halfway points between levels are multiples of 1/2, so each cell [k/2, (k+1)/2) has one nearest level.
    const Lanes cell = to_codes(v * all_lanes(2.0F) + all_lanes(kZeroCell - 0.5F), kCells - 1);
    Lanes level;
    for (std::size_t i = 0; i < kLaneCount; ++i) level[i] = kNearest[static_cast<std::size_t>(cell[i])];
    return level;
  }
  int code(float level) const { return kCodes[static_cast<std::size_t>(level + 127.0F)]; }
  const std::array<float, 9>& targets() const { return kTargets; }

 private:
  static constexpr std::size_t kCells = 512;
  static constexpr float kZeroCell = 256;  // the cell that begins at 0

  static constexpr std::array<float, kCells> make_nearest() {
    std::array<float, kCells> table{};
    for (std::size_t cell = 0; cell < kCells; ++cell) {
      const float middle = (static_cast<float>(cell) - kZeroCell) * 0.5F + 0.25F;
      float best = formats::kIq4Values[0];
      for (const std::int8_t value : formats::kIq4Values) {
        const float off = middle - static_cast<float>(value), best_off = middle - best;
        if (off * off < best_off * best_off) best = value;
      }
      table[cell] = best;
    }
    return table;
  }
  static constexpr std::array<std::uint8_t, 256> make_codes() {
    std::array<std::uint8_t, 256> table{};
    for (std::size_t i = 0; i < 16; ++i) {
      table[static_cast<std::size_t>(formats::kIq4Values[i] + 127)] = static_cast<std::uint8_t>(i);
    }
    return table;
  }

  static constexpr std::array<float, 9> kTargets = {-127, -120, -134, -113, -141, 113, 120, 106, 127};
  static const std::array<float, kCells> kNearest;
  static const std::array<std::uint8_t, 256> kCodes;
};
inline constexpr std::array<float, Iq4Levels::kCells> Iq4Levels::kNearest = Iq4Levels::make_nearest();
inline constexpr std::array<std::uint8_t, 256> Iq4Levels::kCodes = Iq4Levels::make_codes();

/// A group: x and weight (n, a multiple of 4), weights positive.
struct SignedGroup {
  const float* x = nullptr;
  const float* weight = nullptr;
  std::size_t n = 0;
  float extreme = 0;  // the x of largest magnitude
  float sum_wxx = 0;

  static SignedGroup of(const float* x, const float* weight, std::size_t n) {
    SignedGroup group{x, weight, n};
    Lanes sum = {};
    for (std::size_t i = 0; i < n; i += kLaneCount) {
      const Lanes v = load_lanes(x + i);
      sum += load_lanes(weight + i) * v * v;
    }
    group.sum_wxx = sum_of(sum);
    for (std::size_t i = 0; i < n; ++i) {
      if (x[i] * x[i] > group.extreme * group.extreme) group.extreme = x[i];
    }
    return group;
  }
};

/// Σ w·l² and Σ w·l·x for levels l.
struct LevelSums {
  float ll = 0, lx = 0;
};

/// Σ w (x − scale·l)² from the sums.
inline float signed_error(const SignedGroup& group, const LevelSums& sums, float scale) {
  return group.sum_wxx + scale * (scale * sums.ll - 2 * sums.lx);
}

/// The sums for the levels nearest under `scale`; for a scale of 0 they do not matter and are 0.
template <class Levels>
LevelSums nearest_level_sums(const Levels& levels, const SignedGroup& group, float scale) {
  if (scale == 0) return {};
  const Lanes inverse = all_lanes(1.0F / scale);
  Lanes ll = {}, lx = {};
  for (std::size_t i = 0; i < group.n; i += kLaneCount) {
    const Lanes x = load_lanes(group.x + i), level = levels.nearest(x * inverse);
    const Lanes weighted = load_lanes(group.weight + i) * level;
    ll += weighted * level;
    lx += weighted * x;
  }
  return {sum_of(ll), sum_of(lx)};
}

/// The searched scale; 0 for a group of zeros.
template <class Levels>
float search_scale(const Levels& levels, const SignedGroup& group) {
  if (group.extreme == 0) return 0;
  float best = group.extreme / levels.targets()[0];  // the plain fit
  float least = signed_error(group, nearest_level_sums(levels, group, best), best);
  const auto try_levels_of = [&](float start) {
    const LevelSums sums = nearest_level_sums(levels, group, start);
    if (!(sums.ll > 0)) return false;
    const float scale = sums.lx / sums.ll, error = signed_error(group, sums, scale);
    if (!(error < least)) return false;
    best = scale;
    least = error;
    return true;
  };
  for (const float target : levels.targets()) try_levels_of(group.extreme / target);
  constexpr int kAlternations = 3;
  for (int i = 0; i < kAlternations && try_levels_of(best); ++i) {
  }
  return best;
}

}  // namespace wring::quantize
