// GPTQ (Frantar et al. 2022): a matrix is rounded column by column, and what a column loses is taken up by
// those that are not rounded yet, as the inverse Hessian says. Here the grid is fixed beforehand, so any
// order of the columns is allowed, and any format.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "quantize/inverse_factor.h"
#include "quantize/matrix_grid.h"

namespace wring::quantize {

/// The codes (rows, columns) of `weights` (rows, columns). Dead columns count as zeros. Depends on the values
/// alone, not on threads or CPU.
std::vector<std::uint8_t> round_with_feedback(std::span<const float> weights, const MatrixGrid& grid,
                                              const InverseFactor& factor, ThreadPool& pool);

/// The values of codes on a grid: (rows, columns).
std::vector<float> values_of(const MatrixGrid& grid, std::span<const std::uint8_t> codes);

/// tr((W − Ŵ) H (W − Ŵ)ᵀ) / tr(W H Wᵀ): the share of the outputs' energy that is lost over H's tokens.
/// `columns` as in factor_inverse().
double output_error(std::span<const float> weights, std::span<const float> rounded, const Hessian& hessian,
                    const std::vector<std::int64_t>& columns, ThreadPool& pool);

}  // namespace wring::quantize
