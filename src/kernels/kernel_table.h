// The table of compute kernels, chosen once at start for the CPU level that runs. Pure functions on pointers:
// no allocation, no threads, no exceptions. `scalar/` is the reference; every other level gives the same bits
// (exact mode's order of summation, docs/ARCHITECTURE.md):
//
//   a sum over k = 0 … n−1 has 16 partial sums p[k mod 16], each taken by fused multiply-add (or addition) in
//   rising k from +0, then p[i] += p[i+8] for i < 8, p[i] += p[i+4] for i < 4, p[i] += p[i+2] for i < 2, p[0]
//   += p[1].
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"
#include "formats/quant_type.h"
#include "kernels/packed.h"

namespace wring::kernels {

inline constexpr int kPageTokens = 64;  // positions a KV page holds, aligned absolutely
inline constexpr int kAttentionBlockTokens =
    512;  // keys whose softmax is taken together before results are merged

/// How a score q · k is summed: as exact mode's sums are, or (packed mode) fused in rising order from +0.
enum class SumOrder { kSixteen, kRising };

/// Attention of some consecutive queries of one sequence over one key/value head. Query i stands at position
/// first_position + i and sees the keys at positions max(0, p − window + 1) … p (window 0: from 0).
struct AttentionArgs {
  const float* q;        // query i, head h of the group: q + i * q_stride + h * head_dim
  std::size_t q_stride;  // floats
  int queries;
  int group;     // query heads that share this key/value head
  int head_dim;  // of q and k
  int value_dim;
  std::int64_t first_position;
  int window;                  // 0: none
  formats::QuantType kv_type;  // of keys and values: F32, F16 or BF16
  const void* const*
      k_pages;  // [position / 64] → (head_dim, 64): keys, transposed. Entries below the window may be null.
  const void* const* v_pages;  // [position / 64] → (64, value_dim)
  SumOrder order;
  float scale;         // scores are (q · k) * scale
  float softcap;       // 0: none; else scores become softcap * tanh(score / softcap)
  const float* sinks;  // (group): one extra logit a head that takes probability and gives nothing; null: none
  float* out;          // query i, head h: out + i * out_stride + h * value_dim
  std::size_t out_stride;
  float* scratch;  // attention_scratch_floats(...) floats, 64-byte aligned, private to the caller
};

/// Some consecutive positions of one value head of a Gated DeltaNet. Per position, with the state S (key_dim,
/// value_dim): S ← decay · S; S ← S + k ⊗ beta (v − kᵀ S); out = qᵀ S. Sums over key_dim are one chain of
/// fused multiply-adds in rising order from +0, so that a position's bits do not depend on where a call
/// begins. Strides in floats, from one position to the next.
struct DeltaRuleArgs {
  const float *q, *k, *v;
  std::size_t q_stride, k_stride, v_stride;
  const float *decay, *beta;
  std::size_t gate_stride;
  std::size_t key_dim, value_dim, steps;
  float* state;  // (key_dim, value_dim), read and written
  float* out;    // null: no outputs are wanted
  std::size_t out_stride;
};

/// Floats of scratch that attention needs for one call of these sizes.
std::size_t attention_scratch_floats(int queries, int group, int head_dim, int value_dim);

/// Floats that `count` rows (or tokens) of k take when laid out in tiles of `tile`.
constexpr std::size_t tiled_floats(std::size_t count, std::size_t tile, std::size_t k) {
  return (count + tile - 1) / tile * tile * ((k + 15) / 16 * 16);
}

/// Packed mode's products of BF16 matrices on CPUs that multiply BF16 pairwise: k is even, and the pair of
/// values 2i, 2i + 1 of a row meets partial sum i mod 16 in two steps (scalar/bf16_lane.h), subnormals
/// counting as zero. The tree is the one above. A pair is handled as the 32 bits of one float: a row of k
/// values is laid out as k / 2 floats are.
struct Bf16Dots {
  /// bf16[0, n): x rounded to the nearest (even).
  void (*round)(const float* x, std::size_t n, std::uint16_t* bf16);

  /// As KernelTable's, of BF16 rows in tiled_floats(..., k / 2) floats. row_bytes % 4 == 0, pointers need no
  /// alignment.
  std::size_t tile_height, tile_width;
  void (*tile_rows)(const void* w, std::size_t row_bytes, std::size_t rows, std::size_t k, float* tiled);
  void (*tile_tokens)(const void* x, std::size_t row_bytes, std::size_t tokens, std::size_t k, float* tiled);
  void (*matmul)(const float* tiled_w, std::size_t rows, const float* tiled_x, std::size_t tokens,
                 std::size_t k, float* y, std::size_t y_stride);
  /// Bit for bit what matmul gives.
  void (*matvec)(const void* w, std::size_t row_bytes, std::size_t rows, const std::uint16_t* x,
                 std::size_t k, float* y);

  /// As fma_loop.
  std::size_t (*peak_loop)(std::size_t rounds, float* sink);
};

struct KernelTable {
  Isa isa;

  /// dst[0, n): the exact float32 values of n weights of `type` at `src`; n is a multiple of the type's block
  /// size, and src of types with blocks is aligned to 2 bytes (GGUF aligns to 8 or more). Types:
  /// has_dequantize(type).
  void (*dequantize)(formats::QuantType type, const void* src, float* dst, std::size_t n);

  /// matmul takes w in tiles of tile_height rows and x in tiles of tile_width tokens, laid out by these two
  /// in tiled_floats(...) floats, 64-byte aligned. Each level has its own layout; laying whole tiles one by
  /// one gives the same as laying all at once.
  std::size_t tile_height, tile_width;
  void (*tile_rows)(const float* w, std::size_t stride, std::size_t rows, std::size_t k, float* tiled);
  void (*tile_tokens)(const float* x, std::size_t stride, std::size_t tokens, std::size_t k, float* tiled);

