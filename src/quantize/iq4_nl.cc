// IQ4_NL: 32 weights in 18 bytes, 16 uneven levels that fit a bell curve better than even ones.
#include "quantize/block_codecs.h"
#include "quantize/signed_block.h"

namespace wring::quantize {

void quantize_blocks(const float* x, const float* importance, std::size_t n,
                     formats::BlockIQ4_NL* out) noexcept {
  const Iq4Levels levels;
  for (std::size_t at = 0; at < n; at += formats::kSmallBlock, ++out) {
    const SignedBlock block =
        fit_signed_block(levels, x + at, importance != nullptr ? importance + at : nullptr);
    out->d = block.d;
    for (std::size_t i = 0; i < 16; ++i) {
      out->qs[i] =
          static_cast<std::uint8_t>(levels.code(block.levels[i]) | (levels.code(block.levels[i + 16]) << 4));
    }
  }
}

}  // namespace wring::quantize
