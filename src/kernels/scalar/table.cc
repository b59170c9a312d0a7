// The scalar level's table.
#include "kernels/levels.h"
#include "kernels/scalar/scalar_kernels.h"

namespace wring::kernels::scalar {

const KernelTable& table() {
  static constexpr KernelTable kTable = {
      .isa = Isa::kScalar,
      .dequantize = dequantize,
      .row_tile = 1,
      .token_tile = 1,
      .pack_rows = pack,
      .pack_tokens = pack,
      .matmul = matmul,
      .matvec = matvec,
      .rms_norm = rms_norm,
      .add = add,
      .silu_mul = silu_mul,
      .exp = exp,
      .softcap = softcap,
      .rope_half = rope_half,
      .rope_pairs = rope_pairs,
      .attention = attention,
      .store_kv = store_kv,
      .log_sum_exp = log_sum_exp,
      .fma_loop = fma_loop,
  };
  return kTable;
}

}  // namespace wring::kernels::scalar
