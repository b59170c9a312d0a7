// Q6_K: 256 weights in 210 bytes, 16 groups with 8-bit scales, levels −32 … 31.
#include "quantize/block_codecs.h"
#include "quantize/signed_superblock.h"

namespace wring::quantize {

void quantize_blocks(const float* x, const float* importance, std::size_t n,
                     formats::BlockQ6_K* out) noexcept {
  const UniformLevels levels(-32, 31);
  const SignedSuperBlockFitter<16, UniformLevels> fitter(levels, -128, 127);
  for (std::size_t at = 0; at < n; at += formats::kSuperBlock, ++out) {
    const auto block = fitter.fit(x + at, importance != nullptr ? importance + at : nullptr);
    out->d = block.d;
    for (std::size_t g = 0; g < block.scales.size(); ++g)
      out->scales[g] = static_cast<std::int8_t>(block.scales[g]);
    const auto code = [&](std::size_t i) { return static_cast<unsigned>(levels.code(block.levels[i])); };
    for (std::size_t half = 0; half < 2; ++half) {
      const std::size_t first = 128 * half;
      for (std::size_t j = 0; j < 64; ++j) {
        out->ql[64 * half + j] =
            static_cast<std::uint8_t>((code(first + j) & 15U) | ((code(first + 64 + j) & 15U) << 4));
      }
      for (std::size_t j = 0; j < 32; ++j) {
        unsigned high = 0;
        for (std::size_t k = 0; k < 4; ++k) high |= (code(first + 32 * k + j) >> 4) << (2 * k);
        out->qh[32 * half + j] = static_cast<std::uint8_t>(high);
      }
    }
  }
}

}  // namespace wring::quantize
