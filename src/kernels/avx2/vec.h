// Eight float32 lanes: the few operations on which kernels/vector/ is written, for AVX2, FMA and F16C. All in
// an unnamed namespace, so that nothing compiled here can be linked into code that runs on an older CPU.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/vector/eight_lanes.h"

namespace wring::kernels::avx2 {
namespace {

struct Vec : EightLanes {
  static constexpr int kLanes = 8;
  // Register tiles: 16 registers hold 12 accumulators, one operand of the wide side and one broadcast or
  // weight.
  static constexpr int kRowTile = 4;        // rows of w in a tile of matmul
  static constexpr int kTokenTile = 3;      // tokens in a tile of matmul
  static constexpr int kStreams = 4;        // rows of w read at a time for a single token
  static constexpr int kAttentionTile = 3;  // rows in a tile of attention, by 4 vectors

  using F = __m256;
  using I = __m256i;
  using M = __m256;

  static F zero() { return _mm256_setzero_ps(); }
  static F set(float value) { return _mm256_set1_ps(value); }
  static F padding() { return set(-0.0F); }  // of tokens in tiles: times 0 it is −0
  static F load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, F a) { _mm256_storeu_ps(p, a); }
  /// The first n lanes from memory (nothing beyond is touched), +0 in the others.
  static F load_first(const float* p, int n) {
    return _mm256_maskload_ps(p, _mm256_castps_si256(range(0, n)));
  }
  static void store_first(float* p, F a, int n) {
    _mm256_maskstore_ps(p, _mm256_castps_si256(range(0, n)), a);
  }

  static F add(F a, F b) { return _mm256_add_ps(a, b); }
  static F sub(F a, F b) { return _mm256_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F div(F a, F b) { return _mm256_div_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  /// sum = fma(a, b, sum), in its register: left to itself, GCC 12 loads operands twice and spills sums in
  /// the unrolled loops.
  static void accumulate(F& sum, F a, F b) { asm("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b)); }
  static F max(F a, F b) { return _mm256_max_ps(a, b); }
  static F negate(F a) { return _mm256_xor_ps(a, set(-0.0F)); }
  static F abs(F a) { return _mm256_andnot_ps(set(-0.0F), a); }
  static F with_sign_of(F magnitude, F sign) {
    return _mm256_or_ps(abs(magnitude), _mm256_and_ps(set(-0.0F), sign));
  }

  static M less(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
  static M not_less_equal(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_NLE_UQ); }  // true for NaN
  /// True in the lanes begin … end−1.
  static M range(int begin, int end) {
    const I lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_castsi256_ps(_mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(begin), lane),
                                                   _mm256_cmpgt_epi32(_mm256_set1_epi32(end), lane)));
  }
  static F select(M mask, F yes, F no) { return _mm256_blendv_ps(no, yes, mask); }

  /// The bits of p, plus the integer in the low bits of `shifted` times 2^23: p · 2^n.
  static F scale_by_power(F p, F shifted) {
    return _mm256_castsi256_ps(
        _mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_castps_si256(shifted), 23)));
  }

  static float max_of(F a) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
  }
  static float first_of(F a) { return _mm256_cvtss_f32(a); }
  /// p[i] + p[i + 8] of the 16 partial sums; parts: [16 / kLanes].
  static __m256 fold(const F* parts) { return add(parts[0], parts[1]); }

  // Integers in 32-bit lanes, from consecutive bytes.
  static I load_u8(const std::uint8_t* p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  static I load_i8(const std::int8_t* p) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  static I bits(I a, int shift, int mask) {  // (a >> shift) & mask
    return _mm256_and_si256(_mm256_srl_epi32(a, _mm_cvtsi32_si128(shift)), _mm256_set1_epi32(mask));
  }
  static I plus_shifted(I low, I high, int shift) {  // low + (high << shift)
    return _mm256_add_epi32(low, _mm256_sll_epi32(high, _mm_cvtsi32_si128(shift)));
  }
  static F to_float(I a) { return _mm256_cvtepi32_ps(a); }
  static F load_bf16(const void* p) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p))), 16));
  }
  static float f16_to_float(std::uint16_t bits) { return _cvtsh_ss(bits); }
  static void store_f16(std::uint16_t* p, F a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
  }
  static F load_f16(const void* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p)));
  }

  // Rotary pairs.
  static F load_twice(const float* p) {  // p0 p0 p1 p1 …
    const __m256 four = _mm256_castps128_ps256(_mm_loadu_ps(p));
    return _mm256_permutevar8x32_ps(four, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3));
  }
  static F swap_pairs(F a) { return _mm256_permute_ps(a, 0xB1); }
  static F negate_even(F a) {
    return _mm256_xor_ps(a, _mm256_setr_ps(-0.0F, 0, -0.0F, 0, -0.0F, 0, -0.0F, 0));
  }

  // Sixteen float64 partial sums.
  struct DoubleSums {
    __m256d part[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};

    void add(int index, F a) {  // lanes 8 · index … 8 · index + 7
      part[2 * index] = _mm256_add_pd(part[2 * index], _mm256_cvtps_pd(_mm256_castps256_ps128(a)));
      part[2 * index + 1] = _mm256_add_pd(part[2 * index + 1], _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)));
    }
    double total() const { return tree_double(part[0], part[1], part[2], part[3]); }
  };
};

}  // namespace
}  // namespace wring::kernels::avx2
