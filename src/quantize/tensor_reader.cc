#include "quantize/tensor_reader.h"

#include <algorithm>
#include <cmath>

#include "base/portable_math.h"
#include "engine/weight_rows.h"
#include "kernels/kernel_table.h"

namespace wring::quantize {

TensorReader::TensorReader(const model::Model& model, const PlannedTensor& planned)
    : model_(&model), planned_(&planned) {
  std::int64_t end = 0;
  for (const std::string& name : planned.weights) {
    const model::Weight& weight = model.weight(name);
    engine::require_dequantize(weight);
    end += weight.rows;
    weights_.push_back(&weight);
    ends_.push_back(end);
  }
}

void TensorReader::read_weight_row(std::int64_t row, float* out) const {
  const auto found = std::ranges::upper_bound(ends_, row) - ends_.begin();
  const model::Weight& weight = *weights_[static_cast<std::size_t>(found)];
  const std::int64_t first = ends_[static_cast<std::size_t>(found)] - weight.rows;
  engine::read_row(weight, row - first, out, kernels::kernels());
}

void TensorReader::prepare(std::size_t first, std::size_t count, ThreadPool& pool) {
  if (planned_->transposed_rows == 0) return;
  const auto columns = static_cast<std::size_t>(planned_->columns),
             matrix_rows = static_cast<std::size_t>(planned_->rows / planned_->matrices());
  first_ = first;
  transposed_.resize(count * columns);
  std::vector<std::vector<float>> buffers(static_cast<std::size_t>(pool.threads()),
                                          std::vector<float>(matrix_rows));
  for (std::size_t begin = first; begin < first + count;) {
    const std::size_t matrix = begin / matrix_rows, top = matrix * matrix_rows,
                      end = std::min(first + count, top + matrix_rows);
    pool.for_pieces(columns, 1, [&](std::size_t from, std::size_t to, int worker) {
      std::vector<float>& weight_row = buffers[static_cast<std::size_t>(worker)];
      for (std::size_t c = from; c < to; ++c) {
        const std::size_t row = matrix * static_cast<std::size_t>(planned_->transposed_rows) + c;
        read_weight_row(
            planned_->row_order.empty() ? static_cast<std::int64_t>(row) : planned_->row_order[row],
            weight_row.data());
        for (std::size_t r = begin; r < end; ++r)
          transposed_[(r - first) * columns + c] = weight_row[r - top];
      }
    });
    begin = end;
  }
}

void TensorReader::read(std::size_t row, float* out, std::vector<float>& scratch) const {
  const PlannedTensor& p = *planned_;
  const auto columns = static_cast<std::size_t>(p.columns);
  if (p.transposed_rows > 0) {
    std::copy_n(transposed_.data() + (row - first_) * columns, columns, out);
    return;
  }
  if (p.role == TensorRole::kVector && p.side_by_side > 1) {
    const std::size_t parts = static_cast<std::size_t>(p.side_by_side);
    float* at = out;
    for (std::size_t i = row * parts; i < (row + 1) * parts; ++i) {
      engine::read_row(*weights_[i], 0, at, kernels::kernels());
      at += weights_[i]->columns;
    }
  } else {
    read_weight_row(p.row_order.empty() ? static_cast<std::int64_t>(row) : p.row_order[row], out);
  }
  const auto to_scratch = [&] { scratch.assign(out, out + columns); };
  if (p.rotary_head_dim > 0 && model_->gguf() != nullptr) {
    to_scratch();
    for (std::size_t c = 0; c < columns; ++c) {
      const std::int64_t place = model::paired_row(static_cast<std::int64_t>(c), p.rotary_head_dim);
      out[c] = scratch[static_cast<std::size_t>(place)];
    }
  }
  if (!p.column_order.empty()) {
    to_scratch();
    for (std::size_t c = 0; c < columns; ++c) out[c] = scratch[static_cast<std::size_t>(p.column_order[c])];
  }
  if (p.added != 0) {
    for (std::size_t c = 0; c < columns; ++c) out[c] += p.added;
  }
  if (p.negative_exponential) {
    for (std::size_t c = 0; c < columns; ++c)
      out[c] = -static_cast<float>(portable_exp(static_cast<double>(out[c])));
  }
}

}  // namespace wring::quantize
