// Packed mode's products for AVX-512 with VNNI: 16 or 32 rows by some tokens over 256 columns (definition and
// order: kernels/packed.h).
//
// vpdpbusd multiplies 64 unsigned bytes (weights) by signed ones (activations) and adds fours of products
// into 32 bits, exactly: a whole step of a group at once. Codes that are signed become unsigned by an offset,
// and their sums begin at −offset · Σ x. Sums that meet an integer scale begin at the bits of the float32
// kBase besides: while they stay below 2^22 they are, as they stand, the float32 kBase + sum, and one fused
// multiply-add takes the scale in and kBase out, exactly. For a few tokens codes are taken out of the group
// in registers. For many they are unpacked into a panel that stays in the first-level cache; two groups
// side by side, since Zen 4 loads one vector a cycle and so every activation that is loaded should serve two
// products.
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
/// A core that waits for each line in turn gets half of the memory's rate: called for each line that is read,
/// this asks for the one that comes some super-blocks later. On a Sapphire Rapids 2 KB were too near, 9 KB
/// too far.
inline void fetch_ahead_of(const void* p) {
  constexpr std::size_t kAhead = 4608;
  _mm_prefetch(static_cast<const char*>(p) + kAhead, _MM_HINT_T1);
}
template <std::size_t kBytes>
inline void fetch_lines_ahead_of(const void* p) {
  for (std::size_t at = 0; at < kBytes; at += 64) fetch_ahead_of(static_cast<const char*>(p) + at);
}

// ---- sources of codes and scales ----
//
// kGroups groups of 16 rows, by blocks of 32 columns of which kScales parts have a scale. codes(part, w): the
// unsigned codes of the part's two steps; kOffset belongs off each. A super-block has d, integer scales
// (scale(index, group), as floats) and, with kMins, dmin and mins; else scale(block, group) is all there is.

/// Q4_K, from the group.
struct Group4 {
  using Stored = GroupQ4_K;
  static constexpr int kGroups = 1, kScales = 1, kOffset = 0, kColumns = 256;
  static constexpr bool kSuper = true, kMins = true;

  explicit Group4(const Stored* group) : g(*group) {
    fetch_lines_ahead_of<offsetof(Stored, qs)>(group);
    const I both = load(g.high);
    for (int i = 0; i < 2; ++i) {  // 128 columns
      const I low = load(g.low[4 * i]), high = i == 0 ? both : _mm512_srli_epi16(both, 4);
      _mm512_store_si512(scales[4 * i], with_bits_4_and_5(low_halves(low), _mm512_slli_epi16(high, 4)));
      _mm512_store_si512(mins[4 * i], with_bits_4_and_5(high_halves(low), _mm512_slli_epi16(high, 2)));
    }
  }

  F d(int /*group*/) const { return f16s(g.d); }
  F dmin(int /*group*/) const { return f16s(g.dmin); }
  F scale(std::size_t index, int /*group*/) const { return floats_of(scales[index]); }
  F min(std::size_t block, int /*group*/) const { return floats_of(mins[block]); }
  static F floats_of(const std::uint8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(load_sixteen(p)));
  }

  void codes(std::size_t part, I (&w)[2][1]) const {
    fetch_ahead_of(g.qs[part]);
    const I both = load(g.qs[part]);
    w[0][0] = low_halves(both);
    w[1][0] = high_halves(both);
  }

  const Stored& g;
  alignas(64) std::uint8_t scales[8][16], mins[8][16];
};

/// Q6_K, from the group.
struct Group6 {
  using Stored = GroupQ6_K;
  static constexpr int kGroups = 1, kScales = 2, kOffset = 32, kColumns = 256;
  static constexpr bool kSuper = true, kMins = false;

  explicit Group6(const Stored* group) : g(*group) { fetch_lines_ahead_of<offsetof(Stored, ql)>(group); }

  F d(int /*group*/) const { return f16s(g.d); }
  F scale(std::size_t index, int /*group*/) const {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load_sixteen(g.scales[index])));
  }

  void codes(std::size_t part, I (&w)[2][1]) const {
    const bool second = part % 2 != 0;
    fetch_ahead_of(g.ql[part]);
    if (!second) fetch_ahead_of(g.qh[part / 2]);
    const I low = load(g.ql[part]), high = load(g.qh[part / 2]);
    w[0][0] = with_bits_4_and_5(low_halves(low), second ? high : _mm512_slli_epi16(high, 4));
    w[1][0] =
        with_bits_4_and_5(high_halves(low), second ? _mm512_srli_epi16(high, 2) : _mm512_slli_epi16(high, 2));
  }

  const Stored& g;
};

/// Q8_0, from up to eight groups of 32 columns.
struct Group8 {
  using Stored = GroupQ8_0;
  static constexpr int kGroups = 1, kScales = 1, kOffset = 128, kColumns = 32;
  static constexpr bool kSuper = false, kMins = false;

  explicit Group8(const Stored* groups) : g(groups) {}

  F scale(std::size_t block, int /*group*/) const { return f16s(g[block].d); }

