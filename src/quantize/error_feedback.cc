#include "quantize/error_feedback.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/aligned_buffer.h"
#include "kernels/kernel_table.h"
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
  const kernels::KernelTable& table = kernels::kernels();
  const std::size_t n = h.size, rows = weights.size() / n, tile = table.tile_width;
  const auto source = [&](std::size_t c) {
    return columns.empty() ? c : static_cast<std::size_t>(columns[c]);
  };
  AlignedBuffer<float> hessian(kernels::tiled_floats(n, table.tile_height, n));
  std::vector<float> whole(n * n);
  pool.for_pieces(n, 16, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) {
      for (std::size_t j = 0; j < n; ++j) whole[i * n + j] = static_cast<float>(h.at(source(i), source(j)));
    }
  });
  table.tile_rows(whole.data(), n, n, n, hessian.data());
  struct Energy {
    double lost = 0, all = 0;
  };
  std::vector<Energy> by_piece((rows + tile - 1) / tile);
  pool.for_pieces(by_piece.size(), 1, [&](std::size_t piece, std::size_t, int) {
    const std::size_t first = piece * tile, count = std::min(tile, rows - first);
    std::vector<float> differences(weights.begin() + static_cast<std::ptrdiff_t>(first * n),
                                   weights.begin() + static_cast<std::ptrdiff_t>((first + count) * n));
    AlignedBuffer<float> tiled(kernels::tiled_floats(count, tile, n));
    std::vector<float> product(count * n);
    const auto energy = [&] {
      table.tile_tokens(differences.data(), n, count, n, tiled.data());
      table.matmul(hessian.data(), n, tiled.data(), count, n, product.data(), n);
      double sum = 0;
      for (std::size_t i = 0; i < product.size(); ++i)
        sum += static_cast<double>(differences[i]) * static_cast<double>(product[i]);
      return sum;
    };
    by_piece[piece].all = energy();
    for (std::size_t i = 0; i < differences.size(); ++i) differences[i] -= rounded[first * n + i];
    by_piece[piece].lost = energy();
  });
  Energy total;
  for (const Energy& e : by_piece) {
    total.lost += e.lost;
    total.all += e.all;
  }
  return total.all > 0 ? std::max(0.0, total.lost / total.all) : 0;
}

}  // namespace wring::quantize
