// In place of the compiler's <immintrin.h>, for one test only: the intrinsics of packed mode's AVX-512
// kernels in plain C, by SIMDe, so that the very source of the kernels runs on any machine. Below: what SIMDe
// 0.7 lacks, and the fused multiply-adds, which it rounds twice.
#pragma once

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/floats.h"
#include "kernels/scalar/bf16_lane.h"

using __mmask16 = simde__mmask16;

namespace wring::kernels {
namespace {

template <class T, std::size_t N, class Vector>
std::array<T, N> lanes(const Vector& vector) {
  static_assert(sizeof(Vector) == N * sizeof(T));
  std::array<T, N> values;
  std::memcpy(values.data(), &vector, sizeof(vector));
  return values;
}

/// A vector of function(i) for each of N lanes.
template <class Vector, std::size_t N = 16, class Function>
Vector vector_of(Function function) {
  std::array<decltype(function(std::size_t{0})), N> values;
  static_assert(sizeof(values) == sizeof(Vector));
  for (std::size_t i = 0; i < N; ++i) values[i] = function(i);
  Vector vector;
  std::memcpy(&vector, values.data(), sizeof(vector));
  return vector;
}

inline __m512 fused(float sign, const __m512& a, const __m512& b, const __m512& c) {
  const auto x = lanes<float, 16>(a), y = lanes<float, 16>(b), z = lanes<float, 16>(c);
  return vector_of<__m512>([&](std::size_t i) { return std::fma(sign * x[i], y[i], z[i]); });
}
inline __m512 floats_of_integers(const __m512i& a) {
  const auto x = lanes<std::int32_t, 16>(a);
  return vector_of<__m512>([&](std::size_t i) { return static_cast<float>(x[i]); });
}
inline __m512 floats_of_halves(const __m256i& a) {
  const auto x = lanes<std::uint16_t, 16>(a);
  return vector_of<__m512>([&](std::size_t i) { return f16_to_float(x[i]); });
}
inline __m256i halves_of_floats(const __m512& a) {
  const auto x = lanes<float, 16>(a);
  return vector_of<__m256i>([&](std::size_t i) { return float_to_f16(x[i]); });
}
/// SIMDe's rounds products and keeps subnormals.
template <class Pairs>
__m512 dot_pairs(const __m512& sum, const Pairs& a, const Pairs& b) {
  const auto s = lanes<float, 16>(sum);
  const auto x = lanes<std::uint32_t, 16>(a), y = lanes<std::uint32_t, 16>(b);
  return vector_of<__m512>([&](std::size_t i) { return scalar::add_pair(s[i], x[i], y[i]); });
}
inline __m256i bf16s_of_floats(const __m512& a) {
  const auto x = lanes<float, 16>(a);
  return vector_of<__m256i>([&](std::size_t i) { return scalar::rounded_to_bf16(x[i]); });
}
/// p needs no alignment.
inline __m512 masked_load(unsigned mask, const void* p) {
  return vector_of<__m512>([&](std::size_t i) {
    float value = 0;
    if ((mask >> i & 1U) != 0)
      std::memcpy(&value, static_cast<const char*>(p) + i * sizeof(value), sizeof(value));
    return value;
  });
}
inline void masked_store(float* p, unsigned mask, const __m512& a) {
  const auto x = lanes<float, 16>(a);
  for (std::size_t i = 0; i < 16; ++i) {
    if ((mask >> i & 1U) != 0) p[i] = x[i];
  }
}
inline __m256 eight_of(const __m512& a, std::size_t half) {
  const auto x = lanes<float, 16>(a);
  return vector_of<__m256, 8>([&](std::size_t i) { return x[8 * half + i]; });
}
inline __m512 permuted(const __m512& a, unsigned order) {
  const auto x = lanes<float, 16>(a);
  return vector_of<__m512>([&](std::size_t i) { return x[i / 4 * 4 + (order >> i % 4 * 2 & 3U)]; });
}
inline __m512d doubles_of_floats(const __m256& a) {
  const auto x = lanes<float, 8>(a);
  return vector_of<__m512d, 8>([&](std::size_t i) { return double{x[i]}; });
}
/// Of sixteen bytes or words.
template <class Value, class Vector>
__m512i integers_of(const Vector& a) {
  const auto x = lanes<Value, 16>(a);
  return vector_of<__m512i>([&](std::size_t i) { return std::int32_t{x[i]}; });
}

}  // namespace
}  // namespace wring::kernels

#undef _mm512_fmadd_ps
#undef _mm512_fnmadd_ps
#undef _mm512_dpbf16_ps
#define _mm512_fmadd_ps(a, b, c) wring::kernels::fused(1.0F, a, b, c)
#define _mm512_fnmadd_ps(a, b, c) wring::kernels::fused(-1.0F, a, b, c)
#define _mm512_dpbf16_ps(sum, a, b) wring::kernels::dot_pairs(sum, a, b)
#define _mm512_cvtneps_pbh(a) wring::kernels::bf16s_of_floats(a)
#define _mm512_cvtepi32_ps(a) wring::kernels::floats_of_integers(a)
#define _mm512_cvtph_ps(a) wring::kernels::floats_of_halves(a)
#define _mm512_cvtps_ph(a, rounding) wring::kernels::halves_of_floats(a)
#define _mm512_cvtepi8_epi32(a) wring::kernels::integers_of<std::int8_t>(a)
#define _mm512_cvtepu8_epi32(a) wring::kernels::integers_of<std::uint8_t>(a)
#define _mm512_cvtepi16_epi32(a) wring::kernels::integers_of<std::int16_t>(a)
#define _mm512_maskz_loadu_ps(mask, p) wring::kernels::masked_load(mask, p)
#define _mm512_mask_storeu_ps(p, mask, a) wring::kernels::masked_store(p, mask, a)
#define _mm512_extractf32x8_ps(a, half) wring::kernels::eight_of(a, half)
#define _mm512_permute_ps(a, order) wring::kernels::permuted(a, order)
#define _mm512_cvtss_f32(a) (wring::kernels::lanes<float, 16>(a)[0])
#define _mm512_cvtps_pd(a) wring::kernels::doubles_of_floats(a)
#define _mm512_cvtepu16_epi32(a) wring::kernels::integers_of<std::uint16_t>(a)
#define _cvtsh_ss(bits) wring::f16_to_float(bits)
#define _mm512_cmplt_epi32_mask(a, b) _mm512_cmpgt_epi32_mask(b, a)
