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

namespace wring::kernels {
namespace {

template <class T, std::size_t N, class Vector>
std::array<T, N> lanes(const Vector& vector) {
  static_assert(sizeof(Vector) == N * sizeof(T));
  std::array<T, N> values;
  std::memcpy(values.data(), &vector, sizeof(vector));
  return values;
}

/// A vector of function(i) for each of 16 lanes.
template <class Vector, class Function>
Vector sixteen(Function function) {
  std::array<decltype(function(std::size_t{0})), 16> values;
  static_assert(sizeof(values) == sizeof(Vector));
  for (std::size_t i = 0; i < 16; ++i) values[i] = function(i);
  Vector vector;
  std::memcpy(&vector, values.data(), sizeof(vector));
  return vector;
}

inline __m512 fused(float sign, const __m512& a, const __m512& b, const __m512& c) {
  const auto x = lanes<float, 16>(a), y = lanes<float, 16>(b), z = lanes<float, 16>(c);
  return sixteen<__m512>([&](std::size_t i) { return std::fma(sign * x[i], y[i], z[i]); });
}
inline __m512 floats_of_integers(const __m512i& a) {
  const auto x = lanes<std::int32_t, 16>(a);
  return sixteen<__m512>([&](std::size_t i) { return static_cast<float>(x[i]); });
}
inline __m512 floats_of_halves(const __m256i& a) {
  const auto x = lanes<std::uint16_t, 16>(a);
  return sixteen<__m512>([&](std::size_t i) { return f16_to_float(x[i]); });
}
/// Of sixteen bytes or words.
template <class Value, class Vector>
__m512i integers_of(const Vector& a) {
  const auto x = lanes<Value, 16>(a);
  return sixteen<__m512i>([&](std::size_t i) { return std::int32_t{x[i]}; });
}

}  // namespace
}  // namespace wring::kernels

#undef _mm512_fmadd_ps
#undef _mm512_fnmadd_ps
#define _mm512_fmadd_ps(a, b, c) wring::kernels::fused(1.0F, a, b, c)
#define _mm512_fnmadd_ps(a, b, c) wring::kernels::fused(-1.0F, a, b, c)
#define _mm512_cvtepi32_ps(a) wring::kernels::floats_of_integers(a)
#define _mm512_cvtph_ps(a) wring::kernels::floats_of_halves(a)
#define _mm512_cvtepi8_epi32(a) wring::kernels::integers_of<std::int8_t>(a)
#define _mm512_cvtepu8_epi32(a) wring::kernels::integers_of<std::uint8_t>(a)
#define _mm512_cvtepi16_epi32(a) wring::kernels::integers_of<std::int16_t>(a)
