// 256 weights as the K-quants with minima hold them (Q4_K, Q5_K): eight groups of 32, x ≈ d·scale·q −
// dmin·min with 6-bit scales and mins and two float16 numbers. All of it is chosen together: groups are
// fitted alone, then several (d, dmin) are tried, scale and min of each group chosen among the nearest with
// the codes re-chosen, and (d, dmin) solved again in closed form given everything else.
#pragma once

#include <array>
#include <cstdint>

#include "formats/block_layouts.h"

namespace wring::quantize {

struct AffineSuperBlock {
  std::uint16_t d = 0, dmin = 0;                           // float16 bits
  std::array<std::uint8_t, 8> scales{}, mins{};            // 0 … 63
  std::array<std::uint8_t, formats::kSuperBlock> codes{};  // 0 … code_max
};

/// x: 256 finite values; importance: null, or 256 positive ones. code_max: 15 or 31.
AffineSuperBlock fit_affine_superblock(const float* x, const float* importance, int code_max) noexcept;

/// The 12 bytes that hold eight 6-bit scales and eight 6-bit mins in Q4_K and Q5_K.
void pack_scales_and_mins(const AffineSuperBlock& block, std::uint8_t* out12) noexcept;

}  // namespace wring::quantize
