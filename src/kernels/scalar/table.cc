// The scalar level's table.
#include "kernels/levels.h"
#include "kernels/scalar/scalar_kernels.h"

namespace wring::kernels::scalar {

const KernelTable& table() {
  static constexpr KernelTable kTable = {
      .isa = Isa::kScalar,
      .dequantize = dequantize,
      .tile_height = 1,
      .tile_width = 1,
      .tile_rows = tile,
      .tile_tokens = tile,
      .matmul = matmul,
      .matvec = matvec,
      .quantize_row = quantize_row,
      .packed_matmul = packed_matmul,
      .bf16 = nullptr,
      .rms_norm = rms_norm,
      .layer_norm = layer_norm,
      .add = add,
      .scale = scale,
      .silu_mul = silu_mul,
      .silu = silu,
      .gelu_tanh_mul = gelu_tanh_mul,
      .gelu_tanh = gelu_tanh,
      .clamped_swiglu = clamped_swiglu,
      .exp = exp,
      .softcap = softcap,
      .rope_half = rope_half,
      .rope_pairs = rope_pairs,
      .attention = attention,
      .delta_rule = delta_rule,
      .sigmoid_mul = sigmoid_mul,
      .store_kv = store_kv,
      .log_sum_exp = log_sum_exp,
      .fma_loop = fma_loop,
      .byte_loop = byte_loop,
      .read_loop = read_loop,
  };
  return kTable;
}

}  // namespace wring::kernels::scalar