  /// y[t * y_stride + r] = Σ_k w[r, k] · x[t, k] for r < rows, t < tokens, in the order above, of tiled
  /// operands.
  void (*matmul)(const float* tiled_w, std::size_t rows, const float* tiled_x, std::size_t tokens,
                 std::size_t k, float* y, std::size_t y_stride);

  /// The same for one token, of plain operands: y[r] = Σ_k w[r, k] · x[k], w stored as F32, F16 or BF16, rows
  /// row_bytes apart, of any alignment.
  void (*matvec)(formats::QuantType type, const void* w, std::size_t row_bytes, std::size_t rows,
                 const float* x, std::size_t k, float* y);

  /// Packed mode (kernels/packed.h). Codes x, (out.columns) activations, % 32 == 0, into row `token` of out.
  void (*quantize_row)(const float* x, const QuantizedRows& out, std::size_t token);
  /// y[t * y_stride + r] for r < rows, t < tokens, from groups of 16 rows (pack_group), 32-byte aligned.
  void (*packed_matmul)(formats::QuantType type, const std::byte* groups, std::size_t rows,
                        const QuantizedRows& x, std::size_t tokens, float* y, std::size_t y_stride);

  /// Null where the CPU lacks such an instruction or is faster without: BF16 is then computed as exact mode
  /// does, from floats. Not bound to the levels' common bits.
  const Bf16Dots* bf16;

  /// y = x · weight / sqrt(mean(x²) + eps), n values; x may be y. weight_offset is added to each weight first
  /// (Gemma: 1).
  void (*rms_norm)(const float* x, const float* weight, float weight_offset, std::size_t n, float eps,
                   float* y);

  /// y = (x − mean) / sqrt(mean((x − mean)²) + eps) · weight + bias, n values; x may be y.
  void (*layer_norm)(const float* x, const float* weight, const float* bias, std::size_t n, float eps,
                     float* y);

  /// x[i] += y[i].
  void (*add)(float* x, const float* y, std::size_t n);

  /// x[i] *= factor.
  void (*scale)(float* x, std::size_t n, float factor);

  /// gate[i] = silu(gate[i]) * up[i], silu(v) = v / (1 + exp(−v)).
  void (*silu_mul)(float* gate, const float* up, std::size_t n);

  /// x[i] = silu(x[i]).
  void (*silu)(float* x, std::size_t n);

  /// gate[i] = gelu(gate[i]) * up[i], gelu(v) = v/2 · (1 + tanh(√(2/π) · (v + 0.044715 v³))): the "tanh"
  /// form.
  void (*gelu_tanh_mul)(float* gate, const float* up, std::size_t n);

  /// x[i] = gelu(x[i]).
  void (*gelu_tanh)(float* x, std::size_t n);

  /// gate[i] = g · sigmoid(alpha · g) · (u + 1), g = min(gate[i], limit), u = up[i] within ± limit (gpt_oss).
  void (*clamped_swiglu)(float* gate, const float* up, std::size_t n, float alpha, float limit);

  /// x[i] = e^x[i]; results below the smallest normal float32 are 0.
  void (*exp)(float* x, std::size_t n);

  /// x[i] = cap · tanh(x[i] / cap) (Gemma 2's logits). cap > 0.
  void (*softcap)(float* x, std::size_t n, float cap);

  /// Rotates the pairs (x[i], x[i + half]) for i < half by the angle whose cosine and sine are cosine[i],
  /// sine[i].
  void (*rope_half)(float* x, const float* cosine, const float* sine, std::size_t half);
  /// The same for the pairs (x[2i], x[2i + 1]).
  void (*rope_pairs)(float* x, const float* cosine, const float* sine, std::size_t half);

  void (*attention)(const AttentionArgs& args);

  void (*delta_rule)(const DeltaRuleArgs& args);

  /// x[i] *= sigmoid(gate[i]), sigmoid(v) = 1 / (1 + exp(−v)).
  void (*sigmoid_mul)(float* x, const float* gate, std::size_t n);

  /// Stores one position's key and value in the cache's type: k (head_dim) into column `slot` of the
  /// transposed page, v (value_dim) into row `slot`.
  void (*store_kv)(formats::QuantType type, const float* k, const float* v, int head_dim, int value_dim,
                   int slot, void* k_page, void* v_page);

  /// ln Σ exp(x_i), as max x + ln Σ exp(x_i − max x): terms in float32, sums in float64 (16 partial sums as
  /// above). n ≥ 1, no infinities.
  double (*log_sum_exp)(const float* x, std::size_t n);

  /// Multiply-adds done by one call of an FMA loop that lives in registers: `wring doctor` times it to know
  /// the fp32 peak.
  std::size_t (*fma_loop)(std::size_t rounds, float* sink);
  /// The same for the multiply-adds of bytes that packed mode is made of.
  std::size_t (*byte_loop)(std::size_t rounds, std::int32_t* sink);
  /// The largest of n floats, n % 128 == 0: reads memory as fast as this level can.
  float (*read_loop)(const float* x, std::size_t n);
};

/// The table of one level. Precondition: the CPU has it.
const KernelTable& kernels_for(Isa isa);

/// The table that choose_isa() names, chosen on the first call.
const KernelTable& kernels();

bool has_dequantize(formats::QuantType type);

/// The reference of Bf16Dots in plain C++, for tests: no level's table has it.
const Bf16Dots& bf16_reference();

}  // namespace wring::kernels
