// IQ4_XS: 256 weights in 136 bytes, IQ4_NL's levels under eight 6-bit scales.
#include "quantize/block_codecs.h"
#include "quantize/signed_superblock.h"

namespace wring::quantize {

void quantize_blocks(const float* x, const float* importance, std::size_t n,
                     formats::BlockIQ4_XS* out) noexcept {
  const Iq4Levels levels;
  const SignedSuperBlockFitter<8, Iq4Levels> fitter(levels, -32, 31);
  for (std::size_t at = 0; at < n; at += formats::kSuperBlock, ++out) {
    const auto block = fitter.fit(x + at, importance != nullptr ? importance + at : nullptr);
    *out = {};
    out->d = block.d;
    for (std::size_t g = 0; g < 8; ++g) {
      const auto stored = static_cast<unsigned>(block.scales[g] + 32);
      out->scales_h = static_cast<std::uint16_t>(out->scales_h | ((stored >> 4) << (2 * g)));
      out->scales_l[g / 2] =
          static_cast<std::uint8_t>(out->scales_l[g / 2] | ((stored & 15U) << (4 * (g % 2))));
      const float* group = block.levels.data() + 32 * g;
      for (std::size_t j = 0; j < 16; ++j) {
        out->qs[16 * g + j] =
            static_cast<std::uint8_t>(levels.code(group[j]) | (levels.code(group[j + 16]) << 4));
      }
    }
  }
}

}  // namespace wring::quantize
