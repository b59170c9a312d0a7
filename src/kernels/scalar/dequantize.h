// What decoders of blocks share: float16 and four-byte fields, the packed 6-bit scales of Q4_K and Q5_K.
#pragma once

#include <cstdint>

namespace wring::kernels::scalar {

/// The value of float16 bits. A signalling NaN becomes quiet, as the hardware's conversion makes it.
float from_f16(std::uint16_t bits);

/// The little-endian number of four bytes.
std::uint32_t four_bytes(const std::uint8_t* bytes);

struct ScaleMin {
  int scale, min;  // 0 … 63
};

/// Scale and min of group 0 … 7 from the 12 packed bytes.
ScaleMin scale_min(const std::uint8_t* packed, int group);

}  // namespace wring::kernels::scalar
