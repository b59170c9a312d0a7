// The AVX2 level: the shared templates over eight lanes. Compiled with -mavx2 -mfma -mf16c.
#include "kernels/vector/table.h"
#include "kernels/avx2/vec.h"

namespace wring::kernels::avx2 {

const KernelTable& table() {
  static constexpr KernelTable kTable =
      vector::make_table<Vec>(Isa::kAvx2, {quantize_row, packed_matmul, byte_loop});
  return kTable;
}

}  // namespace wring::kernels::avx2
