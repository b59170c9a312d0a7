// Packed mode for AVX2 (definition and order: kernels/packed.h).
//
// 256 columns of a group of 16 rows are unpacked into a panel of bytes and float scales that stays in the
// first-level cache, and all tokens pass over it: one route for one token and for many. vpmaddubsw multiplies
// unsigned bytes (weights) by signed ones (activations) and adds pairs in 16 bits, where it would saturate:
//   4-bit codes   8 steps fit: 8 · 2 · 15 · 127 = 30,480
//   6-bit codes   2 steps fit, as q = 0 … 63; 32 · Σ x is taken off in 32 bits
//   8-bit codes   no two fit: vpmaddwd multiplies them as words, two columns a step
#include "kernels/packed.h"

#include <immintrin.h>

#include "kernels/levels.h"

namespace wring::kernels::avx2 {
namespace {

using F = __m256;
using I = __m256i;

struct alignas(64) Panel {
  union {
    std::uint8_t codes[64][kStepBytes];       // [4 columns][row][column]
    std::int16_t words[128][2 * kGroupRows];  // [2 columns][row][column]: 8-bit types
  };
  float scales[16][16];        // [block][row]
  float negative_mins[8][16];  // [32 columns][row]
};

// What differs between types once unpacked.
struct Codes4 {  // Q4_K
  static constexpr bool kMins = true, kWords = false;
  static constexpr int kOffset = 0;
  static constexpr int kBlock = 32, kAdds = 8;  // columns of a scale; steps added in 16 bits
  static constexpr int kTokens = 3;             // of a tile: what the registers hold
};
struct Codes6 {  // Q6_K
  static constexpr bool kMins = false, kWords = false;
  static constexpr int kOffset = 32;
  static constexpr int kBlock = 16, kAdds = 2;
  static constexpr int kTokens = 2;
};
struct Codes8 {  // Q8_0
  static constexpr bool kMins = false, kWords = true;
  static constexpr int kOffset = 0;
  static constexpr int kBlock = 32;
  static constexpr int kTokens = 3;
};

inline I load(const void* p) {
  return _mm256_load_si256(static_cast<const I*>(p));
}
inline void store(void* p, I a) {
  _mm256_store_si256(static_cast<I*>(p), a);
}
inline F f16s(const std::uint16_t* p) {
  return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
}

// ---- unpacking ----

inline void unpack_halves(const std::uint8_t* pair, std::uint8_t* steps) {
  const I low = _mm256_set1_epi8(15);
#pragma GCC unroll 2
  for (int half = 0; half < kStepBytes; half += 32) {
    const I both = load(pair + half);
    store(steps + half, _mm256_and_si256(both, low));
    store(steps + kStepBytes + half, _mm256_and_si256(_mm256_srli_epi16(both, 4), low));
  }
}

inline void unpack(const GroupQ4_K& g, Panel& panel) {
  const F d[2] = {f16s(g.d), f16s(g.d + 8)};
  const F dmin[2] = {f16s(g.dmin), f16s(g.dmin + 8)};
  const __m128i four = _mm_set1_epi8(15), two = _mm_set1_epi8(3);
  for (int b = 0; b < 8; ++b) {
    const __m128i low = _mm_load_si128(reinterpret_cast<const __m128i*>(g.low[b]));
    const __m128i high = _mm_srl_epi16(_mm_load_si128(reinterpret_cast<const __m128i*>(g.high[b / 2])),
                                       _mm_cvtsi32_si128(b % 2 * 4));
    const __m128i scale = _mm_or_si128(_mm_and_si128(low, four), _mm_slli_epi16(_mm_and_si128(high, two), 4));
    const __m128i min = _mm_or_si128(_mm_and_si128(_mm_srli_epi16(low, 4), four),
                                     _mm_slli_epi16(_mm_and_si128(_mm_srli_epi16(high, 2), two), 4));
    for (int half = 0; half < 2; ++half) {
      const F s = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(half == 0 ? scale : _mm_srli_si128(scale, 8)));
      const F m = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(half == 0 ? min : _mm_srli_si128(min, 8)));
      _mm256_store_ps(panel.scales[b] + 8 * half, _mm256_mul_ps(d[half], s));
      _mm256_store_ps(panel.negative_mins[b] + 8 * half,
                      _mm256_xor_ps(_mm256_mul_ps(dmin[half], m), _mm256_set1_ps(-0.0F)));
    }
  }
  for (int i = 0; i < 32; ++i) unpack_halves(g.qs[i], panel.codes[2 * i]);
}

