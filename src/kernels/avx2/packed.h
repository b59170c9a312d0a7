// Packed mode's products for AVX2: a few tokens by 8 or 16 rows over 256 columns (definition and order:
// kernels/packed.h). Codes and scales come from a source: a group as it is stored (packed_groups.h), or one
// unpacked into a panel (packed_panels.h). A source has, of `block` (32 columns) and `half` (rows 8 · half
// …):
//   dot<T, H>(block, first, x, sums)  Σ scale · code · x_code for T tokens and the halves from `first` on
//   fetch<H>(block, first)            asks the memory for a share of what comes next
//   d(half); dmin(half), min(block, half) where kMins     of a super-block
//   scale(block, half)                                    where not kSuper
#pragma once

#include <immintrin.h>

#include "kernels/packed.h"

namespace wring::kernels::avx2 {
namespace {

using F = __m256;
using I = __m256i;

inline I load(const void* p) {
  return _mm256_load_si256(static_cast<const I*>(p));
}
inline void store(void* p, I a) {
  _mm256_store_si256(static_cast<I*>(p), a);
}
inline F f16s(const std::uint16_t* p) {
  return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
}
/// Four bytes (or two words) of a token, to every row.
inline I broadcast_step(const void* codes) {
  int word;
  __builtin_memcpy(&word, codes, sizeof(word));
  return _mm256_set1_epi32(word);
}
inline I low_halves(I a) {
  return _mm256_and_si256(a, _mm256_set1_epi8(15));
}
inline I high_halves(I a) {
  return low_halves(_mm256_srli_epi16(a, 4));
}

// sum += a, in its register and in this order: left to itself, GCC 12 makes a tree of the additions and
// spills.
inline void add_words(I& sum, I a) {
  asm volatile("vpaddw %1, %0, %0" : "+x"(sum) : "x"(a));
}
inline void add_integers(I& sum, I a) {
  asm volatile("vpaddd %1, %0, %0" : "+x"(sum) : "x"(a));
}
inline I pairs_of_words(I a) {
  return _mm256_madd_epi16(a, _mm256_set1_epi16(1));
}

template <int T, int H>
inline void clear(F (&sums)[T][H]) {
#pragma GCC unroll 6
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
    for (int h = 0; h < H; ++h) sums[t][h] = _mm256_setzero_ps();
  }
}

/// y += one super-block's products.
template <int T, int H, class Source>
inline void add_super_block(const Source& source, int first, const ActivationChunk* x, F (&y)[T][H]) {
  F a[T][H];
  clear(a);
  for (int block = 0; block < 8; ++block) {
    source.template fetch<H>(block, first);
    I sums[T][H];
    source.dot(block, first, x, sums);
#pragma GCC unroll 6
    for (int t = 0; t < T; ++t) {
      const F token = _mm256_broadcast_ss(x[t].scales + block);
#pragma GCC unroll 2
      for (int h = 0; h < H; ++h) a[t][h] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[t][h]), token, a[t][h]);
    }
  }
#pragma GCC unroll 2
  for (int h = 0; h < H; ++h) {
    const F d = source.d(first + h);
#pragma GCC unroll 6
    for (int t = 0; t < T; ++t) y[t][h] = _mm256_fmadd_ps(d, a[t][h], y[t][h]);
  }
  if constexpr (Source::kMins) {
    F b[T][H];
    clear(b);
    for (int block = 0; block < 8; ++block) {
      F min[H];
#pragma GCC unroll 2
      for (int h = 0; h < H; ++h) min[h] = source.min(block, first + h);
#pragma GCC unroll 6
      for (int t = 0; t < T; ++t) {
        const F token = _mm256_broadcast_ss(x[t].sums + block);
#pragma GCC unroll 2
        for (int h = 0; h < H; ++h) b[t][h] = _mm256_fmadd_ps(min[h], token, b[t][h]);
      }
    }
#pragma GCC unroll 2
    for (int h = 0; h < H; ++h) {
      const F dmin = source.dmin(first + h);
#pragma GCC unroll 6
      for (int t = 0; t < T; ++t) y[t][h] = _mm256_fnmadd_ps(dmin, b[t][h], y[t][h]);
    }
  }
}

/// y += the products of `blocks` blocks that have a scale each.
template <int T, int H, class Source>
inline void add_blocks(const Source& source, int first, int blocks, const ActivationChunk* x, F (&y)[T][H]) {
  for (int block = 0; block < blocks; ++block) {
    source.template fetch<H>(block, first);
    I sums[T][H];
    source.dot(block, first, x, sums);
    F scale[H];
#pragma GCC unroll 2
    for (int h = 0; h < H; ++h) scale[h] = source.scale(block, first + h);
#pragma GCC unroll 6
    for (int t = 0; t < T; ++t) {
      const F token = _mm256_broadcast_ss(x[t].scales + block);
#pragma GCC unroll 2
      for (int h = 0; h < H; ++h)
        y[t][h] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[t][h]), _mm256_mul_ps(scale[h], token), y[t][h]);
    }
  }
}

/// T tokens by the H halves from `first` on: y[t * y_stride + row] += the products of `blocks` blocks of 32
/// columns; y starts at 0 where `fresh`.
template <int T, int H, class Source>
__attribute__((noinline)) void multiply(const Source& source, int first, int blocks, const ActivationChunk* x,
                                        float* y, std::size_t y_stride, bool fresh) {
  F sums[T][H];
  clear(sums);
  if (!fresh) {
#pragma GCC unroll 6
    for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
      for (int h = 0; h < H; ++h)
        sums[t][h] = _mm256_loadu_ps(y + static_cast<std::size_t>(t) * y_stride + 8 * (first + h));
    }
  }
  if constexpr (Source::kSuper) {
    add_super_block(source, first, x, sums);
  } else {
    add_blocks(source, first, blocks, x, sums);
  }
#pragma GCC unroll 6
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
    for (int h = 0; h < H; ++h)
      _mm256_storeu_ps(y + static_cast<std::size_t>(t) * y_stride + 8 * (first + h), sums[t][h]);
  }
}

/// At most T tokens, by all 16 rows.
template <int T, class Source>
inline void multiply_some(const Source& source, int blocks, const ActivationChunk* x, std::size_t tokens,
                          float* y, std::size_t y_stride, bool fresh) {
  if constexpr (T > 1) {
    if (tokens < T) return multiply_some<T - 1>(source, blocks, x, tokens, y, y_stride, fresh);
  }
  // What the registers hold: both halves share the tokens' codes, more tokens share a half's.
  if constexpr (T <= Source::kTokensOfBoth) {
    multiply<T, 2>(source, 0, blocks, x, y, y_stride, fresh);
  } else {
    multiply<T, 1>(source, 0, blocks, x, y, y_stride, fresh);
    multiply<T, 1>(source, 1, blocks, x, y, y_stride, fresh);
  }
}

}  // namespace
}  // namespace wring::kernels::avx2
