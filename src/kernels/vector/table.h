// A level's table, from its vector class V.
#pragma once

#include "kernels/levels.h"
#include "kernels/vector/attention.h"
#include "kernels/vector/dequantize.h"
#include "kernels/vector/elementwise.h"
#include "kernels/vector/matmul.h"

namespace wring::kernels::vector {

template <class V>
constexpr KernelTable make_table(Isa isa) {
  return {
      .isa = isa,
      .dequantize = Dequantize<V>::run,
      .row_tile = Matmul<V>::kRows,
      .token_tile = Matmul<V>::kTokens,
      .pack_rows = Matmul<V>::pack_rows,
      .pack_tokens = Matmul<V>::pack_tokens,
      .matmul = Matmul<V>::run,
      .matvec = Matmul<V>::matvec,
      .rms_norm = Elementwise<V>::rms_norm,
      .add = Elementwise<V>::add,
      .silu_mul = Elementwise<V>::silu_mul,
      .exp = Elementwise<V>::exp,
      .softcap = Elementwise<V>::softcap,
      .rope_half = Elementwise<V>::rope_half,
      .rope_pairs = Elementwise<V>::rope_pairs,
      .attention = Attention<V>::run,
      .store_kv = scalar::store_kv,
      .log_sum_exp = Elementwise<V>::log_sum_exp,
      .fma_loop = Elementwise<V>::fma_loop,
  };
}

}  // namespace wring::kernels::vector
