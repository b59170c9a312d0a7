// Packed mode's products for AVX2: 16 rows by a few tokens over 256 columns (definition and order:
// kernels/packed.h).
//
// vpmaddubsw multiplies unsigned bytes (weights) by signed ones (activations) and adds pairs in 16 bits,
// where it would saturate:
//   4-bit codes   8 steps fit: 8 · 2 · 15 · 127 = 30,480
//   6-bit codes   2 steps fit, as q = 0 … 63; 32 · Σ x is taken off in 32 bits
//   8-bit codes   one step fits, as |w| and x · sign(w): 2 · 128 · 127 = 32,512; or vpmaddwd on words
// For a few tokens codes are taken out of the group in registers, again for each tile of tokens. For many
// they are unpacked once into a panel that stays in the first-level cache.
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
/// Eight bytes as floats.
inline F floats_of(const std::uint8_t* p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
inline F floats_of(const std::int8_t* p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
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

// ---- sources of codes and scales: half 0 is rows 0 … 7 ----
//
// dot<T>(column, x, sums): the integer sums over the block at `column`, kBlock columns.

/// Q4_K, from the group.
struct Group4 {
  static constexpr bool kMins = true;
  static constexpr int kBlock = 32;
  static constexpr int kTokens = 3;  // of a tile: what the registers hold

  explicit Group4(const GroupQ4_K& group) : g(group) {
    d[0] = f16s(g.d), d[1] = f16s(g.d + 8);
    dmin[0] = f16s(g.dmin), dmin[1] = f16s(g.dmin + 8);
    const I two = _mm256_set1_epi8(0x30);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {  // 64 columns: two rows of 16 bytes a vector
      const I low = load(g.low[2 * i]), both = load(g.high[2 * (i % 2)]);
      const I high = i < 2 ? both : _mm256_srli_epi16(both, 4);
      store(scales[2 * i],
            _mm256_or_si256(low_halves(low), _mm256_and_si256(_mm256_slli_epi16(high, 4), two)));
      store(mins[2 * i],
            _mm256_or_si256(high_halves(low), _mm256_and_si256(_mm256_slli_epi16(high, 2), two)));
    }
  }

  F scale(int column, int half) const {
    return _mm256_mul_ps(d[half], floats_of(scales[column / 32] + 8 * half));
  }
  F min(int column, int half) const {
    return _mm256_mul_ps(dmin[half], floats_of(mins[column / 32] + 8 * half));
  }

  template <int T>
  void dot(int column, const ActivationChunk* x, I (&sums)[T][2]) const {
    I words[T][2];
#pragma GCC unroll 4
    for (int pair = 0; pair < 4; ++pair) {
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const I both = load(g.qs[column / 8 + pair] + 32 * half);
        const I low = low_halves(both);
#pragma GCC unroll 4
        for (int t = 0; t < T; ++t) {
          const I sum = _mm256_maddubs_epi16(low, broadcast_step(x[t].codes + column + 8 * pair));
          if (pair == 0) {
            words[t][half] = sum;
          } else {
            add_words(words[t][half], sum);
          }
        }
        const I high = high_halves(both);
#pragma GCC unroll 4
        for (int t = 0; t < T; ++t)
          add_words(words[t][half],
                    _mm256_maddubs_epi16(high, broadcast_step(x[t].codes + column + 8 * pair + 4)));
      }
    }
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
      sums[t][0] = pairs_of_words(words[t][0]);
      sums[t][1] = pairs_of_words(words[t][1]);
    }
  }

  const GroupQ4_K& g;
  F d[2], dmin[2];
  alignas(32) std::uint8_t scales[8][16], mins[8][16];
};

/// Q6_K, from the group.
struct Group6 {
  static constexpr bool kMins = false;
  static constexpr int kBlock = 16;
  static constexpr int kTokens = 2;

  explicit Group6(const GroupQ6_K& group) : g(group), d{f16s(g.d), f16s(g.d + 8)} {}

  F scale(int column, int half) const {
    return _mm256_mul_ps(d[half], floats_of(g.scales[column / 16] + 8 * half));
  }

  /// Codes 0 … 63 of two of the four steps of 16 columns: steps 0 and 1, or (pair 1) 2 and 3.
  void codes(int column, int half, int pair, I (&steps)[2]) const {
    const I two = _mm256_set1_epi8(0x30);
    const I high = load(g.qh[column / 16] + 32 * half), low = load(g.ql[column / 8 + pair] + 32 * half);
    const I first = pair == 0 ? _mm256_slli_epi16(high, 4) : high;
    const I second = pair == 0 ? _mm256_slli_epi16(high, 2) : _mm256_srli_epi16(high, 2);
    steps[0] = _mm256_or_si256(low_halves(low), _mm256_and_si256(first, two));
    steps[1] = _mm256_or_si256(high_halves(low), _mm256_and_si256(second, two));
  }

