// Packed mode's products for AVX-512 with VNNI: 16 or 32 rows by some tokens over 256 columns (definition and
// order: kernels/packed.h).
//
// vpdpbusd multiplies 64 unsigned bytes (weights) by signed ones (activations) and adds fours of products
// into 32 bits, exactly: a whole step of a group at once. Codes that are signed become unsigned by an offset,
// and their sums begin at −offset · Σ x. For a few tokens codes are taken out of the group in registers. For
// many they are unpacked once into a panel that stays in the first-level cache; two groups side by side,
// since Zen 4 loads one vector a cycle and so every activation that is loaded should serve two products.
#pragma once

#include <immintrin.h>

#include "kernels/packed.h"

namespace wring::kernels::avx512 {
namespace {

using F = __m512;
using I = __m512i;

inline I load(const void* p) {
  return _mm512_loadu_si512(p);
}
inline __m128i load_sixteen(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}
inline F f16s(const std::uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
/// Four bytes of a token, to every row.
inline I broadcast_step(const void* codes) {
  int word;
  __builtin_memcpy(&word, codes, sizeof(word));
  return _mm512_set1_epi32(word);
}
inline I low_halves(I a) {
  return _mm512_and_si512(a, _mm512_set1_epi8(15));
}
inline I high_halves(I a) {
  return low_halves(_mm512_srli_epi16(a, 4));
}
/// low | (high & 0x30) in every byte.
inline I with_bits_4_and_5(I low, I high) {
  return _mm512_ternarylogic_epi32(high, _mm512_set1_epi8(0x30), low, 0xEA);
}

// ---- sources of codes and scales ----
//
// kGroups groups of 16 rows, in blocks of kBlock columns that share a scale. codes(block, part, w): unsigned
// codes of the part's kSteps steps; kOffset belongs off each.

/// Q4_K, from the group.
struct Group4 {
  using Stored = GroupQ4_K;
  static constexpr int kGroups = 1, kBlock = 32, kSteps = 2, kOffset = 0, kColumns = 256;
  static constexpr bool kMins = true;

  explicit Group4(const Stored* group) : g(*group), d(f16s(g.d)), dmin(f16s(g.dmin)) {
    const I both = load(g.high);
    for (int i = 0; i < 2; ++i) {  // 128 columns
      const I low = load(g.low[4 * i]), high = i == 0 ? both : _mm512_srli_epi16(both, 4);
      _mm512_store_si512(scales[4 * i], with_bits_4_and_5(low_halves(low), _mm512_slli_epi16(high, 4)));
      _mm512_store_si512(mins[4 * i], with_bits_4_and_5(high_halves(low), _mm512_slli_epi16(high, 2)));
    }
  }

  F scale(std::size_t block, int /*group*/) const { return _mm512_mul_ps(d, floats_of(scales[block])); }
  F min(std::size_t block, int /*group*/) const { return _mm512_mul_ps(dmin, floats_of(mins[block])); }
  static F floats_of(const std::uint8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(load_sixteen(p)));
  }

  void codes(std::size_t block, int part, I (&w)[kSteps][1]) const {
    const I both = load(g.qs[4 * block + part]);
    w[0][0] = low_halves(both);
    w[1][0] = high_halves(both);
  }

  const Stored& g;
  F d, dmin;
  alignas(64) std::uint8_t scales[8][16], mins[8][16];
};

/// Q6_K, from the group.
struct Group6 {
  using Stored = GroupQ6_K;
  static constexpr int kGroups = 1, kBlock = 16, kSteps = 4, kOffset = 32, kColumns = 256;
  static constexpr bool kMins = false;

  explicit Group6(const Stored* group) : g(*group), d(f16s(g.d)) {}

  F scale(std::size_t block, int /*group*/) const {
    const I scales = _mm512_cvtepi8_epi32(load_sixteen(g.scales[block]));
    return _mm512_mul_ps(d, _mm512_cvtepi32_ps(scales));
  }

  void codes(std::size_t block, int /*part*/, I (&w)[kSteps][1]) const {
    const I first = load(g.ql[2 * block]), second = load(g.ql[2 * block + 1]), high = load(g.qh[block]);
    w[0][0] = with_bits_4_and_5(low_halves(first), _mm512_slli_epi16(high, 4));
    w[1][0] = with_bits_4_and_5(high_halves(first), _mm512_slli_epi16(high, 2));
    w[2][0] = with_bits_4_and_5(low_halves(second), high);
    w[3][0] = with_bits_4_and_5(high_halves(second), _mm512_srli_epi16(high, 2));
  }

  const Stored& g;
  F d;
};

/// Q8_0, from up to eight groups of 32 columns.
struct Group8 {
  using Stored = GroupQ8_0;
  static constexpr int kGroups = 1, kBlock = 32, kSteps = 1, kOffset = 128, kColumns = 32;
  static constexpr bool kMins = false;

  explicit Group8(const Stored* groups) : g(groups) {}

  F scale(std::size_t block, int /*group*/) const { return f16s(g[block].d); }

  void codes(std::size_t block, int part, I (&w)[kSteps][1]) const {
    w[0][0] = _mm512_xor_si512(load(g[block].qs[part]), _mm512_set1_epi8(-128));
  }