inline void unpack(const GroupQ6_K& g, Panel& panel) {
  const F d[2] = {f16s(g.d), f16s(g.d + 8)};
  for (int b = 0; b < 16; ++b) {
    for (int half = 0; half < 2; ++half) {
      const I s =
          _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(g.scales[b] + 8 * half)));
      _mm256_store_ps(panel.scales[b] + 8 * half, _mm256_mul_ps(d[half], _mm256_cvtepi32_ps(s)));
    }
  }
  const I low = _mm256_set1_epi8(15), two = _mm256_set1_epi8(0x30);
  for (int i = 0; i < 16; ++i) {
    for (int half = 0; half < kStepBytes; half += 32) {
      const I high = load(g.qh[i] + half);
      const I first = load(g.ql[2 * i] + half), second = load(g.ql[2 * i + 1] + half);
      const I nibbles[4] = {_mm256_and_si256(first, low), _mm256_and_si256(_mm256_srli_epi16(first, 4), low),
                            _mm256_and_si256(second, low),
                            _mm256_and_si256(_mm256_srli_epi16(second, 4), low)};
      const I bits[4] = {_mm256_slli_epi16(high, 4), _mm256_slli_epi16(high, 2), high,
                         _mm256_srli_epi16(high, 2)};
#pragma GCC unroll 4
      for (int step = 0; step < 4; ++step) {
        store(panel.codes[4 * i + step] + half,
              _mm256_or_si256(nibbles[step], _mm256_and_si256(bits[step], two)));
      }
    }
  }
}

inline void unpack(const GroupQ8_0* g, int columns, Panel& panel) {
  // Each byte into the upper half of a word, columns 0 and 1 of each row or 2 and 3, then shifted down.
  const I first =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(-1, 0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13));
  const I second =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(-1, 2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15));
  for (int b = 0; b < columns / 32; ++b) {
    _mm256_store_ps(panel.scales[b], f16s(g[b].d));
    _mm256_store_ps(panel.scales[b] + 8, f16s(g[b].d + 8));
    for (int i = 0; i < 8; ++i) {
      for (int half = 0; half < 2; ++half) {
        const I four = load(g[b].qs[i] + 32 * half);
        std::int16_t* to = panel.words[16 * b + 2 * i] + 16 * half;
        store(to, _mm256_srai_epi16(_mm256_shuffle_epi8(four, first), 8));
        store(to + 2 * kGroupRows, _mm256_srai_epi16(_mm256_shuffle_epi8(four, second), 8));
      }
    }
  }
}

// ---- products ----

inline I broadcast_step(const void* codes) {
  int word;
  __builtin_memcpy(&word, codes, sizeof(word));
  return _mm256_set1_epi32(word);
}

// sum += a, in its register and in this order: left to itself, GCC 12 makes a tree of the additions and
// spills.
inline void add_words(I& sum, I a) {
  asm("vpaddw %1, %0, %0" : "+x"(sum) : "x"(a));
}
inline void add_integers(I& sum, I a) {
  asm("vpaddd %1, %0, %0" : "+x"(sum) : "x"(a));
}

// T tokens of kAdds steps each, in 16 bits: sum[t][half of the rows].
template <int kAdds, int T>
inline void add_steps(const std::uint8_t* w, const ActivationChunk* x, int column, I (&sum)[T][2]) {
#pragma GCC unroll 8
  for (int step = 0; step < kAdds; ++step) {
    const I w0 = load(w + step * kStepBytes), w1 = load(w + step * kStepBytes + 32);
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
      const I token = broadcast_step(x[t].codes + column + 4 * step);
      const I p0 = _mm256_maddubs_epi16(w0, token), p1 = _mm256_maddubs_epi16(w1, token);
      if (step == 0) {
        sum[t][0] = p0;
        sum[t][1] = p1;
      } else {
        add_words(sum[t][0], p0);
        add_words(sum[t][1], p1);
      }
    }
  }
}

// The sums of 32 columns of T tokens in words: dot[t][half of the rows].
template <int T>
inline void dot_words(const std::int16_t* w, const std::int16_t (*x)[kChunkColumns], I (&dot)[T][2]) {
#pragma GCC unroll 16
  for (int step = 0; step < 16; ++step) {
    const I w0 = load(w + step * 2 * kGroupRows), w1 = load(w + step * 2 * kGroupRows + 16);
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
      const I token = broadcast_step(x[t] + 2 * step);
      const I p0 = _mm256_madd_epi16(w0, token), p1 = _mm256_madd_epi16(w1, token);
      if (step == 0) {
        dot[t][0] = p0;
        dot[t][1] = p1;
      } else {
        add_integers(dot[t][0], p0);
        add_integers(dot[t][1], p1);
      }
    }
  }
}

