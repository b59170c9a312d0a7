// Packed mode for AVX2: which tokens meet which groups, and the coding of activations. Definition and order:
// kernels/packed.h; the products: avx2/packed.h.
#include "kernels/avx2/packed_panels.h"
#include "kernels/levels.h"
#include "kernels/vector/eight_lanes.h"

namespace wring::kernels::avx2 {
namespace {

// Of activations at a time: they stay in the second-level cache.
constexpr std::size_t kBlockBytes = 160 << 10;

template <class Group>
Group group_at(const std::byte* groups, std::size_t chunk) {
  return Group(reinterpret_cast<const typename Group::Stored*>(groups + chunk * Group::kBytes));
}

int blocks_of(const QuantizedRows& x, std::size_t chunk) {
  const std::size_t left = x.columns - chunk * kChunkColumns;
  return static_cast<int>((left < kChunkColumns ? left : kChunkColumns) / 32);
}

/// One group by a few tokens: its codes are taken out anew for each tile of them.
template <class Group>
void by_few(const std::byte* group, const QuantizedRows& x, std::size_t tokens, float* y,
            std::size_t y_stride) {
  constexpr std::size_t kTile = 6;
  for (std::size_t chunk = 0; chunk < chunks_of(x.columns); ++chunk) {
    const Group codes = group_at<Group>(group, chunk);
    for (std::size_t t = 0; t < tokens; t += kTile) {
      multiply_some<kTile>(codes, blocks_of(x, chunk), x.at(chunk, t), tokens - t, y + t * y_stride, y_stride,
                           chunk == 0);
    }
  }
}

void to_words(const ActivationChunk* x, std::size_t tokens, int blocks, Words* words) {
  for (std::size_t t = 0; t < tokens; ++t) {
    for (int c = 0; c < 32 * blocks; c += 16) {
      store(words[t] + c,
            _mm256_cvtepi8_epi16(_mm_load_si128(reinterpret_cast<const __m128i*>(x[t].codes + c))));
    }
  }
}

/// One group by many tokens.
template <class Panel>
void by_many(const std::byte* group, const QuantizedRows& x, std::size_t tokens, float* y,
             std::size_t y_stride) {
  using Group = typename Panel::Group;
  constexpr std::size_t kTile = Panel::kTokensOfBoth;
  // The memory works on the next chunk while this one is multiplied: a share of its lines for each tile.
  const std::size_t tiles = (tokens + kTile - 1) / kTile, lines = Group::kBytes / 64 / tiles + 1;
  Panel panel;
  for (std::size_t chunk = 0; chunk < chunks_of(x.columns); ++chunk) {
    const int blocks = blocks_of(x, chunk);
    panel.unpack(group_at<Group>(group, chunk), blocks);
    const char* next = reinterpret_cast<const char*>(group + (chunk + 1) * Group::kBytes);
    for (std::size_t t = 0; t < tokens; t += kTile) {
      for (std::size_t line = 0; line < lines; ++line, next += 64) _mm_prefetch(next, _MM_HINT_T0);
      const ActivationChunk* tile = x.at(chunk, t);
      alignas(32) Words words[kTile];
      if constexpr (Panel::kReadsWords) {
        to_words(tile, tokens - t < kTile ? tokens - t : kTile, blocks, words);
        panel.words = words;
      }
      multiply_some<kTile>(panel, blocks, tile, tokens - t, y + t * y_stride, y_stride, chunk == 0);
    }
  }
}

template <class Panel>
void by_block(const std::byte* groups, std::size_t group_bytes, std::size_t rows, const QuantizedRows& x,
              std::size_t tokens, float* y, std::size_t y_stride) {
  using Group = typename Panel::Group;
  for (; rows >= kGroupRows; rows -= kGroupRows, groups += group_bytes, y += kGroupRows) {
    if (tokens <= Group::kFewTokens) {
      by_few<Group>(groups, x, tokens, y, y_stride);
    } else {
      by_many<Panel>(groups, x, tokens, y, y_stride);
    }
  }
  // The last rows: sums of rows that do not exist must not be written.
  for (std::size_t t = 0; rows > 0 && t < tokens; ++t) {
    float sums[kGroupRows];
    by_few<Group>(groups, x.from(t), 1, sums, kGroupRows);
    for (std::size_t i = 0; i < rows; ++i) y[t * y_stride + i] = sums[i];
  }
}

template <class Panel>
void run(const std::byte* groups, std::size_t group_bytes, std::size_t rows, const QuantizedRows& x,
         std::size_t tokens, float* y, std::size_t y_stride) {
  constexpr std::size_t kWholeTiles = 6;
  std::size_t block =
      kBlockBytes / (chunks_of(x.columns) * sizeof(ActivationChunk)) / kWholeTiles * kWholeTiles;
  block = block < kWholeTiles ? kWholeTiles : block;
  for (std::size_t t = 0; t < tokens; t += block) {
    by_block<Panel>(groups, group_bytes, rows, x.from(t), tokens - t < block ? tokens - t : block,
                    y + t * y_stride, y_stride);
  }
}

}  // namespace

void packed_matmul(formats::QuantType type, const std::byte* groups, std::size_t rows, const QuantizedRows& x,
                   std::size_t tokens, float* y, std::size_t y_stride) {
  const std::size_t bytes = packed_group_bytes(type, x.columns);
  switch (type) {
    case formats::QuantType::kQ4_K:
      return run<Panel4>(groups, bytes, rows, x, tokens, y, y_stride);
    case formats::QuantType::kQ6_K:
      return run<Panel6>(groups, bytes, rows, x, tokens, y, y_stride);
    default:
      return run<Panel8>(groups, bytes, rows, x, tokens, y, y_stride);
  }
}

namespace {

// The scale of 32 values: the largest one becomes code 127, 126, 125 or 124, whichever rounds the block best.
inline void choose_scale(const F (&v)[4], float amax, float& scale, float& inverse) {
  const __m128 codes = _mm_setr_ps(127, 126, 125, 124);
  alignas(16) float scales[4], inverses[4], errors[4];
  _mm_store_ps(scales, _mm_div_ps(_mm_set1_ps(amax), codes));
  _mm_store_ps(inverses, _mm_div_ps(codes, _mm_set1_ps(amax)));
  F sums[4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const F s = _mm256_broadcast_ss(scales + j), inv = _mm256_broadcast_ss(inverses + j);
    sums[j] = _mm256_setzero_ps();
#pragma GCC unroll 4
    for (const F& value : v) {
      const F code =
          _mm256_round_ps(_mm256_mul_ps(value, inv), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      const F error = _mm256_fnmadd_ps(s, code, value);
      sums[j] = _mm256_fmadd_ps(error, error, sums[j]);
    }
  }
  EightLanes::tree_eight_by_four(sums, errors);
  int best = 0;
  for (int j = 1; j < 4; ++j) best = errors[j] < errors[best] ? j : best;
  scale = scales[best];
  inverse = inverses[best];
}

}  // namespace

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
    float scale, inverse;
    if (bits >= 0x7F800000 || !(amax / 127.0F >= 0x1p-126F)) {
      scale = bits >= 0x7F800000 ? __builtin_nanf("") : 0.0F;
      inverse = 0;
      for (F& value : v) value = _mm256_setzero_ps();
    } else {
      choose_scale(v, amax, scale, inverse);
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
    const int both = _mm_cvtsi128_si32(_mm_packs_epi32(sums, sums));
    __builtin_memcpy(chunk.code_sums + inner / 16, &both, sizeof(both));
    chunk.scales[inner / 32] = scale;
    chunk.sums[inner / 32] = scale * static_cast<float>(_mm_cvtsi128_si32(_mm_hadd_epi32(sums, sums)));
  }
}

std::size_t byte_loop(std::size_t rounds, std::int32_t* sink) {
  constexpr int kChains = 6;
  I sums[kChains];
#pragma GCC unroll 6
  for (I& sum : sums) sum = _mm256_setzero_si256();
  const I codes = _mm256_set1_epi8(1);
  I token = _mm256_set1_epi8(1);
  for (std::size_t round = 0; round < rounds; ++round) {
    I products[kChains];
#pragma GCC unroll 6
    for (I& product : products) {
      asm volatile("" : "+x"(token));  // else one product would do for all
      product = _mm256_maddubs_epi16(codes, token);
    }
#pragma GCC unroll 6
    for (int i = 0; i < kChains; ++i) add_words(sums[i], products[i]);
  }
  I total = _mm256_setzero_si256();
#pragma GCC unroll 6
  for (const I& sum : sums) total = _mm256_add_epi32(total, pairs_of_words(sum));
  *sink = _mm256_extract_epi32(total, 0);
  return rounds * kChains * 32;
}

}  // namespace wring::kernels::avx2
