// The end of the summation tree, p[0 … 7] → one sum, in 256-bit registers: shared by the AVX2 and AVX-512
// levels.
#pragma once

#include <immintrin.h>

namespace wring::kernels {
namespace {

struct EightLanes {
  using Eight = __m256;

  /// p[i] += p[i+4], p[i] += p[i+2], p[0] += p[1].
  static float tree_eight(__m256 p) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(p), _mm256_extractf128_ps(p, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }

  /// Four sums at once.
  static void tree_eight_by_four(const __m256 (&a)[4], float* sums) {
    const __m256 s02 =
        _mm256_add_ps(_mm256_permute2f128_ps(a[0], a[2], 0x20), _mm256_permute2f128_ps(a[0], a[2], 0x31));
    const __m256 s13 =
        _mm256_add_ps(_mm256_permute2f128_ps(a[1], a[3], 0x20), _mm256_permute2f128_ps(a[1], a[3], 0x31));
    // Lower half: sums 0 and 1, two terms each; upper half: 2 and 3.
    const __m256 two = _mm256_add_ps(_mm256_shuffle_ps(s02, s13, 0x44), _mm256_shuffle_ps(s02, s13, 0xEE));
    const __m128 low = _mm256_castps256_ps128(two);
    const __m128 high = _mm256_extractf128_ps(two, 1);
    _mm_storeu_ps(sums, _mm_add_ps(_mm_shuffle_ps(low, high, 0x88), _mm_shuffle_ps(low, high, 0xDD)));
  }

  /// The whole tree over 16 float64 partial sums.
  static double tree_double(__m256d p0, __m256d p4, __m256d p8, __m256d p12) {
    const __m256d four = _mm256_add_pd(_mm256_add_pd(p0, p8), _mm256_add_pd(p4, p12));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }

  static float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
};

}  // namespace
}  // namespace wring::kernels