// The sums of one block of bytes.
template <class Type, int T>
inline void dot_bytes(const std::uint8_t* w, const ActivationChunk* x, int column, I (&dot)[T][2]) {
#pragma GCC unroll 8
  for (int at = 0; at < Type::kBlock; at += 4 * Type::kAdds) {
    I sum[T][2];
    add_steps<Type::kAdds, T>(w + at * kGroupRows, x, column + at, sum);
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const I wide = _mm256_madd_epi16(sum[t][half], _mm256_set1_epi16(1));
        if (at == 0) {
          dot[t][half] = wide;
        } else {
          add_integers(dot[t][half], wide);
        }
      }
    }
  }
  if (Type::kOffset == 0) return;
#pragma GCC unroll 4
  for (int t = 0; t < T; ++t) {
    const I offset = _mm256_set1_epi32(-Type::kOffset * x[t].code_sums[column / 16]);
    add_integers(dot[t][0], offset);
    add_integers(dot[t][1], offset);
  }
}

// T tokens over a panel: y[t * y_stride + row] += the products of `columns` columns, in 16 rows.
template <class Type, int T>
__attribute__((noinline)) void multiply(const Panel& panel, int columns, const ActivationChunk* x, float* y,
                                        std::size_t y_stride, bool fresh) {
  F acc[T][2];
#pragma GCC unroll 4
  for (int t = 0; t < T; ++t) {
    float* const from = y + static_cast<std::size_t>(t) * y_stride;
    acc[t][0] = fresh ? _mm256_setzero_ps() : _mm256_loadu_ps(from);
    acc[t][1] = fresh ? _mm256_setzero_ps() : _mm256_loadu_ps(from + 8);
  }
  alignas(32) std::int16_t words[T][kChunkColumns];
  if constexpr (Type::kWords) {
    for (int t = 0; t < T; ++t) {
      for (int c = 0; c < columns; c += 16)
        store(words[t] + c,
              _mm256_cvtepi8_epi16(_mm_load_si128(reinterpret_cast<const __m128i*>(x[t].codes + c))));
    }
  }
  for (int column = 0; column < columns; column += Type::kBlock) {
    I dot[T][2];
    if constexpr (Type::kWords) {
      dot_words<T>(panel.words[column / 2],
                   reinterpret_cast<const std::int16_t(*)[kChunkColumns]>(words[0] + column), dot);
    } else {
      dot_bytes<Type, T>(panel.codes[column / 4], x, column, dot);
    }
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
      const F x_scale = _mm256_broadcast_ss(x[t].scales + column / 32);
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const F scale =
            _mm256_mul_ps(_mm256_load_ps(panel.scales[column / Type::kBlock] + 8 * half), x_scale);
        acc[t][half] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot[t][half]), scale, acc[t][half]);
        if (Type::kMins) {
          acc[t][half] = _mm256_fmadd_ps(_mm256_load_ps(panel.negative_mins[column / 32] + 8 * half),
                                         _mm256_broadcast_ss(x[t].sums + column / 32), acc[t][half]);
        }
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

template <class Type, int T>
void multiply_rest(const Panel& panel, int columns, const ActivationChunk* x, std::size_t tokens, float* y,
                   std::size_t y_stride, bool fresh) {
  if constexpr (T > 0) {
    if (tokens < T) return multiply_rest<Type, T - 1>(panel, columns, x, tokens, y, y_stride, fresh);
    multiply<Type, T>(panel, columns, x, y, y_stride, fresh);
  }
}

// ---- a range of groups ----

constexpr std::size_t kBlockBytes = 160
                                    << 10;  // of activations at a time: they stay in the second-level cache
template <class Group>
constexpr std::size_t kChunkBytes = sizeof(Group);
template <>
constexpr std::size_t kChunkBytes<GroupQ8_0> = 8 * sizeof(GroupQ8_0);

inline void unpack_chunk(const GroupQ4_K* g, std::size_t chunk, int, Panel& panel) {
  unpack(g[chunk], panel);
}
inline void unpack_chunk(const GroupQ6_K* g, std::size_t chunk, int, Panel& panel) {
  unpack(g[chunk], panel);
}
inline void unpack_chunk(const GroupQ8_0* g, std::size_t chunk, int columns, Panel& panel) {
  unpack(g + 8 * chunk, columns, panel);
}

