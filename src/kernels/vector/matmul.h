// The matrix product in exact mode's order, as a template over a level's vector class V.
//
// The lanes run along k, so that lane i of a group of 16 is partial sum i. Both operands are laid out tile by
// tile, [tile][pass][group of 16][row or token][lane], so that the inner loop reads two plain streams. With 8
// lanes a tile is taken in two passes, first lanes 0 … 7 of each group, then 8 … 15: half a row tile stays in
// the first-level cache while the tokens stream past it, and 4 rows by 3 tokens need 12 accumulators and 7
// loads a 12 multiply-adds.
//
// A lane may also hold a pair of 16-bit floats (avx512/bf16.cc): k then counts pairs, and V::fma adds two
// products. All that is asked of it is that a lane of zeros times one of V::padding() leaves every sum as it
// is.
#pragma once

#include <cstddef>

#include "kernels/kernel_table.h"
#include "kernels/vector/stored.h"

namespace wring::kernels::vector {

template <class V>
struct Matmul {
  using F = typename V::F;
  static constexpr int kPasses = 16 / V::kLanes;
  static constexpr int kRows = V::kRowTile;
  static constexpr int kTokens = V::kTokenTile;
  static constexpr int kParts = kRows * kTokens;  // accumulators of a tile and pass
  // Of a row tile at a time: half of a 32 KiB first-level cache.
  static constexpr std::size_t kPieceGroups = (16 << 10) / (kRows * V::kLanes * sizeof(float));
  static constexpr std::size_t kBlockFloats = 40960;  // of x at a time: a third of a small second-level cache
  static constexpr std::size_t kMaxTiles = 16;        // of tokens whose accumulators are kept at a time

  /// `count` rows of k floats into tiles of T; missing floats become `pad`, missing rows 0.
  template <int T>
  static void lay(const float* from, std::size_t stride, std::size_t count, std::size_t k, F pad, float* to) {
    const std::size_t groups = (k + 15) / 16;
    for (std::size_t tile = 0; tile < count; tile += T) {
      for (int pass = 0; pass < kPasses; ++pass) {
        for (std::size_t group = 0; group < groups; ++group) {
          const std::size_t at = group * 16 + static_cast<std::size_t>(pass) * V::kLanes;
          for (int t = 0; t < T; ++t, to += V::kLanes) {
            const std::size_t row = tile + static_cast<std::size_t>(t);
            if (row >= count) {
              V::store(to, V::zero());
            } else if (at + V::kLanes <= k) {
              V::store(to, V::load(from + row * stride + at));
            } else {
              const int n = at < k ? static_cast<int>(k - at) : 0;
              V::store(to, V::select(V::range(0, n), V::load_first(from + row * stride + at, n), pad));
            }
          }
        }
      }
    }
  }

  static void tile_rows(const float* w, std::size_t stride, std::size_t rows, std::size_t k, float* tiled) {
    lay<kRows>(w, stride, rows, k, V::zero(), tiled);
  }
  /// V::padding() times 0 is −0, the one product that changes no partial sum: not even one of −0.
  static void tile_tokens(const float* x, std::size_t stride, std::size_t tokens, std::size_t k,
                          float* tiled) {
    lay<kTokens>(x, stride, tokens, k, V::padding(), tiled);
  }