  void codes(std::size_t part, I (&w)[2][1]) const {
#pragma GCC unroll 2
    for (std::size_t step = 0; step < 2; ++step) {
      const auto& stored = g[part / 4].qs[part % 4 * 2 + step];
      fetch_ahead_of(stored);
      w[step][0] = _mm512_xor_si512(load(stored), _mm512_set1_epi8(-128));
    }
  }

  const Stored* g;
};

/// Where many tokens find the codes and scales of G groups unpacked.
template <int G>
struct alignas(64) Panel {
  std::uint8_t codes[64][G][kStepBytes];  // [step]
  float scales[16][G][kGroupRows];
  float mins[8][G][kGroupRows];
  float d[G][kGroupRows], dmin[G][kGroupRows];
};

template <class Group, int G>
inline void unpack(const Group& group, std::size_t index, std::size_t blocks, Panel<G>& panel) {
  if constexpr (Group::kSuper) _mm512_store_ps(panel.d[index], group.d(0));
  if constexpr (Group::kMins) _mm512_store_ps(panel.dmin[index], group.dmin(0));
  for (std::size_t block = 0; block < blocks; ++block) {
    if constexpr (Group::kMins) _mm512_store_ps(panel.mins[block][index], group.min(block, 0));
    for (std::size_t i = Group::kScales * block; i < Group::kScales * (block + 1); ++i)
      _mm512_store_ps(panel.scales[i][index], group.scale(i, 0));
    for (std::size_t part = 4 * block; part < 4 * (block + 1); ++part) {
      I w[2][1];
      group.codes(part, w);
      _mm512_store_si512(panel.codes[2 * part][index], w[0][0]);
      _mm512_store_si512(panel.codes[2 * part + 1][index], w[1][0]);
    }
  }
}

template <class Group, int G>
struct FromPanel {
  static constexpr int kGroups = G, kScales = Group::kScales, kOffset = Group::kOffset;
  static constexpr bool kSuper = Group::kSuper, kMins = Group::kMins;

  F d(int group) const { return _mm512_load_ps(panel.d[group]); }
  F dmin(int group) const { return _mm512_load_ps(panel.dmin[group]); }
  F scale(std::size_t index, int group) const { return _mm512_load_ps(panel.scales[index][group]); }
  F min(std::size_t block, int group) const { return _mm512_load_ps(panel.mins[block][group]); }

  void codes(std::size_t part, I (&w)[2][G]) const {
#pragma GCC unroll 2
    for (std::size_t step = 0; step < 2; ++step) {
#pragma GCC unroll 2
      for (int i = 0; i < G; ++i) w[step][i] = load(panel.codes[2 * part + step][i]);
    }
  }

  const Panel<G>& panel;
};

// ---- products ----

constexpr float kBase = 0x1.8p23F;
constexpr std::int32_t kBaseBits = 0x4B400000;

/// Where integer sums begin if kOffset is not 0: at −kOffset · Σ x_codes of each 16 columns (kScales 2), or
/// at 0, 2, … of each 32; for super-blocks at kBaseBits more.
template <class Source>
inline void put_starts(const ActivationChunk& x, std::int32_t (&starts)[16]) {
  if constexpr (Source::kOffset == 0) return;
  I sums = _mm512_cvtepi16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x.code_sums)));
  if constexpr (Source::kScales == 1) sums = _mm512_add_epi32(sums, _mm512_ror_epi64(sums, 32));
  sums = _mm512_mullo_epi32(sums, _mm512_set1_epi32(-Source::kOffset));
  if constexpr (Source::kSuper) sums = _mm512_add_epi32(sums, _mm512_set1_epi32(kBaseBits));
  _mm512_store_si512(starts, sums);
}

template <int T, int G>
inline void clear(F (&sums)[T][G]) {
#pragma GCC unroll 12
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
    for (int i = 0; i < G; ++i) sums[t][i] = _mm512_setzero_ps();
  }
}

/// Σ code · x_code over the columns of scale `index`; for super-blocks plus kBaseBits.
template <int T, int G, class Source>
inline void dot(const Source& source, std::size_t index, const ActivationChunk* x,
                const std::int32_t (&starts)[T][16], I (&sums)[T][G]) {
  constexpr std::size_t kParts = 4 / Source::kScales;
#pragma GCC unroll 12
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
    for (int i = 0; i < G; ++i) {
      sums[t][i] = _mm512_set1_epi32(Source::kOffset != 0 ? starts[t][2 / Source::kScales * index]
                                     : Source::kSuper     ? kBaseBits
                                                          : 0);
    }
  }
#pragma GCC unroll 4
  for (std::size_t i = 0; i < kParts; ++i) {  // of a length that the compiler sees, or it would not unroll it
    const std::size_t part = kParts * index + i;
    I w[2][G];
    source.codes(part, w);
#pragma GCC unroll 2
    for (std::size_t step = 0; step < 2; ++step) {
#pragma GCC unroll 12
      for (int t = 0; t < T; ++t) {
        const I token = broadcast_step(x[t].codes + 8 * part + 4 * step);
#pragma GCC unroll 2
        for (int g = 0; g < G; ++g) sums[t][g] = _mm512_dpbusd_epi32(sums[t][g], w[step][g], token);
      }
    }
  }
}

