// Blocks whose weights are patterns of a lattice: the IQ1, IQ2 and IQ3 types.
#pragma once

#include "formats/block_layouts.h"

namespace wring::kernels::scalar {

// dst: 256 values.
void take(const formats::BlockIQ1_S& b, float* dst);
void take(const formats::BlockIQ1_M& b, float* dst);
void take(const formats::BlockIQ2_XXS& b, float* dst);
void take(const formats::BlockIQ2_XS& b, float* dst);
void take(const formats::BlockIQ2_S& b, float* dst);
void take(const formats::BlockIQ3_XXS& b, float* dst);
void take(const formats::BlockIQ3_S& b, float* dst);

}  // namespace wring::kernels::scalar
