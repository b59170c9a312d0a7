#include "quantize/tensor_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "engine/weight_rows.h"
#include "kernels/kernel_table.h"
#include "quantize/block_quantizer.h"

namespace wring::quantize {
namespace {

using model::Weight;

/// Rows that a thread takes at a time: enough weights to be worth the hand-over.
std::size_t row_grain(std::size_t columns) {
  return std::max<std::size_t>(1, 16384 / std::max<std::size_t>(columns, 1));
}

std::size_t to_size(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

/// A row of the weight in our order; of a rotary vector, its elements.
void read_row(const model::Model& model, const PlannedTensor& planned, const Weight& weight, std::size_t row,
              float* out) {
  const std::size_t columns = to_size(weight.columns);
  engine::read_row(weight, static_cast<std::int64_t>(row), out, kernels::kernels());
  if (planned.role != TensorRole::kVector || planned.rotary_head_dim == 0 || model.gguf() == nullptr) return;
  const std::vector<float> stored(out, out + columns);
  for (std::size_t i = 0; i < columns; ++i) {
    out[i] = stored[to_size(model::paired_row(static_cast<std::int64_t>(i), planned.rotary_head_dim))];
  }
}

/// The bits of the largest magnitude; those of NaN and the infinities are above all others.
std::uint32_t largest_magnitude_bits(const float* x, std::size_t n) {
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto bits = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(x[i]) & 0x7FFFFFFFU);
    largest = bits > largest ? bits : largest;
  }
  return static_cast<std::uint32_t>(largest);
}

constexpr std::uint32_t kInfinityBits = 0x7F800000U;

[[noreturn]] void refuse_not_finite(const Weight& weight, std::size_t row, std::span<const float> values) {
  std::size_t column = 0;
  while (std::isfinite(values[column])) ++column;
  std::string at =
      weight.rows > 1 ? fmt::format("row {}, column {}", row, column) : fmt::format("index {}", column);
  const std::uint32_t block_size = weight.coded ? 1 : formats::info_of(weight.type()).block_size;
  if (block_size > 1) at += fmt::format(" (block {})", (row * values.size() + column) / block_size);
  throw Error(ErrorCode::kBadInput, fmt::format("{} at {}: a weight must be finite", values[column], at),
              fmt::format("{}, tensor {}", weight.tensor->file, weight.tensor->name));
}

float largest_magnitude_of(const model::Model& model, const PlannedTensor& planned, ThreadPool& pool) {
  const Weight& weight = model.weight(planned.name);
  engine::require_dequantize(weight);
  const std::size_t rows = to_size(weight.rows), columns = to_size(weight.columns);
  std::vector<std::uint32_t> by_row(rows);
  std::vector<std::vector<float>> buffers(to_size(pool.threads()), std::vector<float>(columns));
  pool.for_pieces(rows, row_grain(columns), [&](std::size_t begin, std::size_t end, int worker) {
    float* values = buffers[to_size(worker)].data();
    for (std::size_t r = begin; r < end; ++r) {
      read_row(model, planned, weight, r, values);
      by_row[r] = largest_magnitude_bits(values, columns);
    }
  });
  const auto bad = std::ranges::find_if(by_row, [](std::uint32_t bits) { return bits >= kInfinityBits; });
  if (bad != by_row.end()) {
    const auto row = static_cast<std::size_t>(bad - by_row.begin());
    read_row(model, planned, weight, row, buffers[0].data());
    refuse_not_finite(weight, row, buffers[0]);
  }
  return std::bit_cast<float>(*std::ranges::max_element(by_row));
}

/// Squares of a row and of its errors, plain and weighted.
struct Squares {
  double x = 0, error = 0, weighted_x = 0, weighted_error = 0;

  Squares& operator+=(const Squares& o) {
    x += o.x;
    error += o.error;
    weighted_x += o.weighted_x;
    weighted_error += o.weighted_error;
    return *this;
  }
};

Squares squares_of(std::span<const float> x, const float* back, std::span<const float> importance) {
  Squares s;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = x[i], e = v - static_cast<double>(back[i]);
    s.x += v * v;
    s.error += e * e;
    if (importance.empty()) continue;
    const double w = importance[i];
    s.weighted_x += w * v * v;
    s.weighted_error += w * e * e;
  }
  return s;
}

