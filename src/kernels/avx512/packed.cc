// Packed mode for AVX-512 with VNNI: which tokens meet which groups. Definition and order: kernels/packed.h;
// the products: avx512/packed.h; the coding of activations: avx2/quantize.h.
#include "kernels/avx512/packed.h"

#include "kernels/avx2/quantize.h"
#include "kernels/levels.h"

namespace wring::kernels::avx512 {
namespace {

// Up to here taking codes out in registers is cheaper than a panel, and one tile holds all tokens.
constexpr std::size_t kFewTokens = 8;
// Of a panel's tiles, tokens times groups: as many float and as many integer sums leave registers for the
// operands.
constexpr int kTileSums = 12;
// Activations at a time, up to 360 KiB: they stay in the second-level cache (512 KiB and more where there is
// VNNI; the numbers were found with 2 MiB). All chunks of a few tokens would not: chunks lie many tokens
// apart, and so share the cache's sets.
constexpr std::size_t kBlockTokens = 120, kBlockChunks = 8;

std::size_t smaller_of(std::size_t a, std::size_t b) {  // std::min would be weak code of this CPU level
  return a < b ? a : b;
}

template <class Group>
constexpr std::size_t chunk_bytes() {
  return kChunkColumns / Group::kColumns * sizeof(typename Group::Stored);
}

template <class Group>
Group group_at(const std::byte* groups, std::size_t chunk) {
  return Group(reinterpret_cast<const typename Group::Stored*>(groups + chunk * chunk_bytes<Group>()));
}

std::size_t blocks_of(const QuantizedRows& x, std::size_t chunk) {
  return smaller_of(x.columns - chunk * kChunkColumns, kChunkColumns) / 32;
}

/// At most T tokens.
template <int T, class Source>
inline void multiply_some(const Source& source, std::size_t blocks, const ActivationChunk* x,
                          std::size_t tokens, const Output& out) {
  if constexpr (T > 1) {
    if (tokens < T) return multiply_some<T - 1>(source, blocks, x, tokens, out);
  }
  multiply<T>(source, blocks, x, out);
}

/// One group by at most kFewTokens tokens.
template <class Group>
void by_few(const std::byte* group, const QuantizedRows& x, std::size_t tokens, float* y,
            std::size_t y_stride) {
  for (std::size_t chunk = 0; chunk < chunks_of(x.columns); ++chunk) {
    multiply_some<kFewTokens>(group_at<Group>(group, chunk), blocks_of(x, chunk), x.at(chunk, 0), tokens,
                              {y, y_stride, chunk == 0});
  }
}

/// All tokens in tiles of T, the rest in tiles of half as many.
template <int T, class Source>
void multiply_all(const Source& source, std::size_t blocks, const ActivationChunk* x, std::size_t tokens,
                  Output out) {
  for (; tokens >= T; tokens -= T, x += T, out.y += T * out.stride) multiply<T>(source, blocks, x, out);
  if constexpr (T > 1) multiply_all<T / 2>(source, blocks, x, tokens, out);
}

/// Chunks first ≤ chunk < last of G groups, group_bytes apart, by many tokens.
template <class Group, int G>
void by_many(const std::byte* groups, std::size_t group_bytes, std::size_t first, std::size_t last,
             const QuantizedRows& x, std::size_t tokens, float* y, std::size_t y_stride) {
  constexpr int kTokens = kTileSums / G;
  Panel<G> panel;
  for (std::size_t chunk = first; chunk < last; ++chunk) {
    const std::size_t blocks = blocks_of(x, chunk);
    for (std::size_t i = 0; i < G; ++i)
      unpack(group_at<Group>(groups + i * group_bytes, chunk), i, blocks, panel);
    multiply_all<kTokens>(FromPanel<Group, G>{panel}, blocks, x.at(chunk, 0), tokens,
                          {y, y_stride, chunk == 0});
  }
}

/// Whole groups by many tokens: by blocks of activations, about equal ones, each of which meets all groups.
template <class Group>
void by_blocks(const std::byte* groups, std::size_t group_bytes, std::size_t count, const QuantizedRows& x,
               std::size_t tokens, float* y, std::size_t y_stride) {
  const std::size_t chunks = chunks_of(x.columns);
  const std::size_t token_blocks = (tokens + kBlockTokens - 1) / kBlockTokens;
  const std::size_t tiles = (tokens + kTileSums * token_blocks - 1) / (kTileSums * token_blocks);
  const std::size_t block_tokens = tiles * kTileSums;
  for (std::size_t first = 0; first < chunks; first += kBlockChunks) {
    const std::size_t last = smaller_of(first + kBlockChunks, chunks);
    for (std::size_t t = 0; t < tokens; t += block_tokens) {
      const QuantizedRows block = x.from(t);
      const std::size_t n = smaller_of(block_tokens, tokens - t);
      float* out = y + t * y_stride;
      std::size_t i = 0;
      for (; i + 1 < count; i += 2)
        by_many<Group, 2>(groups + i * group_bytes, group_bytes, first, last, block, n, out + i * kGroupRows,
                          y_stride);
      if (i < count)
        by_many<Group, 1>(groups + i * group_bytes, group_bytes, first, last, block, n, out + i * kGroupRows,
                          y_stride);
    }
  }
}

/// packed_matmul for one type.
template <class Group>
void run(const std::byte* groups, std::size_t group_bytes, std::size_t rows, const QuantizedRows& x,
         std::size_t tokens, float* y, std::size_t y_stride) {
  const std::size_t whole = rows / kGroupRows;
  if (tokens > kFewTokens) {
    by_blocks<Group>(groups, group_bytes, whole, x, tokens, y, y_stride);
  } else {
    for (std::size_t i = 0; i < whole; ++i)
      by_few<Group>(groups + i * group_bytes, x, tokens, y + i * kGroupRows, y_stride);
  }
  // The last rows: sums of rows that do not exist must not be written.
  const std::size_t r = whole * kGroupRows;
  for (std::size_t t = 0; r < rows && t < tokens; ++t) {
    float sums[kGroupRows];
    by_few<Group>(groups + whole * group_bytes, x.from(t), 1, sums, kGroupRows);
    for (std::size_t i = r; i < rows; ++i) y[t * y_stride + i] = sums[i - r];
  }
}

/// avx2::ScaleErrors with two scales a register.
struct ScaleErrors {
  static void sums(const __m256 (&v)[4], const float* scales, const float* inverses, __m256 (&sums)[4]) {
#pragma GCC unroll 2
    for (int j = 0; j < 4; j += 2) {
      const F s = twice_eight(scales + j), inverse = twice_eight(inverses + j);
      F sum = _mm512_setzero_ps();
#pragma GCC unroll 4
      for (const __m256& value : v) {
        const F twice = _mm512_broadcast_f32x8(value);
        const F code = _mm512_roundscale_ps(_mm512_mul_ps(twice, inverse), _MM_FROUND_TO_NEAREST_INT);
        const F error = _mm512_fnmadd_ps(s, code, twice);
        sum = _mm512_fmadd_ps(error, error, sum);
      }
      sums[j] = _mm512_castps512_ps256(sum);
      sums[j + 1] = _mm512_extractf32x8_ps(sum, 1);
    }
  }

