// A level's table, from its vector class V.
#pragma once

#include "kernels/levels.h"
#include "kernels/vector/attention.h"
#include "kernels/vector/delta_rule.h"
#include "kernels/vector/dequantize.h"
#include "kernels/vector/elementwise.h"
#include "kernels/vector/matmul.h"
#include "kernels/vector/store_kv.h"

namespace wring::kernels::vector {

/// Packed mode's, which are no templates.
struct PackedFunctions {
  decltype(KernelTable::quantize_row) quantize_row;
  decltype(KernelTable::packed_matmul) packed_matmul;
  decltype(KernelTable::byte_loop) byte_loop;
};

template <class V>
constexpr KernelTable make_table(Isa isa, PackedFunctions packed) {
  return {
      .isa = isa,
      .dequantize = Dequantize<V>::run,
      .tile_height = Matmul<V>::kRows,
      .tile_width = Matmul<V>::kTokens,
      .tile_rows = Matmul<V>::tile_rows,
      .tile_tokens = Matmul<V>::tile_tokens,
      .matmul = Matmul<V>::run,
      .matvec = Matmul<V>::matvec,
      .quantize_row = packed.quantize_row,
      .packed_matmul = packed.packed_matmul,
      .bf16 = nullptr,
      .rms_norm = Elementwise<V>::rms_norm,
      .layer_norm = Elementwise<V>::layer_norm,
      .add = Elementwise<V>::add,
      .scale = Elementwise<V>::scale,
      .silu_mul = Elementwise<V>::silu_mul,
      .silu = Elementwise<V>::silu,
      .gelu_tanh_mul = Elementwise<V>::gelu_tanh_mul,
      .gelu_tanh = Elementwise<V>::gelu_tanh,
      .clamped_swiglu = Elementwise<V>::clamped_swiglu,
      .exp = Elementwise<V>::exp,
      .softcap = Elementwise<V>::softcap,
      .rope_half = Elementwise<V>::rope_half,
      .rope_pairs = Elementwise<V>::rope_pairs,
      .attention = attention<V>,
      .delta_rule = DeltaRule<V>::run,
      .sigmoid_mul = Elementwise<V>::sigmoid_mul,
      .store_kv = store_kv<V>,
      .log_sum_exp = Elementwise<V>::log_sum_exp,
      .fma_loop = Elementwise<V>::fma_loop,
      .byte_loop = packed.byte_loop,
      .read_loop = Elementwise<V>::read_loop,
  };
}

}  // namespace wring::kernels::vector