/// Rows of y that a product adds to: y[t * stride + row], from 0 on where `fresh`.
struct Output {
  float* y;
  std::size_t stride;
  bool fresh;

  float* at(int token, int group) const {
    return y + static_cast<std::size_t>(token) * stride + kGroupRows * group;
  }
  F before(int token, int group) const {
    return fresh ? _mm512_setzero_ps() : _mm512_loadu_ps(at(token, group));
  }
};

template <int T, int G>
inline void store(const F (&y)[T][G], const Output& out) {
#pragma GCC unroll 12
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
    for (int i = 0; i < G; ++i) _mm512_storeu_ps(out.at(t, i), y[t][i]);
  }
}

/// One super-block.
template <int T, class Source>
inline void add_super_block(const Source& source, const ActivationChunk* x,
                            const std::int32_t (&starts)[T][16], const Output& out) {
  constexpr int G = Source::kGroups;
  F a[T][G];
  clear(a);
  for (std::size_t block = 0; block < 8; ++block) {
    F dots[T][G];  // whole numbers below 2^24: exact
#pragma GCC unroll 2
    for (int part = 0; part < Source::kScales; ++part) {
      const std::size_t index = Source::kScales * block + static_cast<std::size_t>(part);
      I sums[T][G];
      dot(source, index, x, starts, sums);
#pragma GCC unroll 2
      for (int i = 0; i < G; ++i) {
        const F scale = source.scale(index, i);
        const F base = _mm512_mul_ps(scale, _mm512_set1_ps(-kBase));
#pragma GCC unroll 12
        for (int t = 0; t < T; ++t) {
          const F scaled = _mm512_fmadd_ps(_mm512_castsi512_ps(sums[t][i]), scale, base);
          dots[t][i] = part == 0 ? scaled : _mm512_add_ps(dots[t][i], scaled);
        }
      }
    }
#pragma GCC unroll 12
    for (int t = 0; t < T; ++t) {
      const F token = _mm512_set1_ps(x[t].scales[block]);
#pragma GCC unroll 2
      for (int i = 0; i < G; ++i) a[t][i] = _mm512_fmadd_ps(dots[t][i], token, a[t][i]);
    }
  }
  F y[T][G];  // not before: it would take registers from the loop
#pragma GCC unroll 12
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
    for (int i = 0; i < G; ++i) y[t][i] = _mm512_fmadd_ps(source.d(i), a[t][i], out.before(t, i));
  }
  if constexpr (Source::kMins) {
    F b[T][G];
    clear(b);
    for (std::size_t block = 0; block < 8; ++block) {
      F min[G];
#pragma GCC unroll 2
      for (int i = 0; i < G; ++i) min[i] = source.min(block, i);
#pragma GCC unroll 12
      for (int t = 0; t < T; ++t) {
        const F token = _mm512_set1_ps(x[t].sums[block]);
#pragma GCC unroll 2
        for (int i = 0; i < G; ++i) b[t][i] = _mm512_fmadd_ps(min[i], token, b[t][i]);
      }
    }
#pragma GCC unroll 2
    for (int i = 0; i < G; ++i) {
      const F dmin = source.dmin(i);
#pragma GCC unroll 12
      for (int t = 0; t < T; ++t) y[t][i] = _mm512_fnmadd_ps(dmin, b[t][i], y[t][i]);
    }
  }
  store(y, out);
}

/// `blocks` blocks that have a scale each.
template <int T, class Source>
inline void add_blocks(const Source& source, std::size_t blocks, const ActivationChunk* x,
                       const std::int32_t (&starts)[T][16], const Output& out) {
  constexpr int G = Source::kGroups;
  F y[T][G];
#pragma GCC unroll 12
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
    for (int i = 0; i < G; ++i) y[t][i] = out.before(t, i);
  }
  for (std::size_t block = 0; block < blocks; ++block) {
    I sums[T][G];
    dot(source, block, x, starts, sums);
    F scale[G];
#pragma GCC unroll 2
    for (int i = 0; i < G; ++i) scale[i] = source.scale(block, i);
#pragma GCC unroll 12
    for (int t = 0; t < T; ++t) {
      const F token = _mm512_set1_ps(x[t].scales[block]);
#pragma GCC unroll 2
      for (int i = 0; i < G; ++i)
        y[t][i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[t][i]), _mm512_mul_ps(scale[i], token), y[t][i]);
    }
  }
  store(y, out);
}

/// T tokens: adds the products of `blocks` blocks of 32 columns, in 16 · kGroups rows.
template <int T, class Source>
__attribute__((noinline)) void multiply(const Source& source, std::size_t blocks, const ActivationChunk* x,
                                        const Output& out) {
  alignas(64) std::int32_t starts[T][16];
#pragma GCC unroll 12
  for (int t = 0; t < T; ++t) put_starts<Source>(x[t], starts[t]);
  if constexpr (Source::kSuper) {
    add_super_block<T>(source, x, starts, out);
  } else {
    add_blocks<T>(source, blocks, x, starts, out);
  }
}

}  // namespace
}  // namespace wring::kernels::avx512