template <class Type, class Group>
void group_by_tokens(const Group* group, const QuantizedRows& x, std::size_t tokens, float* y,
                     std::size_t y_stride) {
  Panel panel;
  for (std::size_t chunk = 0; chunk < chunks_of(x.columns); ++chunk) {
    const std::size_t left = x.columns - chunk * kChunkColumns;
    const int columns = static_cast<int>(left < kChunkColumns ? left : kChunkColumns);
    unpack_chunk(group, chunk, columns, panel);
    const char* ahead = reinterpret_cast<const char*>(group) + (chunk + 1) * kChunkBytes<Group>;
    const std::size_t tiles = (tokens + Type::kTokens - 1) / Type::kTokens;
    const std::size_t lines = kChunkBytes<Group> / 64 / tiles + 1;
    for (std::size_t t = 0; t < tokens; t += Type::kTokens) {
      // The memory works on the next chunk while this one is multiplied.
      for (std::size_t line = 0; line < lines; ++line, ahead += 64) _mm_prefetch(ahead, _MM_HINT_T0);
      multiply_rest<Type, Type::kTokens>(panel, columns, x.at(chunk, t), tokens - t, y + t * y_stride,
                                         y_stride, chunk == 0);
    }
  }
}

template <class Type, class Group>
void run(const std::byte* groups, std::size_t group_bytes, std::size_t rows, const QuantizedRows& x,
         std::size_t tokens, float* y, std::size_t y_stride) {
  std::size_t block = kBlockBytes / (chunks_of(x.columns) * sizeof(ActivationChunk)) / 6 * 6;
  block = block < 6 ? 6 : block;
  for (std::size_t t = 0; t < tokens; t += block) {
    const std::size_t some = tokens - t < block ? tokens - t : block;
    for (std::size_t r = 0; r < rows; r += kGroupRows) {
      const auto* group = reinterpret_cast<const Group*>(groups + r / kGroupRows * group_bytes);
      if (rows - r >= kGroupRows) {
        group_by_tokens<Type>(group, x.from(t), some, y + t * y_stride + r, y_stride);
        continue;
      }
      // The last rows: sums of rows that do not exist must not be written.
      for (std::size_t token = t; token < t + some; ++token) {
        float sums[kGroupRows];
        group_by_tokens<Type>(group, x.from(token), 1, sums, kGroupRows);
        for (std::size_t i = r; i < rows; ++i) y[token * y_stride + i] = sums[i - r];
      }
    }
  }
}

}  // namespace

void packed_matmul(formats::QuantType type, const std::byte* groups, std::size_t rows, const QuantizedRows& x,
                   std::size_t tokens, float* y, std::size_t y_stride) {
  const std::size_t bytes = packed_group_bytes(type, x.columns);
  switch (type) {
    case formats::QuantType::kQ4_K:
      return run<Codes4, GroupQ4_K>(groups, bytes, rows, x, tokens, y, y_stride);
    case formats::QuantType::kQ6_K:
      return run<Codes6, GroupQ6_K>(groups, bytes, rows, x, tokens, y, y_stride);
    default:
      return run<Codes8, GroupQ8_0>(groups, bytes, rows, x, tokens, y, y_stride);
  }
}

void quantize_row(const float* x, const QuantizedRows& out, std::size_t token) {
  const I magnitude = _mm256_set1_epi32(0x7FFFFFFF);
  for (std::size_t at = 0; at < out.columns; at += 32) {
    ActivationChunk& chunk = *out.at(at / kChunkColumns, token);
    const std::size_t inner = at % kChunkColumns;
    F v[4];
    I largest = _mm256_setzero_si256();  // of bit patterns: NaN above infinity above every number
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
    float scale = amax / 127.0F;
    float inverse = 127.0F / amax;
    if (bits >= 0x7F800000 || !(scale >= 0x1p-126F)) {
      scale = bits >= 0x7F800000 ? __builtin_nanf("") : 0.0F;
      inverse = 0;
      for (F& value : v) value = _mm256_setzero_ps();
    }
    I q[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], _mm256_set1_ps(inverse)));
    // Packing takes 128-bit halves in turn; the permutation puts the 32-bit words back in order.
    const I bytes = _mm256_permutevar8x32_epi32(
        _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3])),
        _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256(reinterpret_cast<I*>(chunk.codes + inner), bytes);
    // Lanes 0 and 2 of the sums of both halves: Σ of the first 16 and of the last 16.
    const I a = _mm256_add_epi32(q[0], q[1]), b = _mm256_add_epi32(q[2], q[3]);
    __m128i sums = _mm_hadd_epi32(_mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1)),
                                  _mm_add_epi32(_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1)));
    sums = _mm_hadd_epi32(sums, sums);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(chunk.code_sums + inner / 16), sums);
    chunk.scales[inner / 32] = scale;
    chunk.sums[inner / 32] = scale * static_cast<float>(_mm_cvtsi128_si32(_mm_hadd_epi32(sums, sums)));
  }
}

}  // namespace wring::kernels::avx2
