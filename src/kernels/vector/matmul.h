// The matrix product in exact mode's order, as a template over a level's vector class V.
//
// The lanes run along k, so that lane i of a group of 16 is partial sum i. With 8 lanes a tile is taken in
// two passes over k, first lanes 0 … 7 of each group, then 8 … 15: a tile of 4 rows by 3 tokens needs 12
// accumulators, 7 loads a 12 multiply-adds. Long rows are cut along k into pieces that stay in the
// first-level cache; the accumulators are put aside between pieces, which leaves the order as it is.
#pragma once

#include <cstddef>

namespace wring::kernels::vector {

template <class V>
struct Matmul {
  using F = typename V::F;
  static constexpr int kPasses = 16 / V::kLanes;
  static constexpr int kRows = V::kRowTile;
  static constexpr std::size_t kPiece = 768;     // of k at most: 7 rows of it fill most of a 32 KiB cache
  static constexpr std::size_t kMaxTokens = 48;  // tokens whose accumulators are kept at a time
  static constexpr std::size_t kBlockFloats =
      32768;  // of x at a time: half of what the first-level TLB covers with small pages

  /// One pass: `groups` times one vector of each row and token into R × T sums. A function of its own, since
  /// only then does the compiler keep all sums in registers.
  template <int R, int T>
  __attribute__((noinline)) static void pass(const float* w, std::size_t w_stride, const float* x,
                                             std::size_t x_stride, std::size_t groups, bool fresh, F* parts) {
    F acc[R][T];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) acc[r][t] = fresh ? V::zero() : parts[r * T + t];
    }
    for (; groups >= 2; groups -= 2, w += 32, x += 32) {
      add_group<R, T>(w, w_stride, x, x_stride, acc);
      add_group<R, T>(w + 16, w_stride, x + 16, x_stride, acc);
    }
    if (groups != 0) add_group<R, T>(w, w_stride, x, x_stride, acc);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) parts[r * T + t] = acc[r][t];
    }
  }

  template <int R, int T>
  static inline void add_group(const float* w, std::size_t w_stride, const float* x, std::size_t x_stride,
                               F (&acc)[R][T]) {
    F token[T];
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) token[t] = V::load(x + static_cast<std::size_t>(t) * x_stride);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const F row = V::load(w + static_cast<std::size_t>(r) * w_stride);
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) V::accumulate(acc[r][t], row, token[t]);
    }
  }

  /// Adds k products to R × T sums. parts: (kPasses, R, T) vectors, read first unless `fresh`.
  template <int R, int T>
  static inline void tile(const float* w, std::size_t w_stride, const float* x, std::size_t x_stride,
                          std::size_t k, bool fresh, F* parts) {
    const std::size_t whole = k / 16 * 16;
    for (int p = 0; p < kPasses; ++p) {
      const int lane = p * V::kLanes;
      pass<R, T>(w + lane, w_stride, x + lane, x_stride, k / 16, fresh, parts + p * R * T);
      const int rest = static_cast<int>(k - whole) - lane;
      if (rest > 0) {
        add_rest<R, T>(w + whole + lane, w_stride, x + whole + lane, x_stride,
                       rest < V::kLanes ? rest : V::kLanes, parts + p * R * T);
      }
    }
  }

  /// The last `n` lanes; the others keep their sums to the bit (a fused 0 · 0 would turn −0 into +0).
  template <int R, int T>
  __attribute__((noinline)) static void add_rest(const float* w, std::size_t w_stride, const float* x,
                                                 std::size_t x_stride, int n, F* parts) {
    for (int r = 0; r < R; ++r) {
      const F row = V::load_first(w + static_cast<std::size_t>(r) * w_stride, n);
      for (int t = 0; t < T; ++t) {
        const F token = V::load_first(x + static_cast<std::size_t>(t) * x_stride, n);
        F& sum = parts[r * T + t];
        sum = V::select(V::range(0, n), V::fma(row, token, sum), sum);
      }
    }
  }

  /// y[t * y_stride + r] from the finished sums.
  template <int R, int T>
  static inline void finish(const F* parts, float* y, std::size_t y_stride) {
    const auto fold = [&](int r, int t) {
      F pair[kPasses];
      for (int pass = 0; pass < kPasses; ++pass) pair[pass] = parts[(pass * R + r) * T + t];
      return V::fold(pair);
    };
    int t = 0;
    if constexpr (R == 4) {
      for (; t + 2 <= T; t += 2) {
        const auto t0 = static_cast<std::size_t>(t);
        V::tree_eight_by_eight({fold(0, t), fold(1, t), fold(2, t), fold(3, t)},
                               {fold(0, t + 1), fold(1, t + 1), fold(2, t + 1), fold(3, t + 1)},
                               y + t0 * y_stride, y + (t0 + 1) * y_stride);
      }
    }
    for (; t < T; ++t) {
      for (int r = 0; r < R; ++r)
        y[static_cast<std::size_t>(t) * y_stride + static_cast<std::size_t>(r)] = V::tree_eight(fold(r, t));
    }
  }

  struct Operands {
    const float* w;
    std::size_t w_stride;
    const float* x;
    std::size_t x_stride;
    std::size_t k;
    float* y;
    std::size_t y_stride;
  };

  template <int R, int T>
  static void piece_of_tile(const Operands& o, std::size_t token, std::size_t begin, std::size_t end,
                            F* parts) {
    tile<R, T>(o.w + begin, o.w_stride, o.x + token * o.x_stride + begin, o.x_stride, end - begin, begin == 0,
               parts);
    if (end == o.k) finish<R, T>(parts, o.y + token * o.y_stride, o.y_stride);
  }

  template <int R, int T>
  static void piece_of_tokens(const Operands& o, int tokens, std::size_t token, std::size_t begin,
                              std::size_t end, F* parts) {
    if constexpr (T > 1) {
      if (tokens < T) return piece_of_tokens<R, T - 1>(o, tokens, token, begin, end, parts);
    }
    piece_of_tile<R, T>(o, token, begin, end, parts);
  }

  /// R rows of w by at most kMaxTokens tokens.
  template <int R>
  static void rows_by_tokens(const Operands& o, std::size_t tokens) {
    F parts[kMaxTokens * R * kPasses];
    const std::size_t pieces = (o.k + kPiece - 1) / kPiece;
    const std::size_t piece = (o.k + pieces * 64 - 1) / (pieces * 64) * 64;
    for (std::size_t begin = 0; begin < o.k; begin += piece) {
      const std::size_t end = o.k - begin < piece ? o.k : begin + piece;
      for (std::size_t token = 0; token < tokens;) {
        const std::size_t left = tokens - token;
        // One token beside a full tile would leave most units idle: the last tokens are shared by two tiles.
        std::size_t take = left < V::kTokenTile ? left : V::kTokenTile;
        if (left > V::kTokenTile && left < 2 * V::kTokenTile) take = (left + 1) / 2;
        piece_of_tokens<R, V::kTokenTile>(o, static_cast<int>(take), token, begin, end,
                                          parts + token * R * kPasses);
        token += take;
      }
    }
  }

  /// R rows by one token: as many streams from memory, both halves of a group at once.
  template <int R>
  static void rows_by_one(const Operands& o) {
    F acc[R][kPasses];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int pass = 0; pass < kPasses; ++pass) acc[r][pass] = V::zero();
    }
    std::size_t at = 0;
    for (; at + 16 <= o.k; at += 16) {
#pragma GCC unroll 8
      for (int pass = 0; pass < kPasses; ++pass) {
        const F token = V::load(o.x + at + pass * V::kLanes);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          acc[r][pass] =
              V::fma(V::load(o.w + static_cast<std::size_t>(r) * o.w_stride + at + pass * V::kLanes), token,
                     acc[r][pass]);
        }
      }
    }
    for (int pass = 0; pass < kPasses; ++pass) {
      const int rest = static_cast<int>(o.k - at) - pass * V::kLanes;
      if (rest <= 0) break;
      const int n = rest < V::kLanes ? rest : V::kLanes;
      F column[R];
      for (int r = 0; r < R; ++r) column[r] = acc[r][pass];
      add_rest<R, 1>(o.w + at + pass * V::kLanes, o.w_stride, o.x + at + pass * V::kLanes, 0, n, column);
      for (int r = 0; r < R; ++r) acc[r][pass] = column[r];
    }
    for (int r = 0; r < R; ++r) o.y[r] = V::tree_eight(V::fold(acc[r]));
  }

  static void run(const float* w, std::size_t w_stride, std::size_t rows, const float* x,
                  std::size_t x_stride, std::size_t tokens, std::size_t k, float* y, std::size_t y_stride) {
    if (k == 0) {
      for (std::size_t t = 0; t < tokens; ++t) {
        for (std::size_t r = 0; r < rows; ++r) y[t * y_stride + r] = 0.0F;
      }
      return;
    }
    if (tokens == 1) {
      std::size_t r = 0;
      for (; r + V::kStreams <= rows; r += V::kStreams)
        rows_by_one<V::kStreams>({w + r * w_stride, w_stride, x, 0, k, y + r, 0});
      for (; r < rows; ++r) rows_by_one<1>({w + r * w_stride, w_stride, x, 0, k, y + r, 0});
      return;
    }
    std::size_t block = kBlockFloats / k / V::kTokenTile * V::kTokenTile;
    block = block < V::kTokenTile ? V::kTokenTile : block > kMaxTokens ? kMaxTokens : block;
    for (std::size_t t = 0; t < tokens; t += block) {
      const std::size_t some = tokens - t < block ? tokens - t : block;
      std::size_t r = 0;
      for (; r + kRows <= rows; r += kRows) {
        rows_by_tokens<kRows>(
            {w + r * w_stride, w_stride, x + t * x_stride, x_stride, k, y + t * y_stride + r, y_stride},
            some);
      }
      for (; r < rows; ++r) {
        rows_by_tokens<1>(
            {w + r * w_stride, w_stride, x + t * x_stride, x_stride, k, y + t * y_stride + r, y_stride},
            some);
      }
    }
  }
};

}  // namespace wring::kernels::vector
