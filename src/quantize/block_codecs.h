// The block quantizers behind block_quantizer.h, one a type. Each takes `n` weights (a multiple of its
// block), their importance (null: none; else positive, mean about 1 over the row) and writes n / block
// blocks.
#pragma once

#include <cstddef>

#include "formats/block_layouts.h"

namespace wring::quantize {

void quantize_blocks(const float* x, const float* importance, std::size_t n,
                     formats::BlockQ4_0* out) noexcept;
void quantize_blocks(const float* x, const float* importance, std::size_t n,
                     formats::BlockQ4_1* out) noexcept;
void quantize_blocks(const float* x, const float* importance, std::size_t n,
                     formats::BlockQ5_0* out) noexcept;
void quantize_blocks(const float* x, const float* importance, std::size_t n,
                     formats::BlockQ5_1* out) noexcept;
void quantize_blocks(const float* x, const float* importance, std::size_t n,
                     formats::BlockQ8_0* out) noexcept;
void quantize_blocks(const float* x, const float* importance, std::size_t n,
                     formats::BlockQ4_K* out) noexcept;
void quantize_blocks(const float* x, const float* importance, std::size_t n,
                     formats::BlockQ5_K* out) noexcept;
void quantize_blocks(const float* x, const float* importance, std::size_t n,
                     formats::BlockQ6_K* out) noexcept;
void quantize_blocks(const float* x, const float* importance, std::size_t n,
                     formats::BlockIQ4_NL* out) noexcept;
void quantize_blocks(const float* x, const float* importance, std::size_t n,
                     formats::BlockIQ4_XS* out) noexcept;

}  // namespace wring::quantize