  /// `groups` times one vector of each row and token into the sums `parts`, read first unless `fresh`. A
  /// function of its own, since only then does the compiler keep all sums in registers.
  __attribute__((noinline)) static void pass(const float* w, const float* x, std::size_t groups, bool fresh,
                                             F* parts) {
    F acc[kRows][kTokens];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t) acc[r][t] = fresh ? V::zero() : parts[r * kTokens + t];
    }
    for (; groups >= 2; groups -= 2, w += 2 * kRows * V::kLanes, x += 2 * kTokens * V::kLanes) {
      add_group(w, x, acc);
      add_group(w + kRows * V::kLanes, x + kTokens * V::kLanes, acc);
    }
    if (groups != 0) add_group(w, x, acc);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t) parts[r * kTokens + t] = acc[r][t];
    }
  }

  static inline void add_group(const float* w, const float* x, F (&acc)[kRows][kTokens]) {
    F token[kTokens];
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) token[t] = V::load(x + t * V::kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const F row = V::load(w + r * V::kLanes);
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t) V::accumulate(acc[r][t], row, token[t]);
    }
  }

  /// The finished sums of a tile, of which `rows` × `tokens` are wanted. parts: [pass][row][token].
  static inline void finish(const F* parts, std::size_t rows, std::size_t tokens, float* y,
                            std::size_t y_stride) {
    const auto fold = [&](int r, int t) {
      F pair[kPasses];
      for (int pass = 0; pass < kPasses; ++pass) pair[pass] = parts[pass * kParts + r * kTokens + t];
      return V::fold(pair);
    };
    for (int r = 0; r < kRows && static_cast<std::size_t>(r) < rows; r += 4) {
      for (int t = 0; t < kTokens && static_cast<std::size_t>(t) < tokens; ++t) {
        float sums[4];
        V::tree_eight_by_four({fold(r, t), fold(r + 1, t), fold(r + 2, t), fold(r + 3, t)}, sums);
        float* to = y + static_cast<std::size_t>(t) * y_stride + r;
        const std::size_t left = rows - static_cast<std::size_t>(r);
        for (std::size_t i = 0; i < 4 && i < left; ++i) to[i] = sums[i];
      }
    }
  }

  static void run(const float* w, std::size_t rows, const float* x, std::size_t tokens, std::size_t k,
                  float* y, std::size_t y_stride) {
    static_assert(kRows % 4 == 0);
    const std::size_t groups = (k + 15) / 16;
    const std::size_t row_tile = kRows * groups * 16, token_tile = kTokens * groups * 16;
    std::size_t block = groups == 0 ? kMaxTiles : kBlockFloats / token_tile;
    block = block < 1 ? 1 : block > kMaxTiles ? kMaxTiles : block;
    const std::size_t tiles = (tokens + kTokens - 1) / kTokens;
    for (std::size_t first = 0; first < tiles; first += block) {
      const std::size_t some = tiles - first < block ? tiles - first : block;
      for (std::size_t r = 0; r < rows; r += kRows) {
        F parts[kMaxTiles * kPasses * kParts];
        sum_tiles(w + r / kRows * row_tile, x + first * token_tile, some, groups, parts);
        for (std::size_t tile = 0; tile < some; ++tile) {
          const std::size_t t = (first + tile) * kTokens;
          finish(parts + tile * kPasses * kParts, rows - r, tokens - t, y + t * y_stride + r, y_stride);
        }
      }
    }
  }

  /// One row tile by `tiles` token tiles. parts: [tile][pass][row][token].
  static void sum_tiles(const float* w, const float* x, std::size_t tiles, std::size_t groups, F* parts) {
    if (groups == 0) {
      for (std::size_t i = 0; i < tiles * kPasses * kParts; ++i) parts[i] = V::zero();
    }
    for (std::size_t p = 0; p < kPasses; ++p) {
      for (std::size_t begin = 0; begin < groups; begin += kPieceGroups) {
        const std::size_t n = groups - begin < kPieceGroups ? groups - begin : kPieceGroups;
        const std::size_t at = (p * groups + begin) * V::kLanes;
        for (std::size_t tile = 0; tile < tiles; ++tile) {
          pass(w + at * kRows, x + tile * kTokens * groups * 16 + at * kTokens, n, begin == 0,
               parts + (tile * kPasses + p) * kParts);
        }
      }
    }
  }

  /// R rows by one token, of plain operands: as many streams from memory, both halves of a group at once.
  template <template <class> class Stored, int R>
  static void rows_by_one(const unsigned char* w, std::size_t row_bytes, const float* x, std::size_t k,
                          float* y) {
    constexpr std::size_t kSize = sizeof(typename Stored<V>::Value);
    F acc[R][kPasses];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int pass = 0; pass < kPasses; ++pass) acc[r][pass] = V::zero();
    }
    std::size_t at = 0;
    for (; at + 16 <= k; at += 16) {
#pragma GCC unroll 8
      for (int pass = 0; pass < kPasses; ++pass) {
        const F token = V::load(x + at + pass * V::kLanes);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          __builtin_prefetch(w + static_cast<std::size_t>(r + R) * row_bytes + at * kSize);  // the next rows
          const F row =
              Stored<V>::load(w + static_cast<std::size_t>(r) * row_bytes + (at + pass * V::kLanes) * kSize);
          acc[r][pass] = V::fma(row, token, acc[r][pass]);
        }
      }
    }
    for (int pass = 0; pass < kPasses; ++pass) {
      const int rest = static_cast<int>(k - at) - pass * V::kLanes;
      if (rest <= 0) break;
      const int n = rest < V::kLanes ? rest : V::kLanes;
      const F token = V::load_first(x + at + pass * V::kLanes, n);
      for (int r = 0; r < R; ++r) {
        const F row = Stored<V>::load_first(
            w + static_cast<std::size_t>(r) * row_bytes + (at + pass * V::kLanes) * kSize, n);
        // The other lanes keep their sums to the bit: a fused 0 · 0 would turn −0 into +0.
        acc[r][pass] = V::select(V::range(0, n), V::fma(row, token, acc[r][pass]), acc[r][pass]);
      }
    }
    for (int r = 0; r < R; ++r) y[r] = V::tree_eight(V::fold(acc[r]));
  }

  template <template <class> class Stored>
  static void matvec_of(const unsigned char* w, std::size_t row_bytes, std::size_t rows, const float* x,
                        std::size_t k, float* y) {
    std::size_t r = 0;
    for (; r + V::kStreams <= rows; r += V::kStreams)
      rows_by_one<Stored, V::kStreams>(w + r * row_bytes, row_bytes, x, k, y + r);
    for (; r < rows; ++r) rows_by_one<Stored, 1>(w + r * row_bytes, row_bytes, x, k, y + r);
  }

  static void matvec(formats::QuantType type, const void* w, std::size_t row_bytes, std::size_t rows,
                     const float* x, std::size_t k, float* y) {
    const auto* bytes = static_cast<const unsigned char*>(w);
    switch (type) {
      case formats::QuantType::kF16:
        return matvec_of<StoredF16>(bytes, row_bytes, rows, x, k, y);
      case formats::QuantType::kBF16:
        return matvec_of<StoredBF16>(bytes, row_bytes, rows, x, k, y);
      default:
        return matvec_of<StoredF32>(bytes, row_bytes, rows, x, k, y);
    }
  }
};

}  // namespace wring::kernels::vector
