#include "quantize/tensor_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "engine/weight_rows.h"
#include "kernels/kernel_table.h"
#include "quantize/block_quantizer.h"
#include "quantize/tensor_reader.h"

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
  const bool whole = weight.coded || weight.data.size() == weight.tensor->data.size();
  throw Error(ErrorCode::kBadInput, fmt::format("{} at {}: a weight must be finite", values[column], at),
              fmt::format("{}, tensor {}{}", weight.tensor->file, weight.tensor->name,
                          whole ? "" : fmt::format(" ({})", weight.name)));
}

float largest_magnitude_of(const Weight& weight, ThreadPool& pool) {
  engine::require_dequantize(weight);
  const std::size_t rows = to_size(weight.rows), columns = to_size(weight.columns);
  std::vector<std::uint32_t> by_row(rows);
  std::vector<std::vector<float>> buffers(to_size(pool.threads()), std::vector<float>(columns));
  const auto read = [&](std::size_t row, float* out) {
    engine::read_row(weight, static_cast<std::int64_t>(row), out, kernels::kernels());
  };
  pool.for_pieces(rows, row_grain(columns), [&](std::size_t begin, std::size_t end, int worker) {
    float* values = buffers[to_size(worker)].data();
    for (std::size_t r = begin; r < end; ++r) {
      read(r, values);
      by_row[r] = largest_magnitude_bits(values, columns);
    }
  });
  const auto bad = std::ranges::find_if(by_row, [](std::uint32_t bits) { return bits >= kInfinityBits; });
  if (bad != by_row.end()) {
    const auto row = static_cast<std::size_t>(bad - by_row.begin());
    read(row, buffers[0].data());
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
    float magnitude = 0;
    for (const std::string& name : planned.weights)
      magnitude = std::max(magnitude, largest_magnitude_of(model.weight(name), pool));
    largest.push_back(magnitude);
  }
  progress.update("checking weights", largest.size(), plan.tensors.size(), "tensors");
  return largest;
}

TensorReport stream_tensor(const model::Model& model, const PlannedTensor& planned,
                           const TensorImportance& importance, ThreadPool& pool, const ByteSink& sink,
                           ProgressSink& progress) {
  TensorReader reader(model, planned);
  const std::size_t rows = to_size(planned.rows), columns = to_size(planned.columns),
                    matrix_rows = rows / to_size(planned.matrices());
  std::vector<RowQuantizer> quantizers;  // by matrix where there is importance, else one
  for (const std::span<const float> i : importance) quantizers.emplace_back(planned.used, columns, i);
  if (importance.empty()) quantizers.emplace_back(planned.used, columns);
  const std::size_t row_bytes = quantizers.front().row_bytes();

  const std::size_t chunk_rows = std::clamp<std::size_t>(kChunkWeights / columns, 1, rows);
  std::vector<std::byte> chunk(chunk_rows * row_bytes);
  std::vector<Squares> squares(chunk_rows);
  struct Buffers {
    std::vector<float> x, back, scratch;
  };
  std::vector<Buffers> buffers(to_size(pool.threads()),
                               {std::vector<float>(columns), std::vector<float>(columns), {}});

  Squares total;
  bool weighted = false;
  for (const std::span<const float> i : importance) weighted = weighted || !i.empty();
  for (std::size_t first = 0; first < rows; first += chunk_rows) {
    progress.throw_if_cancelled();
    const std::size_t count = std::min(chunk_rows, rows - first);
    reader.prepare(first, count, pool);
    pool.for_pieces(count, row_grain(columns), [&](std::size_t begin, std::size_t end, int worker) {
      auto& [x, back, scratch] = buffers[to_size(worker)];
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t matrix = importance.empty() ? 0 : (first + i) / matrix_rows;
        reader.read(first + i, x.data(), scratch);
        std::byte* out = chunk.data() + i * row_bytes;
        quantizers[matrix].quantize(x.data(), out);
        kernels::kernels().dequantize(planned.used, out, back.data(), columns);
        squares[i] =
            squares_of(x, back.data(), importance.empty() ? std::span<const float>() : importance[matrix]);
      }
    });
    for (std::size_t i = 0; i < count; ++i) total += squares[i];
    sink({chunk.data(), count * row_bytes});
  }
  if (!std::isfinite(total.x)) {
    throw Error(ErrorCode::kBadInput, "a value is not finite in the file's form",
                fmt::format("{}, {}", model.path().string(), planned.name));
  }
  TensorReport report{planned, total.x, ratio(total.error, total.x), std::nullopt};
  if (weighted) report.weighted_error = ratio(total.weighted_error, total.weighted_x);
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
