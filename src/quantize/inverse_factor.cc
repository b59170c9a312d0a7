// Let J reverse the order of columns and J H J = L Lᵀ. Then H = R Rᵀ with R = J L J upper triangular, hence
// H⁻¹ = R⁻ᵀ R⁻¹ and U = R⁻¹: one Cholesky factorization and one triangular inverse.
#include "quantize/inverse_factor.h"

#include <cblas.h>
#include <lapacke.h>

#include <algorithm>
#include <numeric>

namespace wring::quantize {
namespace {

constexpr int kTries = 6;

/// H with λ on the diagonal, both orders applied, reversed: row-major lower triangle.
std::vector<double> reversed(const Hessian& h, const std::vector<std::int64_t>& columns,
                             const InverseFactor& f, double lambda) {
  const std::size_t n = h.size;
  const auto source = [&](std::size_t position) {
    const auto column = static_cast<std::size_t>(f.order[n - 1 - position]);
    return columns.empty() ? column : static_cast<std::size_t>(columns[column]);
  };
  std::vector<double> a(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) a[i * n + j] = h.at(source(i), source(j));
    const bool dead = f.dead[static_cast<std::size_t>(f.order[n - 1 - i])];
    a[i * n + i] = dead ? 1.0 : a[i * n + i] + lambda;
  }
  return a;
}

}  // namespace

std::optional<InverseFactor> factor_inverse(const Hessian& h, const std::vector<std::int64_t>& columns,
                                            double damping, ColumnOrder order) {
  const std::size_t n = h.size;
  InverseFactor f;
  std::vector<double> diagonal(n);
  double mean = 0;
  for (std::size_t c = 0; c < n; ++c) {
    const std::size_t source = columns.empty() ? c : static_cast<std::size_t>(columns[c]);
    diagonal[c] = h.at(source, source);
    mean += diagonal[c] / static_cast<double>(n);
    f.dead.push_back(!(diagonal[c] > 0));
  }
  f.order.resize(n);
  std::iota(f.order.begin(), f.order.end(), 0);
  if (order == ColumnOrder::kFalling) {
    std::ranges::stable_sort(f.order, [&](std::int32_t a, std::int32_t b) {
      return diagonal[static_cast<std::size_t>(a)] > diagonal[static_cast<std::size_t>(b)];
    });
  }
  openblas_set_num_threads(1);  // its sums depend on how many there are
  f.damping = damping;
  for (int attempt = 0; attempt < kTries; ++attempt, f.damping *= 10) {
    std::vector<double> a = reversed(h, columns, f, f.damping * mean);
    const auto size = static_cast<lapack_int>(n);
    if (LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', size, a.data(), size) != 0) continue;
    if (LAPACKE_dtrtri(LAPACK_ROW_MAJOR, 'L', 'N', size, a.data(), size) != 0) continue;
    f.upper.assign(n * n, 0.0F);  // U = J L⁻¹ J
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = i; j < n; ++j)
        f.upper[i * n + j] = static_cast<float>(a[(n - 1 - i) * n + (n - 1 - j)]);
    }
    return f;
  }
  return std::nullopt;
}

}  // namespace wring::quantize
