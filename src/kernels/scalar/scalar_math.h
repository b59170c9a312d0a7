// The float32 exponential, hyperbolic tangent and order of summation that every CPU level repeats to the bit.
// libm's differ from one CPU to the next, so they are spelled out here: argument reduction after Cody and
// Waite (Software Manual for the Elementary Functions, 1980) and minimax polynomials of our own, every
// multiply-add fused. Vector copy: kernels/vector/math.h.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace wring::kernels::scalar {

/// e^x, relative error < 1.2e-7. Results below the smallest normal number are 0 (x < −87.33655), above the
/// largest +∞; NaN stays NaN.
inline float exp_f32(float x) {
  const float shifter =
      0x1.8p23F;  // adding it rounds to the nearest integer, which then stands in the low bits
  const float shifted = std::fma(x, 0x1.715476p+0F, shifter);
  const float n = shifted - shifter;
  float r = std::fma(n, -0x1.62e4p-1F, x);  // ln 2 in two pieces, the first short enough for
  r = std::fma(n, -0x1.7f7d1cp-20F, r);     // an exact product
  float p = 0x1.6a215ap-10F;
  p = std::fma(p, r, 0x1.123b9cp-7F);
  p = std::fma(p, r, 0x1.5558fcp-5F);
  p = std::fma(p, r, 0x1.55549p-3F);
  p = std::fma(p, r, 0x1.fffffcp-2F);
  p = std::fma(p, r, 1.0F);
  p = std::fma(p, r, 1.0F);
  const float scaled =
      std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + (std::bit_cast<std::uint32_t>(shifted) << 23));
  if (x < -0x1.5d589ep+6F) return 0.0F;
  if (!(x <= 0x1.62e42ep+6F)) return x * std::numeric_limits<float>::infinity();
  return scaled;
}

/// tanh x, relative error < 2e-7; NaN stays NaN.
inline float tanh_f32(float x) {
  const float a = std::fabs(x);
  const float s = x * x;
  float p = -0x1.75623p-8F;
  p = std::fma(p, s, 0x1.520b28p-6F);
  p = std::fma(p, s, -0x1.b83854p-5F);
  p = std::fma(p, s, 0x1.11070ap-3F);
  p = std::fma(p, s, -0x1.555532p-2F);
  const float near = std::fma(p * s, x, x);
  const float far = std::copysign(1.0F - 2.0F / (exp_f32(a + a) + 1.0F), x);
  return a < 0.625F ? near : far;
}

/// The fixed tree over 16 partial sums.
template <class T>
inline T tree_sum(T* p) {
  for (int width = 8; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i) p[i] += p[i + width];
  }
  return p[0];
}

/// Σ a[i·a_step] · b[i·b_step], i < n, in exact mode's order.
inline float dot(const float* a, std::size_t a_step, const float* b, std::size_t b_step, std::size_t n) {
  float p[16] = {};
  for (std::size_t i = 0; i < n; ++i) p[i % 16] = std::fma(a[i * a_step], b[i * b_step], p[i % 16]);
  return tree_sum(p);
}

}  // namespace wring::kernels::scalar
