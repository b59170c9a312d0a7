// Chooses the table of kernels, and answers what does not depend on the level.
#include <cstddef>

#include "kernels/kernel_table.h"
#include "kernels/levels.h"

namespace wring::kernels {

const KernelTable& kernels_for(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      break;
    case Isa::kAvx2:
      return avx2::table();
    case Isa::kAvx512: {
      static const KernelTable table = [] {
        KernelTable t = avx512::table(cpu_info().avx512_vnni);
        if (cpu_info().bf16_dots_pay) t.bf16 = &avx512::bf16_dots();
        return t;
      }();
      return table;
    }
  }
  return scalar::table();
}

const KernelTable& kernels() {
  static const KernelTable& chosen = kernels_for(choose_isa());
  return chosen;
}

std::size_t attention_scratch_floats(int queries, int group, int head_dim, int value_dim) {
  const std::size_t all = static_cast<std::size_t>(queries) * static_cast<std::size_t>(group);
  const std::size_t rows = all < kAttentionRows ? all : kAttentionRows;
  const auto widest = static_cast<std::size_t>(head_dim > value_dim ? head_dim : value_dim);
  return rows * attention_row_floats(value_dim) + kPageTokens * widest;
}

}  // namespace wring::kernels
