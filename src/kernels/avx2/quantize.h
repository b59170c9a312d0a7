// Coding of activations (kernels/packed.h) in 256-bit registers, as a template: the search for scales, which
// takes most of the time, is done in what the level has.
#pragma once

#include <immintrin.h>

#include "kernels/packed.h"
#include "kernels/vector/eight_lanes.h"

namespace wring::kernels::avx2 {
namespace {

/// Squared errors of 32 values under four scales, in eight partial sums each.
struct ScaleErrors {
  static void sums(const __m256 (&v)[4], const float* scales, const float* inverses, __m256 (&sums)[4]) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const __m256 s = _mm256_broadcast_ss(scales + j), inverse = _mm256_broadcast_ss(inverses + j);
      sums[j] = _mm256_setzero_ps();
#pragma GCC unroll 4
      for (const __m256& value : v) {
        const __m256 code = _mm256_round_ps(_mm256_mul_ps(value, inverse), _MM_FROUND_TO_NEAREST_INT);
        const __m256 error = _mm256_fnmadd_ps(s, code, value);
        sums[j] = _mm256_fmadd_ps(error, error, sums[j]);
      }
    }
  }
};

/// The scale of 32 values: the largest one becomes code 127, 126, 125 or 124, whichever rounds the block
/// best.
template <class Errors>
inline void choose_scale(const __m256 (&v)[4], float amax, float& scale, float& inverse) {
  const __m128 codes = _mm_setr_ps(127, 126, 125, 124);
  alignas(16) float scales[4], inverses[4], errors[4];
  _mm_store_ps(scales, _mm_div_ps(_mm_set1_ps(amax), codes));
  _mm_store_ps(inverses, _mm_div_ps(codes, _mm_set1_ps(amax)));
  __m256 sums[4];
  Errors::sums(v, scales, inverses, sums);
  EightLanes::tree_eight_by_four(sums, errors);
  int best = 0;
  for (int j = 1; j < 4; ++j) best = errors[j] < errors[best] ? j : best;
  scale = scales[best];
  inverse = inverses[best];
}

/// KernelTable::quantize_row.
template <class Errors>
void quantize_row_with(const float* x, const QuantizedRows& out, std::size_t token) {
  const __m256i magnitude = _mm256_set1_epi32(0x7FFFFFFF);
  for (std::size_t at = 0; at < out.columns; at += 32) {
    ActivationChunk& chunk = *out.at(at / kChunkColumns, token);
    const std::size_t inner = at % kChunkColumns;
    __m256 v[4];
    __m256i largest = _mm256_setzero_si256();  // of bit patterns: NaN above infinity above every number
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      v[i] = _mm256_loadu_ps(x + at + 8 * i);
      largest = _mm256_max_epi32(largest, _mm256_and_si256(_mm256_castps_si256(v[i]), magnitude));
    }
    __m128i most = _mm_max_epi32(_mm256_castsi256_si128(largest), _mm256_extracti128_si256(largest, 1));
    most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0x4E));
    most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0xB1));
    const int bits = _mm_cvtsi128_si32(most);
    const float amax = _mm_cvtss_f32(_mm_castsi128_ps(most));
    float scale, inverse;
    if (bits >= 0x7F800000 || !(amax / 127.0F >= 0x1p-126F)) {
      scale = bits >= 0x7F800000 ? __builtin_nanf("") : 0.0F;
      inverse = 0;
      for (__m256& value : v) value = _mm256_setzero_ps();
    } else {
      choose_scale<Errors>(v, amax, scale, inverse);
    }
    __m256i q[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], _mm256_set1_ps(inverse)));
    // Packing takes 128-bit halves in turn; the permutation puts the 32-bit words back in order.
    const __m256i bytes = _mm256_permutevar8x32_epi32(
        _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3])),
        _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(chunk.codes + inner), bytes);
    // Lanes 0 and 2 of the sums of both halves: Σ of the first 16 and of the last 16.
    const __m256i a = _mm256_add_epi32(q[0], q[1]), b = _mm256_add_epi32(q[2], q[3]);
    __m128i sums = _mm_hadd_epi32(_mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1)),
                                  _mm_add_epi32(_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1)));
    sums = _mm_hadd_epi32(sums, sums);
    const int both = _mm_cvtsi128_si32(_mm_packs_epi32(sums, sums));
    __builtin_memcpy(chunk.code_sums + inner / 16, &both, sizeof(both));
    chunk.scales[inner / 32] = scale;
    chunk.sums[inner / 32] = scale * static_cast<float>(_mm_cvtsi128_si32(_mm_hadd_epi32(sums, sums)));
  }
}

}  // namespace
}  // namespace wring::kernels::avx2