double ratio(double error, double x) {
  return x > 0 ? std::sqrt(error / x) : 0.0;
}

}  // namespace

std::vector<float> largest_magnitudes(const model::Model& model, const QuantPlan& plan, ThreadPool& pool,
                                      ProgressSink& progress) {
  std::vector<float> largest;
  for (const PlannedTensor& planned : plan.tensors) {
    progress.throw_if_cancelled();
    progress.update("checking weights", largest.size(), plan.tensors.size(), "tensors");
    largest.push_back(largest_magnitude_of(model, planned, pool));
  }
  progress.update("checking weights", largest.size(), plan.tensors.size(), "tensors");
  return largest;
}

TensorReport stream_tensor(const model::Model& model, const PlannedTensor& planned,
                           std::span<const float> importance, bool gguf_form, ThreadPool& pool,
                           const ByteSink& sink, ProgressSink& progress) {
  const Weight& weight = model.weight(planned.name);
  engine::require_dequantize(weight);
  const std::size_t rows = to_size(weight.rows), columns = to_size(weight.columns);
  const RowQuantizer quantizer(planned.used, columns, importance);
  const bool reorder = gguf_form && planned.rotary_head_dim > 0;
  const bool vector = planned.role == TensorRole::kVector;

  // Whole heads a chunk, so that the rows of a head stay in one.
  const std::size_t unit = reorder && !vector ? to_size(planned.rotary_head_dim) : 1;
  const std::size_t chunk_rows = std::max<std::size_t>(unit, kChunkWeights / columns / unit * unit);
  std::vector<std::byte> chunk(std::min(chunk_rows, rows) * quantizer.row_bytes());
  std::vector<Squares> squares(std::min(chunk_rows, rows));
  struct Buffers {
    std::vector<float> x, back;
  };
  std::vector<Buffers> buffers(to_size(pool.threads()),
                               {std::vector<float>(columns), std::vector<float>(columns)});

  Squares total;
  for (std::size_t first = 0; first < rows; first += chunk_rows) {
    progress.throw_if_cancelled();
    const std::size_t count = std::min(chunk_rows, rows - first);
    pool.for_pieces(count, row_grain(columns), [&](std::size_t begin, std::size_t end, int worker) {
      auto& [x, back] = buffers[to_size(worker)];
      for (std::size_t i = begin; i < end; ++i) {
        read_row(model, planned, weight, first + i, x.data());
        if (gguf_form && planned.added_in_gguf != 0) {
          for (float& value : x) value += planned.added_in_gguf;
        }
        if (reorder && vector) {
          for (std::size_t j = 0; j < columns; ++j) {
            back[to_size(model::paired_row(static_cast<std::int64_t>(j), planned.rotary_head_dim))] = x[j];
          }
          x.swap(back);
        }
        const std::size_t place =
            reorder && !vector
                ? to_size(model::paired_row(static_cast<std::int64_t>(i), planned.rotary_head_dim))
                : i;
        std::byte* out = chunk.data() + place * quantizer.row_bytes();
        quantizer.quantize(x.data(), out);
        kernels::kernels().dequantize(planned.used, out, back.data(), columns);
        squares[i] = squares_of(x, back.data(), importance);
      }
    });
    for (std::size_t i = 0; i < count; ++i) total += squares[i];
    sink({chunk.data(), count * quantizer.row_bytes()});
  }
  TensorReport report{planned, total.x, ratio(total.error, total.x), std::nullopt};
  if (!importance.empty()) report.weighted_error = ratio(total.weighted_error, total.weighted_x);
  return report;
}

double block_matrix_error(const std::vector<TensorReport>& tensors) {
  double error = 0, all = 0;
  for (const TensorReport& t : tensors) {
    if (t.planned.role != TensorRole::kBlockMatrix) continue;
    error += t.relative_error * t.relative_error * t.square_sum;
    all += t.square_sum;
  }
  return all > 0 ? std::sqrt(error / all) : 0;
}

std::optional<double> block_matrix_weighted_error(const std::vector<TensorReport>& tensors) {
  double squares = 0;
  int count = 0;
  for (const TensorReport& t : tensors) {
    if (t.planned.role != TensorRole::kBlockMatrix || !t.weighted_error) continue;
    squares += *t.weighted_error * *t.weighted_error;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return std::sqrt(squares / count);
}

}  // namespace wring::quantize
