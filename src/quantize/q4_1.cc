// Q4_1: 32 weights in 20 bytes, x ≈ d·q + m, 4-bit codes.
#include "quantize/affine_block.h"
#include "quantize/block_codecs.h"

namespace wring::quantize {

void quantize_blocks(const float* x, const float* importance, std::size_t n,
                     formats::BlockQ4_1* out) noexcept {
  for (std::size_t at = 0; at < n; at += formats::kSmallBlock, ++out) {
    const AffineBlock block = fit_affine_block(x + at, importance != nullptr ? importance + at : nullptr, 15);
    out->d = block.d;
    out->m = block.m;
    for (std::size_t i = 0; i < 16; ++i)
      out->qs[i] = static_cast<std::uint8_t>(block.codes[i] | (block.codes[i + 16] << 4));
  }
}

}  // namespace wring::quantize
