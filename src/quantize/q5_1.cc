// Q5_1: 32 weights in 24 bytes, x ≈ d·q + m, 5-bit codes.
#include "quantize/affine_block.h"
#include "quantize/block_codecs.h"

namespace wring::quantize {

void quantize_blocks(const float* x, const float* importance, std::size_t n,
                     formats::BlockQ5_1* out) noexcept {
  for (std::size_t at = 0; at < n; at += formats::kSmallBlock, ++out) {
    const AffineBlock block = fit_affine_block(x + at, importance != nullptr ? importance + at : nullptr, 31);
    *out = {};
    out->d = block.d;
    out->m = block.m;
    for (std::size_t i = 0; i < formats::kSmallBlock; ++i) {
      const unsigned code = block.codes[i];
      out->qs[i % 16] = static_cast<std::uint8_t>(out->qs[i % 16] | ((code & 15U) << (i < 16 ? 0 : 4)));
      out->qh[i / 8] = static_cast<std::uint8_t>(out->qh[i / 8] | ((code >> 4) << (i % 8)));
    }
  }
}

}  // namespace wring::quantize
