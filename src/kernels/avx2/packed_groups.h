// Codes and scales of a group as it is stored, taken out in registers: what a few tokens are multiplied with
// (avx2/packed.h says what a source is).
//
// vpmaddubsw multiplies unsigned bytes (weights) by signed ones (activations) and adds pairs in 16 bits,
// where it would saturate:
//   4-bit codes   8 steps fit: 8 · 2 · 15 · 127 = 30,480
//   6-bit codes   2 steps fit, as q = 0 … 63; 32 · scale · Σ x is taken off in 32 bits
//   8-bit codes   one step fits, as |w| and x · sign(w): 2 · 128 · 127 = 32,512
// vpmaddwd then multiplies by the integer scale, as it adds the pairs of a row.
//
// kTokensOfBoth: of a tile of 16 rows, what the registers hold; of 8 rows they hold six. kFewTokens: up to
// here this is faster than a panel (measured on Zen 3).
#pragma once

#include "kernels/avx2/packed.h"

namespace wring::kernels::avx2 {
namespace {

/// For vpshufb: byte 8 · half + i of 16 to both words of row i, as `word` places it: 0x80 in a byte makes 0.
inline I to_rows(int half, int word, int shift) {
  const auto row = [&](int i) {
    const int one = word | (8 * half + i) << shift;
    return static_cast<int>(static_cast<unsigned>(one) << 16 | static_cast<unsigned>(one));
  };
  return _mm256_setr_epi32(row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7));
}
/// Sixteen bytes, twice.
inline I twice(const void* bytes) {
  return _mm256_broadcastsi128_si256(_mm_load_si128(static_cast<const __m128i*>(bytes)));
}

/// A share of the kBytes behind this chunk: all of them once every block of all halves was here.
template <std::size_t kBytes, int H>
inline void fetch_next(const void* chunk, int block, int first) {
  constexpr std::size_t kShare = kBytes / 16;
  const char* at =
      static_cast<const char*>(chunk) + kBytes + static_cast<std::size_t>(2 * block + first) * kShare;
#pragma GCC unroll 10
  for (std::size_t byte = 0; byte < H * kShare; byte += 64) _mm_prefetch(at + byte, _MM_HINT_T0);
}

struct Group4 {
  using Stored = GroupQ4_K;
  static constexpr bool kSuper = true, kMins = true;
  static constexpr int kTokensOfBoth = 3;
  static constexpr std::size_t kFewTokens = 6, kBytes = sizeof(Stored);

  explicit Group4(const Stored* group) : g(*group) {
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

  F d(int half) const {
    return f16s(g.d + 8 * half);
  }
  F dmin(int half) const {
    return f16s(g.dmin + 8 * half);
  }
  F min(int block, int half) const {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(mins[block] + 8 * half));
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
  }
  /// The scale, in both words of each row.
  I scale(int block, int half) const {
    return _mm256_shuffle_epi8(twice(scales[block]), to_rows(half, 0x8000, 0));
  }
  template <int H>
  void fetch(int block, int first) const {
    fetch_next<kBytes, H>(&g, block, first);
  }

  template <int T, int H>
  void dot(int block, int first, const ActivationChunk* x, I (&sums)[T][H]) const {
    I words[T][H];
#pragma GCC unroll 4
    for (int pair = 0; pair < 4; ++pair) {
      const int column = 32 * block + 8 * pair;
#pragma GCC unroll 2
      for (int h = 0; h < H; ++h) {
        const I both = load(g.qs[4 * block + pair] + 32 * (first + h));
        const I low = low_halves(both), high = high_halves(both);
#pragma GCC unroll 6
        for (int t = 0; t < T; ++t) {
          const I sum = _mm256_maddubs_epi16(low, broadcast_step(x[t].codes + column));
          if (pair == 0) {
            words[t][h] = sum;
          } else {
            add_words(words[t][h], sum);
          }
        }
#pragma GCC unroll 6
        for (int t = 0; t < T; ++t)
          add_words(words[t][h], _mm256_maddubs_epi16(high, broadcast_step(x[t].codes + column + 4)));
      }
    }
#pragma GCC unroll 2
    for (int h = 0; h < H; ++h) {
      const I factor = scale(block, first + h);
#pragma GCC unroll 6
      for (int t = 0; t < T; ++t) sums[t][h] = _mm256_madd_epi16(words[t][h], factor);
    }
  }