  template <int T>
  void dot(int column, const ActivationChunk* x, I (&sums)[T][2]) const {
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t)
      sums[t][0] = sums[t][1] = _mm256_set1_epi32(-32 * x[t].code_sums[column / 16]);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
#pragma GCC unroll 2
      for (int pair = 0; pair < 2; ++pair) {
        I steps[2];
        codes(column, half, pair, steps);
#pragma GCC unroll 4
        for (int t = 0; t < T; ++t) {
          const std::int8_t* at = x[t].codes + column + 8 * pair;
          I words = _mm256_maddubs_epi16(steps[0], broadcast_step(at));
          add_words(words, _mm256_maddubs_epi16(steps[1], broadcast_step(at + 4)));
          add_integers(sums[t][half], pairs_of_words(words));
        }
      }
    }
  }

  const GroupQ6_K& g;
  F d[2];
};

/// Q8_0, from eight groups of 32 columns.
struct Group8 {
  static constexpr bool kMins = false;
  static constexpr int kBlock = 32;
  static constexpr int kTokens = 2;

  explicit Group8(const GroupQ8_0* groups) : g(groups) {}

  F scale(int column, int half) const { return f16s(g[column / 32].d + 8 * half); }

  template <int T>
  void dot(int column, const ActivationChunk* x, I (&sums)[T][2]) const {
#pragma GCC unroll 8
    for (int step = 0; step < 8; ++step) {
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const I w = load(g[column / 32].qs[step] + 32 * half);
        const I size = _mm256_abs_epi8(w);
#pragma GCC unroll 4
        for (int t = 0; t < T; ++t) {
          const I token = _mm256_sign_epi8(broadcast_step(x[t].codes + column + 4 * step), w);
          const I sum = pairs_of_words(_mm256_maddubs_epi16(size, token));
          if (step == 0) {
            sums[t][half] = sum;
          } else {
            add_integers(sums[t][half], sum);
          }
        }
      }
    }
  }

  const GroupQ8_0* g;
};

/// Where many tokens find codes and scales unpacked.
struct alignas(64) Panel {
  union {
    std::uint8_t codes[64][kStepBytes];       // [4 columns][row][column]
    std::int16_t words[128][2 * kGroupRows];  // [2 columns][row][column]: 8-bit types
  };
  float scales[16][16];  // [block][row]
  float mins[8][16];     // [32 columns][row]
};

template <class Group>
inline void put_scales(const Group& group, int columns, Panel& panel) {
  for (int column = 0; column < columns; column += Group::kBlock) {
    for (int half = 0; half < 2; ++half) {
      _mm256_store_ps(panel.scales[column / Group::kBlock] + 8 * half, group.scale(column, half));
      if constexpr (Group::kMins)
        _mm256_store_ps(panel.mins[column / 32] + 8 * half, group.min(column, half));
    }
  }
}

inline void unpack(const Group4& group, int columns, Panel& panel) {
  put_scales(group, columns, panel);
  for (int i = 0; i < 32; ++i) {
    for (int half = 0; half < kStepBytes; half += 32) {
      const I both = load(group.g.qs[i] + half);
      store(panel.codes[2 * i] + half, low_halves(both));
      store(panel.codes[2 * i + 1] + half, high_halves(both));
    }
  }
}

inline void unpack(const Group6& group, int columns, Panel& panel) {
  put_scales(group, columns, panel);
  for (int column = 0; column < 256; column += 16) {
    for (int half = 0; half < 2; ++half) {
      for (int pair = 0; pair < 2; ++pair) {
        I steps[2];
        group.codes(column, half, pair, steps);
        store(panel.codes[column / 4 + 2 * pair] + 32 * half, steps[0]);
        store(panel.codes[column / 4 + 2 * pair + 1] + 32 * half, steps[1]);
      }
    }
  }
}

inline void unpack(const Group8& group, int columns, Panel& panel) {
  put_scales(group, columns, panel);
  // Each byte into the upper half of a word, columns 0 and 1 of each row or 2 and 3, then shifted down.
  const I first =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(-1, 0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13));
  const I second =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(-1, 2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15));
  for (int step = 0; step < columns / 4; ++step) {
    for (int half = 0; half < 2; ++half) {
      const I four = load(group.g[step / 8].qs[step % 8] + 32 * half);
      store(panel.words[2 * step] + 16 * half, _mm256_srai_epi16(_mm256_shuffle_epi8(four, first), 8));
      store(panel.words[2 * step + 1] + 16 * half, _mm256_srai_epi16(_mm256_shuffle_epi8(four, second), 8));
    }
  }
}

/// Codes and scales from a panel. kAdds: steps that fit 16 bits; kOffset is taken off every code.
template <class Group, int kAdds, int kOffset, int kTileTokens>
struct FromPanel {
  static constexpr bool kMins = Group::kMins;
  static constexpr int kBlock = Group::kBlock;
  static constexpr int kTokens = kTileTokens;

  F scale(int column, int half) const { return _mm256_load_ps(panel.scales[column / kBlock] + 8 * half); }
  F min(int column, int half) const { return _mm256_load_ps(panel.mins[column / 32] + 8 * half); }

