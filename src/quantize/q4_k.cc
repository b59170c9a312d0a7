// Q4_K: 256 weights in 144 bytes, 4-bit codes; see affine_superblock.h.
#include "quantize/affine_superblock.h"
#include "quantize/block_codecs.h"

namespace wring::quantize {

void quantize_blocks(const float* x, const float* importance, std::size_t n,
                     formats::BlockQ4_K* out) noexcept {
  for (std::size_t at = 0; at < n; at += formats::kSuperBlock, ++out) {
    const AffineSuperBlock block =
        fit_affine_superblock(x + at, importance != nullptr ? importance + at : nullptr, 15);
    out->d = block.d;
    out->dmin = block.dmin;
    pack_scales_and_mins(block, out->scales);
    for (std::size_t pair = 0; pair < 4; ++pair) {
      const std::uint8_t* codes = block.codes.data() + 64 * pair;
      for (std::size_t i = 0; i < 32; ++i)
        out->qs[32 * pair + i] = static_cast<std::uint8_t>(codes[i] | (codes[i + 32] << 4));
    }
  }
}

}  // namespace wring::quantize
