// Attention over paged keys and values, as a template over a level's vector class V. The definition is
// scalar/attention.cc's and the bits are the same; what differs is the order in which independent things are
// done.
//
// Rows (a query's head each) are taken in chunks; a block of 512 keys is finished for the whole chunk before
// the next begins, and a page of keys or values is used by all rows of the chunk while it lies in the
// first-level cache, made floats first where it holds 16-bit values and the rows are many.
//   scores  lanes are keys (pages hold keys transposed); the 16 partial sums of exact mode's order are
//   separate
//           registers, added elementwise along the tree in depth-first order, so that few are alive
//   values  lanes are value dimensions; keys are taken in rising order
// Keys that a row does not see take no part: their scores are replaced by −∞ before the maximum, and their
// values are not multiplied.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"
#include "kernels/levels.h"
#include "kernels/vector/math.h"
#include "kernels/vector/stored.h"

namespace wring::kernels::vector {

/// Stored: the cache's values (stored.h).
template <class V, template <class> class Stored>
struct Attention {
  using F = typename V::F;
  static constexpr int kTile = V::kAttentionTile;  // rows
  static constexpr int kWide = 4;                  // vectors beside each row of a tile
  static constexpr int kKeys = kWide * V::kLanes;  // keys of a score tile
  static constexpr int kBlock = kAttentionBlockTokens;

  struct Row {
    const float* q;
    float* out;
    float* scores;              // (512)
    float* block_out;           // (value_dim), padded to whole vectors
    float* merged;              // the same
    std::int64_t lowest, last;  // positions it sees
    int begin, end;             // the same within the current block; none where begin ≥ end
    int head;
    bool first;  // no block was merged yet
    float max, sum;
  };

  // ---- scores ----

  /// scores[r][0 … kKeys) = q_r · k for kKeys keys; `keys` points at the first one's column.
  template <class Kv, int R>
  static void score_tile(const Row* rows, const typename Kv::Value* keys, SumOrder order, int head_dim,
                         int at) {
    F acc[R][kWide];
    const float* queries[R];
    for (int r = 0; r < R; ++r) queries[r] = rows[r].q;
    if (order == SumOrder::kRising) {
      add_products<Kv, R>(queries, keys, 0, 1, head_dim, acc);
    } else {
      sum_sixteen<Kv, R>(queries, keys, head_dim, acc);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int c = 0; c < kWide; ++c) V::store(rows[r].scores + at + c * V::kLanes, acc[r][c]);
    }
  }

