// Four floats at a time, for the inner loops of the quantizers. Plain vector extensions of the compiler: on
// every CPU the same IEEE operations in the same order, so that a quantized file has the same bits wherever
// it was made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace wring::quantize {

inline constexpr std::size_t kLaneCount = 4;

/// 1.5·2^23: what is added to a float below 2^22 and taken off again leaves it rounded to an integer.
inline constexpr float kRoundingMagic = 12582912.0F;

typedef float Lanes __attribute__((vector_size(kLaneCount * sizeof(float))));

inline Lanes load_lanes(const float* p) {
  Lanes v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

inline void store_lanes(float* p, Lanes v) {
  std::memcpy(p, &v, sizeof v);
}

inline Lanes all_lanes(float v) {
  return Lanes{v, v, v, v};
}

/// The sum of the lanes, in a fixed order.
inline float sum_of(Lanes v) {
  return (v[0] + v[2]) + (v[1] + v[3]);
}

/// The nearest integer in [0, high] of each lane, ties to even; high < 2^22. Adding 1.5·2^23 leaves no
/// fraction bits. (The upper clamp stands between the two additions because compilers turn two adjacent
/// clamps into masks, at twice the cost.)
inline Lanes to_codes(Lanes v, float high) {
  const Lanes zero = all_lanes(0.0F), magic = all_lanes(kRoundingMagic),
              top = all_lanes(kRoundingMagic + high);
  v = v > zero ? v : zero;
  v = v + magic;
  v = v < top ? v : top;
  return v - magic;
}

/// The nearest integer, ties to even; |v| < 2^22.
inline float round_to_even(float v) {
  return (v + kRoundingMagic) - kRoundingMagic;
}

}  // namespace wring::quantize
