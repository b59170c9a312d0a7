// Packed mode for AVX2: which tokens meet which groups. Definition and order: kernels/packed.h; the products:
// avx2/packed.h; the coding of activations: avx2/quantize.h.
#include "kernels/avx2/packed_panels.h"
#include "kernels/avx2/quantize.h"
#include "kernels/levels.h"

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

void quantize_row(const float* x, const QuantizedRows& out, std::size_t token) {
  quantize_row_with<ScaleErrors>(x, out, token);
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