  const Stored* g;
};

/// Where many tokens find the codes and scales of G groups unpacked.
template <int G>
struct alignas(64) Panel {
  std::uint8_t codes[64][G][kStepBytes];  // [step]
  float scales[16][G][kGroupRows];        // [block]
  float mins[8][G][kGroupRows];
};

template <class Group, int G>
inline void unpack(const Group& group, std::size_t index, std::size_t blocks, Panel<G>& panel) {
  constexpr int kBlockSteps = Group::kBlock / 4;
  for (std::size_t block = 0; block < blocks; ++block) {
    _mm512_store_ps(panel.scales[block][index], group.scale(block, 0));
    if constexpr (Group::kMins) _mm512_store_ps(panel.mins[block][index], group.min(block, 0));
    for (int part = 0; part < kBlockSteps / Group::kSteps; ++part) {
      I w[Group::kSteps][1];
      group.codes(block, part, w);
#pragma GCC unroll 4
      for (int step = 0; step < Group::kSteps; ++step)
        _mm512_store_si512(panel.codes[kBlockSteps * block + Group::kSteps * part + step][index], w[step][0]);
    }
  }
}

template <class Group, int G>
struct FromPanel {
  static constexpr int kGroups = G, kBlock = Group::kBlock, kSteps = 1, kOffset = Group::kOffset;
  static constexpr bool kMins = Group::kMins;

  F scale(std::size_t block, int group) const { return _mm512_load_ps(panel.scales[block][group]); }
  F min(std::size_t block, int group) const { return _mm512_load_ps(panel.mins[block][group]); }

  void codes(std::size_t block, int part, I (&w)[kSteps][G]) const {
#pragma GCC unroll 2
    for (int i = 0; i < G; ++i) w[0][i] = load(panel.codes[kBlock / 4 * block + part][i]);
  }

  const Panel<G>& panel;
};

// ---- products ----

/// Where the sums of a block begin: [16 columns], the first of a block's.
template <class Source>
inline void put_starts(const ActivationChunk& x, std::int32_t* starts) {
  I sums = load(x.code_sums);
  if constexpr (Source::kBlock == 32) sums = _mm512_add_epi32(sums, _mm512_ror_epi64(sums, 32));
  _mm512_store_si512(starts, _mm512_mullo_epi32(sums, _mm512_set1_epi32(-Source::kOffset)));
}

/// T tokens: y[t * y_stride + row] += the products of `blocks` blocks, in 16 · kGroups rows; y starts at 0
/// where `fresh`.
template <int T, class Source>
__attribute__((noinline)) void multiply(const Source& source, std::size_t blocks, const ActivationChunk* x,
                                        float* y, std::size_t y_stride, bool fresh) {
  constexpr int G = Source::kGroups, kBlock = Source::kBlock, kSteps = Source::kSteps;
  alignas(64) std::int32_t starts[T][16];
  F acc[T][G];
#pragma GCC unroll 12
  for (int t = 0; t < T; ++t) {
    if constexpr (Source::kOffset != 0) put_starts<Source>(x[t], starts[t]);
#pragma GCC unroll 2
    for (int i = 0; i < G; ++i) {
      acc[t][i] = fresh ? _mm512_setzero_ps()
                        : _mm512_loadu_ps(y + static_cast<std::size_t>(t) * y_stride + kGroupRows * i);
    }
  }
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::size_t scale_at = block * kBlock / 32;
    I sums[T][G];
#pragma GCC unroll 12
    for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
      for (int i = 0; i < G; ++i) {
        sums[t][i] =
            Source::kOffset == 0 ? _mm512_setzero_si512() : _mm512_set1_epi32(starts[t][block * kBlock / 16]);
      }
    }
#pragma GCC unroll 8
    for (int part = 0; part < kBlock / 4 / kSteps; ++part) {
      I w[kSteps][G];
      source.codes(block, part, w);
#pragma GCC unroll 4
      for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
        for (int t = 0; t < T; ++t) {
          const I token = broadcast_step(x[t].codes + kBlock * block + 4 * (kSteps * part + step));
#pragma GCC unroll 2
          for (int i = 0; i < G; ++i) sums[t][i] = _mm512_dpbusd_epi32(sums[t][i], w[step][i], token);
        }
      }
    }
    F scale[G], min[G];
#pragma GCC unroll 2
    for (int i = 0; i < G; ++i) {
      scale[i] = source.scale(block, i);
      if constexpr (Source::kMins) min[i] = source.min(block, i);
    }
#pragma GCC unroll 12
    for (int t = 0; t < T; ++t) {
      const F token_scale = _mm512_set1_ps(x[t].scales[scale_at]);
#pragma GCC unroll 2
      for (int i = 0; i < G; ++i) {
        acc[t][i] =
            _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[t][i]), _mm512_mul_ps(scale[i], token_scale), acc[t][i]);
      }
      if constexpr (Source::kMins) {
        const F token_sum = _mm512_set1_ps(x[t].sums[scale_at]);
#pragma GCC unroll 2
        for (int i = 0; i < G; ++i) acc[t][i] = _mm512_fnmadd_ps(min[i], token_sum, acc[t][i]);
      }
    }
  }
#pragma GCC unroll 12
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
    for (int i = 0; i < G; ++i)
      _mm512_storeu_ps(y + static_cast<std::size_t>(t) * y_stride + kGroupRows * i, acc[t][i]);
  }
}

}  // namespace
}  // namespace wring::kernels::avx512
