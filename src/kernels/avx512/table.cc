// The AVX-512 level: the shared templates over sixteen lanes. Compiled with -mavx512f -mavx512bw -mavx512dq
// -mavx512vl.
#include "kernels/vector/table.h"
#include "kernels/avx512/vec.h"

namespace wring::kernels::avx512 {

const KernelTable& table(bool vnni) {
  static constexpr KernelTable kTable =
      vector::make_table<Vec>(Isa::kAvx512, {quantize_row, packed_matmul, byte_loop});
  // Skylake-X: no product of bytes into 32 bits.
  static constexpr KernelTable kWithoutVnni =
      vector::make_table<Vec>(Isa::kAvx512, {avx2::quantize_row, avx2::packed_matmul, avx2::byte_loop});
  return vnni ? kTable : kWithoutVnni;
}

}  // namespace wring::kernels::avx512
