// Q5_0: 32 weights in 22 bytes, levels −16 … 15.
#include "quantize/block_codecs.h"
#include "quantize/signed_block.h"

namespace wring::quantize {

void quantize_blocks(const float* x, const float* importance, std::size_t n,
                     formats::BlockQ5_0* out) noexcept {
  constexpr UniformLevels kLevels(-16, 15);
  for (std::size_t at = 0; at < n; at += formats::kSmallBlock, ++out) {
    const SignedBlock block =
        fit_signed_block(kLevels, x + at, importance != nullptr ? importance + at : nullptr);
    *out = {};
    out->d = block.d;
    for (std::size_t i = 0; i < formats::kSmallBlock; ++i) {
      const auto code = static_cast<unsigned>(kLevels.code(block.levels[i]));
      out->qs[i % 16] = static_cast<std::uint8_t>(out->qs[i % 16] | ((code & 15U) << (i < 16 ? 0 : 4)));
      out->qh[i / 8] = static_cast<std::uint8_t>(out->qh[i / 8] | ((code >> 4) << (i % 8)));
    }
  }
}

}  // namespace wring::quantize
