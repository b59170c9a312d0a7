#include "quantize/error_feedback.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "quantize/lanes.h"

namespace wring::quantize {
namespace {

constexpr std::size_t kRowsAtOnce = 8;  // share each row of the factor while it is in the first-level cache

/// The code whose level is nearest to x: levels rise.
std::uint8_t nearest_code(const std::vector<float>& levels, float x) {
  const bool uniform = levels.size() > 16 || levels[1] - levels[0] == levels[2] - levels[1];
  if (uniform) {
    const float code =
        round_to_even(std::clamp(x - levels.front(), 0.0F, static_cast<float>(levels.size() - 1)));
    return static_cast<std::uint8_t>(code);
  }
  std::size_t code = 0;
  for (std::size_t i = 0; i + 1 < levels.size(); ++i) code += x > 0.5F * (levels[i] + levels[i + 1]) ? 1 : 0;
  return static_cast<std::uint8_t>(code);
}

/// row[k] −= error · factor[k], k in [begin, end).
void take_off(float* row, const float* factor, float error, std::size_t begin, std::size_t end) {
  std::size_t k = begin;
  const Lanes e = all_lanes(error);
  for (; k + kLaneCount <= end; k += kLaneCount)
    store_lanes(row + k, load_lanes(row + k) - e * load_lanes(factor + k));
  for (; k < end; ++k) row[k] -= error * factor[k];
}

}  // namespace

std::vector<std::uint8_t> round_with_feedback(std::span<const float> weights, const MatrixGrid& grid,
                                              const InverseFactor& f, ThreadPool& pool) {
  const std::size_t n = grid.columns, groups = n / grid.group;
  std::vector<std::uint8_t> codes(grid.rows * n);
  pool.for_pieces((grid.rows + kRowsAtOnce - 1) / kRowsAtOnce, 1, [&](std::size_t piece, std::size_t, int) {
    const std::size_t first = piece * kRowsAtOnce, count = std::min(kRowsAtOnce, grid.rows - first);
    std::array<std::vector<float>, kRowsAtOnce> rows;
    for (std::size_t r = 0; r < count; ++r) {
      rows[r].resize(n);
      for (std::size_t i = 0; i < n; ++i) {
        const auto column = static_cast<std::size_t>(f.order[i]);
        rows[r][i] = f.dead[column] ? 0.0F : weights[(first + r) * n + column];
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      const auto column = static_cast<std::size_t>(f.order[i]);
      const float* factor = f.upper.data() + i * n;
      for (std::size_t r = 0; r < count; ++r) {
        const std::size_t g = (first + r) * groups + column / grid.group;
        const float w = rows[r][i], scale = grid.scales[g], offset = grid.offsets[g];
        const std::uint8_t code = nearest_code(grid.levels, scale == 0 ? 0.0F : (w + offset) / scale);
        codes[(first + r) * n + column] = code;
        const float error = (w - (scale * grid.levels[code] - offset)) / factor[i];
        take_off(rows[r].data(), factor, error, i + 1, n);
      }
    }
  });
  return codes;
}

std::vector<float> values_of(const MatrixGrid& grid, std::span<const std::uint8_t> codes) {
  std::vector<float> values(codes.size());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::size_t g = i / grid.group;
    values[i] = grid.scales[g] * grid.levels[codes[i]] - grid.offsets[g];
  }
  return values;
}

double output_error(std::span<const float> weights, std::span<const float> rounded, const Hessian& h,
                    const std::vector<std::int64_t>& columns, ThreadPool& pool) {
  const std::size_t n = h.size, rows = weights.size() / n;
  struct Energy {
    double lost = 0, all = 0;
  };
  std::vector<Energy> by_row(rows);
  pool.for_pieces(rows, 1, [&](std::size_t r, std::size_t, int) {
    std::vector<double> w(n), d(n);
    for (std::size_t c = 0; c < n; ++c) {
      const std::size_t at = columns.empty() ? c : static_cast<std::size_t>(columns[c]);
      w[at] = weights[r * n + c];
      d[at] = w[at] - static_cast<double>(rounded[r * n + c]);
    }
    Energy& e = by_row[r];
    for (std::size_t i = 0; i < n; ++i) {
      double hw = 0, hd = 0;
      const double* row = h.lower.data() + i * n;
      for (std::size_t j = 0; j < i; ++j) {
        hw += row[j] * w[j];
        hd += row[j] * d[j];
      }
      e.all += w[i] * (2 * hw + row[i] * w[i]);
      e.lost += d[i] * (2 * hd + row[i] * d[i]);
    }
  });
  Energy total;
  for (const Energy& e : by_row) {
    total.lost += e.lost;
    total.all += e.all;
  }
  return total.all > 0 ? total.lost / total.all : 0;
}

}  // namespace wring::quantize
