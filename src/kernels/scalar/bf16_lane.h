// One lane of the two instructions that multiply BF16 on AVX-512: VDPBF16PS and VCVTNEPS2BF16, after their
// pages in Intel's Software Developer's Manual. Both take subnormals as zeros, and give zeros for subnormal
// results.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/floats.h"

namespace wring::kernels::scalar {

/// A subnormal becomes a zero of its sign.
inline float flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0F, value) : value;
}

/// sum + a · b over the pairs of BF16 in the halves of a and b: first the upper halves, then the lower ones,
/// each fused.
inline float add_pair(float sum, std::uint32_t a, std::uint32_t b) {
  for (const int shift : {0, 16}) {
    const auto half = [&](std::uint32_t pair) {
      return flushed(std::bit_cast<float>((pair << shift) & 0xFFFF0000U));
    };
    sum = flushed(std::fma(half(a), half(b), flushed(sum)));
  }
  return sum;
}

inline std::uint16_t rounded_to_bf16(float value) {
  return float_to_bf16(flushed(value));
}

}  // namespace wring::kernels::scalar
