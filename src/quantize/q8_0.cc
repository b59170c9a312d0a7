// Q8_0: 32 weights in 34 bytes, x ≈ d·q with q in −127 … 127.
#include "quantize/block_codecs.h"
#include "quantize/signed_block.h"

namespace wring::quantize {

void quantize_blocks(const float* x, const float* importance, std::size_t n,
                     formats::BlockQ8_0* out) noexcept {
  constexpr UniformLevels kLevels(-127, 127);
  for (std::size_t at = 0; at < n; at += formats::kSmallBlock, ++out) {
    const SignedBlock block =
        fit_signed_block(kLevels, x + at, importance != nullptr ? importance + at : nullptr);
    out->d = block.d;
    for (std::size_t i = 0; i < formats::kSmallBlock; ++i)
      out->qs[i] = static_cast<std::int8_t>(block.levels[i]);
  }
}

}  // namespace wring::quantize