  template <int T>
  void dot(int column, const ActivationChunk* x, I (&sums)[T][2]) const {
#pragma GCC unroll 8
    for (int at = 0; at < kBlock; at += 4 * kAdds) {
      I words[T][2];
#pragma GCC unroll 8
      for (int step = 0; step < kAdds; ++step) {
        const std::uint8_t* w = panel.codes[(column + at) / 4 + step];
        const I w0 = load(w), w1 = load(w + 32);
#pragma GCC unroll 4
        for (int t = 0; t < T; ++t) {
          const I token = broadcast_step(x[t].codes + column + at + 4 * step);
          const I p0 = _mm256_maddubs_epi16(w0, token), p1 = _mm256_maddubs_epi16(w1, token);
          if (step == 0) {
            words[t][0] = p0;
            words[t][1] = p1;
          } else {
            add_words(words[t][0], p0);
            add_words(words[t][1], p1);
          }
        }
      }
#pragma GCC unroll 4
      for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
          if (at == 0) {
            sums[t][half] = pairs_of_words(words[t][half]);
          } else {
            add_integers(sums[t][half], pairs_of_words(words[t][half]));
          }
        }
      }
    }
    if (kOffset == 0) return;
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
      const I offset = _mm256_set1_epi32(-kOffset * x[t].code_sums[column / 16]);
      add_integers(sums[t][0], offset);
      add_integers(sums[t][1], offset);
    }
  }

  const Panel& panel;
};

/// The same for 8-bit codes, in words; `x` are the tokens' codes as words.
struct FromWords {
  static constexpr bool kMins = false;
  static constexpr int kBlock = 32;
  static constexpr int kTokens = 3;

  F scale(int column, int half) const { return _mm256_load_ps(panel.scales[column / 32] + 8 * half); }

  template <int T>
  void dot(int column, const ActivationChunk* /*x*/, I (&sums)[T][2]) const {
#pragma GCC unroll 16
    for (int step = 0; step < 16; ++step) {
      const std::int16_t* w = panel.words[column / 2 + step];
      const I w0 = load(w), w1 = load(w + 16);
#pragma GCC unroll 4
      for (int t = 0; t < T; ++t) {
        const I token = broadcast_step(words[t] + column + 2 * step);
        const I p0 = _mm256_madd_epi16(w0, token), p1 = _mm256_madd_epi16(w1, token);
        if (step == 0) {
          sums[t][0] = p0;
          sums[t][1] = p1;
        } else {
          add_integers(sums[t][0], p0);
          add_integers(sums[t][1], p1);
        }
      }
    }
  }

  const Panel& panel;
  const std::int16_t (*words)[kChunkColumns];
};

// ---- products ----

/// T tokens: y[t * y_stride + row] += the products of `columns` columns, in 16 rows; y starts at 0 where
/// `fresh`.
template <int T, class Source>
__attribute__((noinline)) void multiply(const Source& source, int columns, const ActivationChunk* x, float* y,
                                        std::size_t y_stride, bool fresh) {
  F acc[T][2];
#pragma GCC unroll 4
  for (int t = 0; t < T; ++t) {
    float* const from = y + static_cast<std::size_t>(t) * y_stride;
    acc[t][0] = fresh ? _mm256_setzero_ps() : _mm256_loadu_ps(from);
    acc[t][1] = fresh ? _mm256_setzero_ps() : _mm256_loadu_ps(from + 8);
  }
  for (int column = 0; column < columns; column += Source::kBlock) {
    I sums[T][2];
    source.template dot<T>(column, x, sums);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const F scale = source.scale(column, half);
#pragma GCC unroll 4
      for (int t = 0; t < T; ++t) {
        const F both = _mm256_mul_ps(scale, _mm256_broadcast_ss(x[t].scales + column / 32));
        acc[t][half] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[t][half]), both, acc[t][half]);
      }
      if constexpr (Source::kMins) {
        const F min = source.min(column, half);
#pragma GCC unroll 4
        for (int t = 0; t < T; ++t)
          acc[t][half] = _mm256_fnmadd_ps(min, _mm256_broadcast_ss(x[t].sums + column / 32), acc[t][half]);
      }
    }
  }
#pragma GCC unroll 4
  for (int t = 0; t < T; ++t) {
    float* const to = y + static_cast<std::size_t>(t) * y_stride;
    _mm256_storeu_ps(to, acc[t][0]);
    _mm256_storeu_ps(to + 8, acc[t][1]);
  }
}

/// At most T tokens.
template <int T, class Source>
inline void multiply_some(const Source& source, int columns, const ActivationChunk* x, std::size_t tokens,
                          float* y, std::size_t y_stride, bool fresh) {
  if constexpr (T > 1) {
    if (tokens < T) return multiply_some<T - 1>(source, columns, x, tokens, y, y_stride, fresh);
  }
  multiply<T>(source, columns, x, y, y_stride, fresh);
}

}  // namespace
}  // namespace wring::kernels::avx2
