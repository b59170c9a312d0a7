// Q5_K: 256 weights in 176 bytes, 5-bit codes; see affine_superblock.h.
#include "quantize/affine_superblock.h"
#include "quantize/block_codecs.h"

namespace wring::quantize {

void quantize_blocks(const float* x, const float* importance, std::size_t n,
                     formats::BlockQ5_K* out) noexcept {
  for (std::size_t at = 0; at < n; at += formats::kSuperBlock, ++out) {
    const AffineSuperBlock block =
        fit_affine_superblock(x + at, importance != nullptr ? importance + at : nullptr, 31);
    *out = {};
    out->d = block.d;
    out->dmin = block.dmin;
    pack_scales_and_mins(block, out->scales);
    for (std::size_t g = 0; g < 8; ++g) {
      for (std::size_t j = 0; j < 32; ++j) {
        const unsigned code = block.codes[32 * g + j];
        std::uint8_t& low = out->qs[32 * (g / 2) + j];
        low = static_cast<std::uint8_t>(low | ((code & 15U) << (4 * (g % 2))));
        out->qh[j] = static_cast<std::uint8_t>(out->qh[j] | ((code >> 4) << g));
      }
    }
  }
}

}  // namespace wring::quantize
