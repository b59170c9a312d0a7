// The definition of attention; the vector levels give the same bits. Keys and values are read from the cache
// in its type, exactly.
//
// A query at position p sees the keys lo … p. They are cut into blocks at positions that are multiples of
// 512. In a block:
//   s_j = (q · k_j) · scale, softcapped          q · k_j over head_dim in the order asked for
//   m   = max s_j
//   p_j = exp(s_j − m)
//   l   = Σ p_j                                  16 partial sums by position mod 16, then the tree
//   o   = Σ p_j v_j                              fused multiply-add in rising position, from +0
// The first block is taken as it is; each later one (m, l, o) is merged into (M, L, O) by the online softmax
// rule (Milakov and Gimelshein, 2018): M' = max(M, m), a = exp(M − M'), b = exp(m − M'), L' = fma(l, b, L·a),
// O' = fma(o, b, O·a). A sink s comes last: M' = max(M, s), L' = L·a + exp(s − M'), O' = O·a. The result is O
// / L. Nothing depends on the other queries.
#include <algorithm>
#include <cmath>

#include "base/floats.h"
#include "kernels/levels.h"
#include "kernels/scalar/scalar_kernels.h"
#include "kernels/scalar/scalar_math.h"

namespace wring::kernels::scalar {
namespace {

struct Merged {
  float max = 0;
  float sum = 0;
  float* out = nullptr;  // (value_dim)
};

// The cache's types are plain; a page's value `i`.
float cached(formats::QuantType type, const void* page, std::size_t i) {
  if (type == formats::QuantType::kF32) return static_cast<const float*>(page)[i];
  const std::uint16_t bits = static_cast<const std::uint16_t*>(page)[i];
  return type == formats::QuantType::kF16 ? f16_to_float(bits) : bf16_to_float(bits);
}

void put_cached(formats::QuantType type, void* page, std::size_t i, float value) {
  if (type == formats::QuantType::kF32) {
    static_cast<float*>(page)[i] = value;
  } else {
    static_cast<std::uint16_t*>(page)[i] =
        type == formats::QuantType::kF16 ? float_to_f16(value) : float_to_bf16(value);
  }
}

float score(const AttentionArgs& args, const float* q, std::int64_t position) {
  const void* page = args.k_pages[position / kPageTokens];
  const auto slot = static_cast<std::size_t>(position % kPageTokens);
  const std::size_t sums = args.order == SumOrder::kSixteen ? 16 : 1;
  float p[16] = {};
  for (std::size_t d = 0; d < static_cast<std::size_t>(args.head_dim); ++d)
    p[d % sums] = std::fma(q[d], cached(args.kv_type, page, d * kPageTokens + slot), p[d % sums]);
  const float s = (sums == 1 ? p[0] : tree_sum(p)) * args.scale;
  return args.softcap != 0.0F ? args.softcap * tanh_f32(s / args.softcap) : s;
}

// Positions begin … end−1, all of one block. `scores` and `block_out` are scratch.
void take_block(const AttentionArgs& args, const float* q, std::int64_t begin, std::int64_t end, bool first,
                float* scores, float* block_out, Merged& merged) {
  const int n = static_cast<int>(end - begin);
  for (int j = 0; j < n; ++j) scores[j] = score(args, q, begin + j);
  float max = scores[0];
  for (int j = 1; j < n; ++j) max = std::max(max, scores[j]);
  float sums[16] = {};
  std::fill_n(block_out, args.value_dim, 0.0F);
  for (int j = 0; j < n; ++j) {
    const std::int64_t position = begin + j;
    const float p = exp_f32(scores[j] - max);
    sums[position % 16] += p;
    const void* page = args.v_pages[position / kPageTokens];
    const auto row = static_cast<std::size_t>(position % kPageTokens * args.value_dim);
    for (int d = 0; d < args.value_dim; ++d)
      block_out[d] = std::fma(p, cached(args.kv_type, page, row + static_cast<std::size_t>(d)), block_out[d]);
  }
  const float sum = tree_sum(sums);
  if (first) {
    merged.max = max;
    merged.sum = sum;
    std::copy_n(block_out, args.value_dim, merged.out);
    return;
  }
  const float new_max = std::max(merged.max, max);
  const float a = exp_f32(merged.max - new_max);
  const float b = exp_f32(max - new_max);
  merged.max = new_max;
  merged.sum = std::fma(sum, b, merged.sum * a);
  for (int d = 0; d < args.value_dim; ++d) merged.out[d] = std::fma(block_out[d], b, merged.out[d] * a);
}

}  // namespace

void store_kv(formats::QuantType type, const float* k, const float* v, int head_dim, int value_dim, int slot,
              void* k_page, void* v_page) {
  const auto at = static_cast<std::size_t>(slot);
  for (std::size_t d = 0; d < static_cast<std::size_t>(head_dim); ++d)
    put_cached(type, k_page, d * kPageTokens + at, k[d]);
  for (std::size_t d = 0; d < static_cast<std::size_t>(value_dim); ++d)
    put_cached(type, v_page, at * static_cast<std::size_t>(value_dim) + d, v[d]);
}

void attention(const AttentionArgs& args) {
  float* scores = args.scratch;
  float* block_out = scores + kAttentionBlockTokens;
  Merged merged;
  merged.out = block_out + args.value_dim;
  for (int i = 0; i < args.queries; ++i) {
    const std::int64_t last = args.first_position + i;
    const std::int64_t lowest = args.window > 0 ? std::max<std::int64_t>(0, last - args.window + 1) : 0;
    for (int head = 0; head < args.group; ++head) {
      const float* q = args.q + static_cast<std::size_t>(i) * args.q_stride +
                       static_cast<std::size_t>(head) * args.head_dim;
      for (std::int64_t begin = lowest; begin <= last;) {
        const std::int64_t end =
            std::min(last + 1, (begin / kAttentionBlockTokens + 1) * kAttentionBlockTokens);
        take_block(args, q, begin, end, begin == lowest, scores, block_out, merged);
        begin = end;
      }
      if (args.sinks != nullptr) {
        const float new_max = std::max(merged.max, args.sinks[head]);
        const float a = exp_f32(merged.max - new_max);
        merged.sum = merged.sum * a + exp_f32(args.sinks[head] - new_max);
        for (int d = 0; d < args.value_dim; ++d) merged.out[d] *= a;
      }
      float* out = args.out + static_cast<std::size_t>(i) * args.out_stride +
                   static_cast<std::size_t>(head) * args.value_dim;
      for (int d = 0; d < args.value_dim; ++d) out[d] = merged.out[d] / merged.sum;
    }
  }
}

}  // namespace wring::kernels::scalar