  const Stored& g;
  alignas(32) std::uint8_t scales[8][16], mins[8][16];
};

struct Group6 {
  using Stored = GroupQ6_K;
  static constexpr bool kSuper = true, kMins = false;
  static constexpr int kTokensOfBoth = 1;
  static constexpr std::size_t kFewTokens = 6, kBytes = sizeof(Stored);

  explicit Group6(const Stored* group) : g(*group) {}

  F d(int half) const { return f16s(g.d + 8 * half); }
  /// The scale of 16 columns, in both words of each row.
  I scale(int sixteen, int half) const {
    return _mm256_srai_epi16(_mm256_shuffle_epi8(twice(g.scales[sixteen]), to_rows(half, 0x0080, 8)), 8);
  }
  /// −32 times the two scales of a block: with Σ x of each 16 columns, what offset codes have too much.
  I offset(int block, int half) const {
    const auto eight = [&](int sixteen) {
      return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(g.scales[sixteen] + 8 * half));
    };
    const __m128i both = _mm_unpacklo_epi8(eight(2 * block), eight(2 * block + 1));
    return _mm256_mullo_epi16(_mm256_cvtepi8_epi16(both), _mm256_set1_epi16(-32));
  }
  /// Codes 0 … 63 of two of the four steps of 16 columns: steps 0 and 1, or (pair 1) 2 and 3.
  void codes(int sixteen, int half, int pair, I (&steps)[2]) const {
    const I two = _mm256_set1_epi8(0x30);
    const I high = load(g.qh[sixteen] + 32 * half), low = load(g.ql[2 * sixteen + pair] + 32 * half);
    const I first = pair == 0 ? _mm256_slli_epi16(high, 4) : high;
    const I second = pair == 0 ? _mm256_slli_epi16(high, 2) : _mm256_srli_epi16(high, 2);
    steps[0] = _mm256_or_si256(low_halves(low), _mm256_and_si256(first, two));
    steps[1] = _mm256_or_si256(high_halves(low), _mm256_and_si256(second, two));
  }
  template <int H>
  void fetch(int block, int first) const {
    fetch_next<kBytes, H>(&g, block, first);
  }

  template <int T, int H>
  void dot(int block, int first, const ActivationChunk* x, I (&sums)[T][H]) const {
#pragma GCC unroll 2
    for (int h = 0; h < H; ++h) {
      const I less = offset(block, first + h);
#pragma GCC unroll 6
      for (int t = 0; t < T; ++t)
        sums[t][h] = _mm256_madd_epi16(less, broadcast_step(x[t].code_sums + 2 * block));
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        I steps[2];
        codes(2 * block + i / 2, first + h, i % 2, steps);
        const I factor = scale(2 * block + i / 2, first + h);
#pragma GCC unroll 6
        for (int t = 0; t < T; ++t) {
          const std::int8_t* at = x[t].codes + 32 * block + 8 * i;
          I words = _mm256_maddubs_epi16(steps[0], broadcast_step(at));
          add_words(words, _mm256_maddubs_epi16(steps[1], broadcast_step(at + 4)));
          add_integers(sums[t][h], _mm256_madd_epi16(words, factor));
        }
      }
    }
  }

  const Stored& g;
};

/// From eight groups of 32 columns.
struct Group8 {
  using Stored = GroupQ8_0;
  static constexpr bool kSuper = false, kMins = false;
  static constexpr int kTokensOfBoth = 3;
  static constexpr std::size_t kFewTokens = 12, kBytes = 8 * sizeof(Stored);

  explicit Group8(const Stored* groups) : g(groups) {}

  F scale(int block, int half) const { return f16s(g[block].d + 8 * half); }
  template <int H>
  void fetch(int block, int first) const {
    fetch_next<kBytes, H>(g, block, first);
  }

  template <int T, int H>
  void dot(int block, int first, const ActivationChunk* x, I (&sums)[T][H]) const {
#pragma GCC unroll 8
    for (int step = 0; step < 8; ++step) {
#pragma GCC unroll 2
      for (int h = 0; h < H; ++h) {
        const I w = load(g[block].qs[step] + 32 * (first + h));
        const I size = _mm256_abs_epi8(w);
#pragma GCC unroll 6
        for (int t = 0; t < T; ++t) {
          const I token = _mm256_sign_epi8(broadcast_step(x[t].codes + 32 * block + 4 * step), w);
          const I sum = pairs_of_words(_mm256_maddubs_epi16(size, token));
          if (step == 0) {
            sums[t][h] = sum;
          } else {
            add_integers(sums[t][h], sum);
          }
        }
      }
    }
  }

  const Stored* g;
};

}  // namespace
}  // namespace wring::kernels::avx2
