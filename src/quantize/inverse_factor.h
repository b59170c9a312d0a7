// The factor that error feedback walks along: H⁻¹ = Uᵀ U with U upper triangular, in an order of the columns.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "quantize/hessian.h"

namespace wring::quantize {

enum class ColumnOrder : std::uint8_t {
  kAsStored,
  kFalling,  // by the diagonal of H, largest first: what matters most is rounded while errors can still move
             // on
};

struct InverseFactor {
  std::vector<std::int32_t> order;  // position → column
  std::vector<float> upper;         // (size, size), row i from its diagonal on; in that order
  std::vector<bool> dead;           // by column: no input ever reached it
  double damping = 0;               // of the mean of the diagonal, added to the diagonal
};

/// `damping`: λ = damping · mean(diag H) is added to the diagonal; where H is not positive definite with it,
/// ten times that, at most five times (docs/METHODS.md). Nothing: never. Dead columns get a unit diagonal.
/// `columns`: column c of the matrix is column columns[c] of H; empty: the same.
std::optional<InverseFactor> factor_inverse(const Hessian& hessian, const std::vector<std::int64_t>& columns,
                                            double damping, ColumnOrder order);

}  // namespace wring::quantize
