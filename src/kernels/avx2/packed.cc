// Packed mode for AVX2 (definition and order: kernels/packed.h).
//
// 256 columns of a group of 16 rows are unpacked into a panel of bytes and float scales that stays in the
// first-level cache, and all tokens pass over it: one route for one token and for many. Bytes are multiplied
// by vpmaddubsw, whose sums of two products must fit 16 bits. They do: 2 · 15 · 127 for 4-bit codes, even
// eight of them added; 2 · 128 · 127 = 32,512 for signed bytes, which go in as |w| and x · sign(w); four of
// 6-bit codes (−32 … 31).
#include "kernels/packed.h"

#include <immintrin.h>

#include "kernels/levels.h"

namespace wring::kernels::avx2 {
namespace {

using F = __m256;
using I = __m256i;

struct alignas(64) Panel {
  std::int8_t codes[64][kStepBytes];
  float scales[16][16];        // [block][row]
  float negative_mins[8][16];  // [32 columns][row]
};

// What differs between types once unpacked.
struct Unsigned4 {  // Q4_K
  static constexpr bool kSigned = false, kMins = true;
  static constexpr int kBlock = 32, kAdds = 8;  // columns of a scale; products added in 16 bits
  static constexpr int kTokens = 3;             // of a tile: what the registers hold
};
struct Signed6 {  // Q6_K
  static constexpr bool kSigned = true, kMins = false;
  static constexpr int kBlock = 16, kAdds = 4;
  static constexpr int kTokens = 2;
};
struct Signed8 {  // Q8_0
  static constexpr bool kSigned = true, kMins = false;
  static constexpr int kBlock = 32, kAdds = 1;
  static constexpr int kTokens = 2;
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

inline void unpack_halves(const std::uint8_t* pair, std::int8_t* steps) {
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
  const I low = _mm256_set1_epi8(15), two = _mm256_set1_epi8(0x30), offset = _mm256_set1_epi8(32);
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
        const I code = _mm256_or_si256(nibbles[step], _mm256_and_si256(bits[step], two));
        store(panel.codes[4 * i + step] + half, _mm256_sub_epi8(code, offset));
      }
    }
  }
}

inline void unpack(const GroupQ8_0* g, int columns, Panel& panel) {
  for (int b = 0; b < columns / 32; ++b) {
    _mm256_store_ps(panel.scales[b], f16s(g[b].d));
    _mm256_store_ps(panel.scales[b] + 8, f16s(g[b].d + 8));
    for (int i = 0; i < 8; ++i) {
      store(panel.codes[8 * b + i], load(g[b].qs[i]));
      store(panel.codes[8 * b + i] + 32, load(g[b].qs[i] + 32));
    }
  }
}

// ---- products ----

inline I broadcast_step(const std::int8_t* codes) {
  int word;
  __builtin_memcpy(&word, codes, sizeof(word));
  return _mm256_set1_epi32(word);
}

