// The packed 6-bit scales of Q4_K and Q5_K.
#pragma once

#include <cstdint>

namespace wring::kernels::scalar {

struct ScaleMin {
  int scale, min;  // 0 … 63
};

/// Scale and min of group 0 … 7 from the 12 packed bytes.
ScaleMin scale_min(const std::uint8_t* packed, int group);

}  // namespace wring::kernels::scalar
