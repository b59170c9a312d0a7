// Sixteen float32 lanes: the operations of avx2/vec.h for AVX-512 F, BW, DQ and VL. All in an unnamed
// namespace, so that nothing compiled here can be linked into code that runs on an older CPU.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/vector/eight_lanes.h"

namespace wring::kernels::avx512 {
namespace {

struct Vec : EightLanes {
  static constexpr int kLanes = 16;
  // Register tiles: 32 registers hold 24 accumulators, up to six operands of the wide side and one broadcast
  // or weight.
  static constexpr int kRowTile = 8;
  static constexpr int kTokenTile = 3;
  static constexpr int kStreams = 8;
  static constexpr int kAttentionTile = 6;

  using F = __m512;
  using I = __m512i;
  using M = __mmask16;

  static F zero() { return _mm512_setzero_ps(); }
  static F set(float value) { return _mm512_set1_ps(value); }
  static F padding() { return set(-0.0F); }
  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, F a) { _mm512_storeu_ps(p, a); }
  static F load_first(const float* p, int n) { return _mm512_maskz_loadu_ps(range(0, n), p); }
  static void store_first(float* p, F a, int n) { _mm512_mask_storeu_ps(p, range(0, n), a); }

  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F div(F a, F b) { return _mm512_div_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  /// sum = fma(a, b, sum), in its register: left to itself, GCC 12 loads operands twice and spills sums in
  /// the unrolled loops. A template, so that compilers without these registers (over SIMDe) do not look in.
  template <class Floats>
  static void accumulate(Floats& sum, Floats a, Floats b) {
    asm("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  }
  static F max(F a, F b) { return _mm512_max_ps(a, b); }
  static F negate(F a) { return _mm512_xor_ps(a, set(-0.0F)); }
  static F abs(F a) { return _mm512_andnot_ps(set(-0.0F), a); }
  static F with_sign_of(F magnitude, F sign) {
    return _mm512_or_ps(abs(magnitude), _mm512_and_ps(set(-0.0F), sign));
  }

  static M less(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  static M not_less_equal(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_NLE_UQ); }
  static M range(int begin, int end) {
    const I lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return static_cast<M>(_mm512_cmpge_epi32_mask(lane, _mm512_set1_epi32(begin)) &
                          _mm512_cmplt_epi32_mask(lane, _mm512_set1_epi32(end)));
  }
  static F select(M mask, F yes, F no) { return _mm512_mask_blend_ps(mask, no, yes); }

  static F scale_by_power(F p, F shifted) {
    return _mm512_castsi512_ps(
        _mm512_add_epi32(_mm512_castps_si512(p), _mm512_slli_epi32(_mm512_castps_si512(shifted), 23)));
  }

  static float max_of(F a) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
  }
  static float first_of(F a) { return _mm512_cvtss_f32(a); }
  static Eight fold(const F* parts) {
    return _mm256_add_ps(_mm512_castps512_ps256(parts[0]), _mm512_extractf32x8_ps(parts[0], 1));
  }

  static I load_u8(const std::uint8_t* p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static I load_i8(const std::int8_t* p) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static I bits(I a, int shift, int mask) {
    return _mm512_and_si512(_mm512_srl_epi32(a, _mm_cvtsi32_si128(shift)), _mm512_set1_epi32(mask));
  }
  static I plus_shifted(I low, I high, int shift) {
    return _mm512_add_epi32(low, _mm512_sll_epi32(high, _mm_cvtsi32_si128(shift)));
  }
  static F to_float(I a) { return _mm512_cvtepi32_ps(a); }
  static F load_bf16(const void* p) {
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(p))), 16));
  }
  static float f16_to_float(std::uint16_t bits) { return _cvtsh_ss(bits); }
  static void store_f16(std::uint16_t* p, F a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
  }
  static F load_f16(const void* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
  }

  static F load_twice(const float* p) {
    const I index = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return _mm512_permutexvar_ps(index, _mm512_castps256_ps512(_mm256_loadu_ps(p)));
  }
  static F swap_pairs(F a) { return _mm512_permute_ps(a, 0xB1); }
  static F negate_even(F a) {
    return _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(a), _mm512_set1_epi64(0x80000000LL)));
  }

  struct DoubleSums {
    __m512d part[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()};

    void add(int /*index: one vector holds all 16 lanes*/, F a) {
      part[0] = _mm512_add_pd(part[0], _mm512_cvtps_pd(_mm512_castps512_ps256(a)));
      part[1] = _mm512_add_pd(part[1], _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1)));
    }
    double total() const {
      return tree_double(_mm512_castpd512_pd256(part[0]), _mm512_extractf64x4_pd(part[0], 1),
                         _mm512_castpd512_pd256(part[1]), _mm512_extractf64x4_pd(part[1], 1));
    }
  };
};

}  // namespace
}  // namespace wring::kernels::avx512
