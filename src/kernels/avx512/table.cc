// The AVX-512 level: the shared templates over sixteen lanes. Compiled with -mavx512f -mavx512bw -mavx512dq
// -mavx512vl.
#include "kernels/vector/table.h"
#include "kernels/avx512/vec.h"

namespace wring::kernels::avx512 {

const KernelTable& table() {
  static constexpr KernelTable kTable =
      vector::make_table<Vec>(Isa::kAvx512, {avx2::quantize_row, avx2::packed_matmul, avx2::byte_loop});
  return kTable;
}

}  // namespace wring::kernels::avx512
