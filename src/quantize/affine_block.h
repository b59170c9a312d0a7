// Blocks of 32 weights with a float16 scale and a float16 offset, x ≈ d·q + m: Q4_1 and Q5_1.
#pragma once

#include <array>
#include <cstdint>

#include "quantize/affine_fit.h"

namespace wring::quantize {

struct AffineBlock {
  std::uint16_t d = 0, m = 0;  // float16 bits
  std::array<std::uint8_t, kAffineGroup> codes{};
};

/// x: 32 finite values; importance: null, or 32 positive ones. code_max: 15 or 31.
AffineBlock fit_affine_block(const float* x, const float* importance, int code_max) noexcept;

}  // namespace wring::quantize
