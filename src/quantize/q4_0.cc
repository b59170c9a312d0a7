// Q4_0: 32 weights in 18 bytes, levels −8 … 7.
#include "quantize/block_codecs.h"
#include "quantize/signed_block.h"

namespace wring::quantize {

void quantize_blocks(const float* x, const float* importance, std::size_t n,
                     formats::BlockQ4_0* out) noexcept {
  constexpr UniformLevels kLevels(-8, 7);
  for (std::size_t at = 0; at < n; at += formats::kSmallBlock, ++out) {
    const SignedBlock block =
        fit_signed_block(kLevels, x + at, importance != nullptr ? importance + at : nullptr);
    out->d = block.d;
    for (std::size_t i = 0; i < 16; ++i) {
      out->qs[i] = static_cast<std::uint8_t>(kLevels.code(block.levels[i]) |
                                             (kLevels.code(block.levels[i + 16]) << 4));
    }
  }
}

}  // namespace wring::quantize
