// A block's values brought near 1 by a power of two, and float16 scales seen from there. So sums of squares
// neither overflow nor vanish, whatever the block's magnitude, and a scale is searched among the values that
// the file can hold: float16 has few of them below 2^-14.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/floats.h"

namespace wring::quantize {

/// Magnitudes up to half of the smallest positive float16 are nearest to zero in every block type.
inline constexpr float kNothingBelow = 0x1p-25F;

/// The smallest positive float16.
inline constexpr float kSmallestScale = 0x1p-24F;

class ScaleGrid {
 public:
  /// `magnitude`: the block's largest |x|, above kNothingBelow, finite.
  explicit ScaleGrid(float magnitude) {
    const std::uint32_t exponent = std::bit_cast<std::uint32_t>(magnitude) & 0x7F800000U;
    to_file_ = std::bit_cast<float>(exponent);
    from_file_ = 1.0F / to_file_;
  }

  /// A value of the file's scale in the block's own, where magnitudes are below 2. Exact.
  float from_file(float v) const { return v * from_file_; }

  /// The float16 bits of a scale of the block's own.
  std::uint16_t bits(float scale) const { return float_to_f16(scale * to_file_); }

  /// The nearest scale that the file can hold.
  float round(float scale) const { return f16_to_float(bits(scale)) * from_file_; }

  /// The same for a step that integers multiply: one that would vanish becomes the smallest number there is.
  float round_step(float scale) const {
    const float rounded = round(scale);
    if (rounded != 0 || scale == 0) return rounded;
    return scale > 0 ? from_file(kSmallestScale) : -from_file(kSmallestScale);
  }

 private:
  float to_file_, from_file_;
};

/// The largest |x|.
inline float largest_magnitude(const float* x, std::size_t n) {
  float largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const float magnitude = x[i] < 0 ? -x[i] : x[i];
    if (magnitude > largest) largest = magnitude;
  }
  return largest;
}

}  // namespace wring::quantize