  /// acc = Σ q_d k_d over d = first, first + step …, from +0.
  template <class Kv, int R>
  static inline void add_products(const float* const (&queries)[R], const typename Kv::Value* keys, int first,
                                  int step, int head_dim, F (&acc)[R][kWide]) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int c = 0; c < kWide; ++c) acc[r][c] = V::zero();
    }
    for (int d = first; d < head_dim; d += step) {
      const typename Kv::Value* key = keys + d * kPageTokens;
      F q[R];
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) q[r] = V::set(queries[r][d]);
#pragma GCC unroll 8
      for (int c = 0; c < kWide; ++c) {
        const F k = Kv::load(key + c * V::kLanes);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) V::accumulate(acc[r][c], q[r], k);
      }
    }
  }

  /// The 16 partial sums one after the other, added along the tree in depth-first order.
  template <class Kv, int R>
  static inline void sum_sixteen(const float* const (&queries)[R], const typename Kv::Value* keys,
                                 int head_dim, F (&acc)[R][kWide]) {
    static constexpr unsigned char kOrder[16] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};
    F waiting[4][R][kWide];  // the left operand of an addition of each level of the tree
    for (int n = 0; n < 16; ++n) {
      add_products<Kv, R>(queries, keys, kOrder[n], 16, head_dim, acc);
      int level = 0;
      for (; (n >> level & 1) != 0; ++level) {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
          for (int c = 0; c < kWide; ++c) acc[r][c] = V::add(waiting[level][r][c], acc[r][c]);
        }
      }
      if (n == 15) break;
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
        for (int c = 0; c < kWide; ++c) waiting[level][r][c] = acc[r][c];
      }
    }
  }

  /// Scores of one page for R rows: all groups of keys of which some row sees one. `first`: the page's place
  /// in the block.
  template <class Kv, int R>
  static void score_page(const Row* rows, const typename Kv::Value* page, SumOrder order, int head_dim,
                         int first) {
    int begin = kBlock;
    int end = 0;
    for (int r = 0; r < R; ++r) {
      if (rows[r].begin >= rows[r].end) continue;
      begin = rows[r].begin < begin ? rows[r].begin : begin;
      end = rows[r].end > end ? rows[r].end : end;
    }
    for (int key = 0; key < kPageTokens; key += kKeys) {
      if (first + key + kKeys <= begin || first + key >= end) continue;
      score_tile<Kv, R>(rows, page + key, order, head_dim, first + key);
    }
  }

  // ---- softmax ----

  /// Scores of a row's block to probabilities in place; its maximum and sum.
  static void softmax(const AttentionArgs& args, Row& row, float& block_max, float& block_sum) {
    const int begin = row.begin / 16 * 16;
    const int end = (row.end + 15) / 16 * 16;
    const F scale = V::set(args.scale);
    const F cap = V::set(args.softcap);
    const F none = V::set(-__builtin_inff());
    F highest = none;
    for (int j = begin; j < end; j += V::kLanes) {
      F s = V::mul(V::load(row.scores + j), scale);
      if (args.softcap != 0.0F) s = V::mul(cap, Math<V>::tanh(V::div(s, cap)));
      if (j < row.begin || j + V::kLanes > row.end)
        s = V::select(V::range(row.begin - j, row.end - j), s, none);
      V::store(row.scores + j, s);
      highest = V::max(highest, s);
    }
    block_max = V::max_of(highest);
    const F max = V::set(block_max);
    F sums[16 / V::kLanes];
    for (F& sum : sums) sum = V::zero();
    for (int j = begin; j < end; j += 16) {
#pragma GCC unroll 2
      for (int half = 0; half < 16 / V::kLanes; ++half) {
        float* at = row.scores + j + half * V::kLanes;
        const F p = Math<V>::exp(V::sub(V::load(at), max));
        V::store(at, p);
        sums[half] = V::add(sums[half], p);  // keys that are not seen add +0
      }
    }
    block_sum = V::tree_eight(V::fold(sums));
  }

  // ---- values ----

  /// block_out[r][dim …] += Σ p v over the keys begin … end−1 of one page, for C vectors of value dimensions;
  /// `n` lanes of the last.
  template <class Kv, int R, int C, bool kPart>
  static inline void add_values(const Row* rows, const typename Kv::Value* values, int value_dim, int first,
                                int begin, int end, int dim, int n) {
    F acc[R][C];
    const float* p[R];
    for (int r = 0; r < R; ++r) p[r] = rows[r].scores;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) acc[r][c] = V::load(rows[r].block_out + dim + c * V::kLanes);
    }
    const typename Kv::Value* value = values + static_cast<std::ptrdiff_t>(begin - first) * value_dim + dim;
    for (int j = begin; j < end; ++j, value += value_dim) {
      F weight[R];
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) weight[r] = V::set(p[r][j]);
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) {
        const F v = kPart ? Kv::load_first(value, n) : Kv::load(value + c * V::kLanes);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) V::accumulate(acc[r][c], weight[r], v);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) V::store(rows[r].block_out + dim + c * V::kLanes, acc[r][c]);
    }
  }

  template <class Kv, int R>
  static void values_of(const Row* rows, const typename Kv::Value* values, int value_dim, int first,
                        int begin, int end) {
    int dim = 0;
    for (; dim + kWide * V::kLanes <= value_dim; dim += kWide * V::kLanes) {
      add_values<Kv, R, kWide, false>(rows, values, value_dim, first, begin, end, dim, 0);
    }
    for (; dim + V::kLanes <= value_dim; dim += V::kLanes) {
      add_values<Kv, R, 1, false>(rows, values, value_dim, first, begin, end, dim, 0);
    }
    if (dim < value_dim)
      add_values<Kv, R, 1, true>(rows, values, value_dim, first, begin, end, dim, value_dim - dim);
  }

  /// The keys of a page that all R rows see are taken together; what a row sees beyond those, before or after
  /// them.
  template <class Kv, int R>
  static void value_page(const Row* rows, const typename Kv::Value* values, int value_dim, int first) {
    int begin[R];
    int end[R];
    int all_begin = 0;
    int all_end = kBlock;
    for (int r = 0; r < R; ++r) {
      begin[r] = rows[r].begin > first ? rows[r].begin : first;
      end[r] = rows[r].end < first + kPageTokens ? rows[r].end : first + kPageTokens;
      all_begin = begin[r] > all_begin ? begin[r] : all_begin;
      all_end = end[r] < all_end ? end[r] : all_end;
    }
    if (all_begin >= all_end) {
      for (int r = 0; r < R; ++r) {
        if (begin[r] < end[r]) values_of<Kv, 1>(rows + r, values, value_dim, first, begin[r], end[r]);
      }
      return;
    }
    for (int r = 0; r < R; ++r) {
      if (begin[r] < all_begin) values_of<Kv, 1>(rows + r, values, value_dim, first, begin[r], all_begin);
    }
    values_of<Kv, R>(rows, values, value_dim, first, all_begin, all_end);
    for (int r = 0; r < R; ++r) {
      if (all_end < end[r]) values_of<Kv, 1>(rows + r, values, value_dim, first, all_end, end[r]);
    }
  }

  // ---- rows ----

  struct Page {
    const void* content;  // keys or values
    int first;            // place of the page's first key in the block
    bool scores;          // else values
  };

  template <class Kv, int R>
  static void page_of_tile(const AttentionArgs& args, const Row* rows, const Page& page, int count) {
    if constexpr (R > 1) {
      if (count < R) return page_of_tile<Kv, R - 1>(args, rows, page, count);
    }
    const auto* values = static_cast<const typename Kv::Value*>(page.content);
    if (page.scores) {
      score_page<Kv, R>(rows, values, args.order, args.head_dim, page.first);
    } else {
      value_page<Kv, R>(rows, values, args.value_dim, page.first);
    }
  }

  /// A page of 16-bit values is made floats once where many rows use it.
  static void page_of_rows(const AttentionArgs& args, const Row* rows, int count, Page page, float* floats) {
    if (sizeof(typename Stored<V>::Value) == sizeof(float) || count <= 2 * kTile) {
      for (int r = 0; r < count; r += kTile)
        page_of_tile<Stored<V>, kTile>(args, rows + r, page, count - r < kTile ? count - r : kTile);
      return;
    }
    const auto* stored = static_cast<const typename Stored<V>::Value*>(page.content);
    const int n = kPageTokens * (page.scores ? args.head_dim : args.value_dim);
    for (int i = 0; i < n; i += V::kLanes) V::store(floats + i, Stored<V>::load(stored + i));
    page.content = floats;
    for (int r = 0; r < count; r += kTile)
      page_of_tile<StoredF32<V>, kTile>(args, rows + r, page, count - r < kTile ? count - r : kTile);
  }

  static void merge(Row& row, float block_max, float block_sum, int value_dim) {
    if (row.first) {
      row.first = false;
      row.max = block_max;
      row.sum = block_sum;
      float* swap = row.merged;
      row.merged = row.block_out;
      row.block_out = swap;
      return;
    }
    const float max = row.max > block_max ? row.max : block_max;
    const F a = Math<V>::exp(V::set(row.max - max));
    const F b = Math<V>::exp(V::set(block_max - max));
    row.max = max;
    row.sum = V::first_of(V::fma(V::set(block_sum), b, V::mul(V::set(row.sum), a)));
    for (int d = 0; d < value_dim; d += V::kLanes) {
      V::store(row.merged + d, V::fma(V::load(row.block_out + d), b, V::mul(V::load(row.merged + d), a)));
    }
  }

  static void finish(const AttentionArgs& args, Row& row) {
    F shrink = V::set(1.0F);
    if (args.sinks != nullptr) {
      const float sink = args.sinks[row.head];
      const float max = row.max > sink ? row.max : sink;
      shrink = Math<V>::exp(V::set(row.max - max));
      const F weight = Math<V>::exp(V::set(sink - max));
      row.sum = V::first_of(V::add(V::mul(V::set(row.sum), shrink), weight));
    }
    const F sum = V::set(row.sum);
    int d = 0;
    for (; d + V::kLanes <= args.value_dim; d += V::kLanes) {
      V::store(row.out + d, V::div(V::mul(V::load(row.merged + d), shrink), sum));
    }
    if (d < args.value_dim)
      V::store_first(row.out + d, V::div(V::mul(V::load(row.merged + d), shrink), sum), args.value_dim - d);
  }

  static void block_of_rows(const AttentionArgs& args, Row* rows, int count, std::int64_t block) {
    const std::int64_t origin = block * kBlock;
    const int pages = kBlock / kPageTokens;
    int begin = kBlock;
    int end = 0;
    for (int r = 0; r < count; ++r) {
      Row& row = rows[r];
      row.begin = row.lowest > origin
                      ? static_cast<int>(row.lowest - origin < kBlock ? row.lowest - origin : kBlock)
                      : 0;
      row.end = row.last - origin >= kBlock ? kBlock
                                            : static_cast<int>(row.last < origin ? 0 : row.last - origin + 1);
      if (row.begin >= row.end) continue;
      begin = row.begin < begin ? row.begin : begin;
      end = row.end > end ? row.end : end;
      for (int d = 0; d < args.value_dim; d += V::kLanes) V::store(row.block_out + d, V::zero());
    }
    const std::int64_t first_page = block * pages;
    float* const floats = page_floats(args);
    for (int i = begin / kPageTokens; i * kPageTokens < end; ++i)
      page_of_rows(args, rows, count, {args.k_pages[first_page + i], i * kPageTokens, true}, floats);
    float max[kAttentionRows];
    float sum[kAttentionRows];
    for (int r = 0; r < count; ++r) {
      if (rows[r].begin < rows[r].end) softmax(args, rows[r], max[r], sum[r]);
    }
    for (int i = begin / kPageTokens; i * kPageTokens < end; ++i)
      page_of_rows(args, rows, count, {args.v_pages[first_page + i], i * kPageTokens, false}, floats);
    for (int r = 0; r < count; ++r) {
      if (rows[r].begin < rows[r].end) merge(rows[r], max[r], sum[r], args.value_dim);
    }
  }

  /// Scratch behind the rows' own: a page as floats.
  static float* page_floats(const AttentionArgs& args) {
    const int all = args.queries * args.group, rows = all < kAttentionRows ? all : kAttentionRows;
    return args.scratch + static_cast<std::size_t>(rows) * attention_row_floats(args.value_dim);
  }

  static void run(const AttentionArgs& args) {
    const int padded_dim = (args.value_dim + 15) / 16 * 16;
    const int total = args.queries * args.group;
    Row rows[kAttentionRows];
    for (int from = 0; from < total; from += kAttentionRows) {
      const int count = total - from < kAttentionRows ? total - from : kAttentionRows;
      for (int r = 0; r < count; ++r) {
        const int query = (from + r) / args.group;
        Row& row = rows[r];
        row.head = (from + r) % args.group;
        row.q = args.q + static_cast<std::size_t>(query) * args.q_stride +
                static_cast<std::size_t>(row.head) * args.head_dim;
        row.out = args.out + static_cast<std::size_t>(query) * args.out_stride +
                  static_cast<std::size_t>(row.head) * args.value_dim;
        row.scores = args.scratch + static_cast<std::size_t>(r) * attention_row_floats(args.value_dim);
        row.block_out = row.scores + kBlock;
        row.merged = row.block_out + padded_dim;
        row.last = args.first_position + query;
        row.lowest = args.window > 0 && row.last >= args.window ? row.last - args.window + 1 : 0;
        row.first = true;
      }
      for (std::int64_t block = rows[0].lowest / kBlock; block <= rows[count - 1].last / kBlock; ++block) {
        block_of_rows(args, rows, count, block);
      }
      for (int r = 0; r < count; ++r) finish(args, rows[r]);
    }
  }
};

template <class V>
void attention(const AttentionArgs& args) {
  switch (args.kv_type) {
    case formats::QuantType::kF16:
      return Attention<V, StoredF16>::run(args);
    case formats::QuantType::kBF16:
      return Attention<V, StoredBF16>::run(args);
    default:
      return Attention<V, StoredF32>::run(args);
  }
}

}  // namespace wring::kernels::vector