 private:
  static F twice_eight(const float* two) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_broadcast_ss(two)), _mm256_broadcast_ss(two + 1),
                              1);
  }
};

}  // namespace

void quantize_row(const float* x, const QuantizedRows& out, std::size_t token) {
  avx2::quantize_row_with<ScaleErrors>(x, out, token);
}

void packed_matmul(formats::QuantType type, const std::byte* groups, std::size_t rows, const QuantizedRows& x,
                   std::size_t tokens, float* y, std::size_t y_stride) {
  const std::size_t bytes = packed_group_bytes(type, x.columns);
  switch (type) {
    case formats::QuantType::kQ4_K:
      return run<Group4>(groups, bytes, rows, x, tokens, y, y_stride);
    case formats::QuantType::kQ6_K:
      return run<Group6>(groups, bytes, rows, x, tokens, y, y_stride);
    default:
      return run<Group8>(groups, bytes, rows, x, tokens, y, y_stride);
  }
}

std::size_t byte_loop(std::size_t rounds, std::int32_t* sink) {
  constexpr int kChains = 12;
  I sums[kChains];
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_epi32(i);  // else one chain would do for all
  const I ones = _mm512_set1_epi8(1);
  for (std::size_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (I& sum : sums) sum = _mm512_dpbusd_epi32(sum, ones, ones);
  }
  alignas(64) std::int32_t totals[kChains][kGroupRows];
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) _mm512_store_si512(totals[i], sums[i]);
  *sink = 0;
  for (const auto& total : totals) *sink += total[0];
  return rounds * kChains * kStepBytes;
}

}  // namespace wring::kernels::avx512