// Some tokens over a panel: y[t * y_stride + row] += the products of `columns` columns, in 16 rows.
template <class Type, int T>
__attribute__((noinline)) void multiply(const Panel& panel, int columns, const QuantizedRows& x, float* y,
                                        std::size_t y_stride, bool fresh) {
  constexpr int kSteps = Type::kBlock / 4;
  const std::size_t scale_stride = x.columns / 32;
  F acc[T][2];
#pragma GCC unroll 4
  for (int t = 0; t < T; ++t) {
    float* const from = y + static_cast<std::size_t>(t) * y_stride;
    acc[t][0] = fresh ? _mm256_setzero_ps() : _mm256_loadu_ps(from);
    acc[t][1] = fresh ? _mm256_setzero_ps() : _mm256_loadu_ps(from + 8);
  }
  const std::int8_t* codes = x.codes;
  const std::int8_t* w = panel.codes[0];
  for (int block = 0; block < columns / Type::kBlock; ++block, codes += Type::kBlock) {
    I dot[T][2];
#pragma GCC unroll 8
    for (int first = 0; first < kSteps; first += Type::kAdds) {
      I sum[T][2];
#pragma GCC unroll 8
      for (int step = first; step < first + Type::kAdds; ++step, w += kStepBytes) {
        const I w0 = load(w), w1 = load(w + 32);
        const I size0 = Type::kSigned ? _mm256_abs_epi8(w0) : w0;
        const I size1 = Type::kSigned ? _mm256_abs_epi8(w1) : w1;
#pragma GCC unroll 4
        for (int t = 0; t < T; ++t) {
          const I token = broadcast_step(codes + static_cast<std::size_t>(t) * x.columns + 4 * step);
          const I p0 = _mm256_maddubs_epi16(size0, Type::kSigned ? _mm256_sign_epi8(token, w0) : token);
          const I p1 = _mm256_maddubs_epi16(size1, Type::kSigned ? _mm256_sign_epi8(token, w1) : token);
          sum[t][0] = step == first ? p0 : _mm256_add_epi16(sum[t][0], p0);
          sum[t][1] = step == first ? p1 : _mm256_add_epi16(sum[t][1], p1);
        }
      }
#pragma GCC unroll 4
      for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
          const I wide = _mm256_madd_epi16(sum[t][half], _mm256_set1_epi16(1));
          dot[t][half] = first == 0 ? wide : _mm256_add_epi32(dot[t][half], wide);
        }
      }
    }
    const std::size_t thirty_two = static_cast<std::size_t>(block) * Type::kBlock / 32;
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
      const std::size_t at = static_cast<std::size_t>(t) * scale_stride + thirty_two;
      const F x_scale = _mm256_broadcast_ss(x.scales + at);
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const F scale = _mm256_mul_ps(_mm256_load_ps(panel.scales[block] + 8 * half), x_scale);
        acc[t][half] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot[t][half]), scale, acc[t][half]);
        if (Type::kMins) {
          acc[t][half] = _mm256_fmadd_ps(_mm256_load_ps(panel.negative_mins[thirty_two] + 8 * half),
                                         _mm256_broadcast_ss(x.sums + at), acc[t][half]);
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
void multiply_rest(const Panel& panel, int columns, const QuantizedRows& x, std::size_t tokens, float* y,
                   std::size_t y_stride, bool fresh) {
  if constexpr (T > 0) {
    if (tokens < T) return multiply_rest<Type, T - 1>(panel, columns, x, tokens, y, y_stride, fresh);
    multiply<Type, T>(panel, columns, x, y, y_stride, fresh);
  }
}

// ---- a range of groups ----

constexpr std::size_t kBlockBytes = 160
                                    << 10;  // of activations at a time: they stay in the second-level cache
constexpr std::size_t kMostTokens = 512;

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
  for (std::size_t at = 0; at < x.columns; at += 256) {
    const int columns = x.columns - at < 256 ? static_cast<int>(x.columns - at) : 256;
    unpack_chunk(group, at / 256, columns, panel);
    const QuantizedRows here = {x.codes + at, x.scales + at / 32, x.sums + at / 32, x.columns};
    for (std::size_t t = 0; t < tokens; t += Type::kTokens) {
      multiply_rest<Type, Type::kTokens>(panel, columns, here.from(t), tokens - t, y + t * y_stride, y_stride,
                                         at == 0);
    }
  }
}

template <class Type, class Group>
void run(const std::byte* groups, std::size_t group_bytes, std::size_t rows, const QuantizedRows& x,
         std::size_t tokens, float* y, std::size_t y_stride) {
  std::size_t block = kBlockBytes / x.columns / 6 * 6;
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
      return run<Unsigned4, GroupQ4_K>(groups, bytes, rows, x, tokens, y, y_stride);
    case formats::QuantType::kQ6_K:
      return run<Signed6, GroupQ6_K>(groups, bytes, rows, x, tokens, y, y_stride);
    default:
      return run<Signed8, GroupQ8_0>(groups, bytes, rows, x, tokens, y, y_stride);
  }
}

void quantize_row(const float* x, std::size_t n, std::int8_t* codes, float* scales, float* sums) {
  const I magnitude = _mm256_set1_epi32(0x7FFFFFFF);
  for (std::size_t at = 0; at < n; at += 32) {
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
    _mm256_storeu_si256(reinterpret_cast<I*>(codes + at), bytes);
    const I sum = _mm256_add_epi32(_mm256_add_epi32(q[0], q[1]), _mm256_add_epi32(q[2], q[3]));
    __m128i total = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    total = _mm_add_epi32(total, _mm_shuffle_epi32(total, 0x4E));
    total = _mm_add_epi32(total, _mm_shuffle_epi32(total, 0xB1));
    scales[at / 32] = scale;
    sums[at / 32] = scale * static_cast<float>(_mm_cvtsi128_si32(total));
  }
}

}  // namespace wring::kernels::avx2
