// Packed mode's AVX-512 kernels, their very source over SIMDe (simde/immintrin.h): it runs everywhere, as the
// hardware is rare where tests run. Built where libsimde-dev is installed.
#include <immintrin.h>

#define avx512 simde_avx512
#include "kernels/avx512/bf16.cc"    // NOLINT(bugprone-suspicious-include): its source is what is tested
#include "kernels/avx512/packed.cc"  // NOLINT(bugprone-suspicious-include)
#undef avx512

namespace wring::kernels {

const KernelTable& simde_packed() {
  static const KernelTable table = [] {
    KernelTable t = kernels_for(Isa::kScalar);
    t.quantize_row = simde_avx512::quantize_row;
    t.packed_matmul = simde_avx512::packed_matmul;
    t.bf16 = &simde_avx512::bf16_dots();
    return t;
  }();
  return table;
}

}  // namespace wring::kernels
