#include "engine/weight_rows.h"

#include <fmt/format.h>

#include "base/error.h"
#include "kernels/coded_rows.h"

namespace wring::engine {

void require_dequantize(const model::Weight& weight) {
  if (weight.coded || kernels::has_dequantize(weight.type())) return;
  throw Error(ErrorCode::kNotSupported,
              fmt::format("type {} cannot be computed with", formats::name_of(weight.type())),
              fmt::format("{}, tensor {}", weight.tensor->file, weight.tensor->name));
}

void read_rows(const model::Weight& weight, std::int64_t first, std::int64_t count, float* out,
               std::size_t stride, const kernels::KernelTable& table) noexcept {
  if (weight.coded) return kernels::read_coded_rows(*weight.coded, first, count, weight.columns, out, stride);
  for (std::int64_t i = 0; i < count; ++i) {
    table.dequantize(weight.type(), weight.row_data(first + i), out + static_cast<std::size_t>(i) * stride,
                     static_cast<std::size_t>(weight.columns));
  }
}

void read_row(const model::Weight& weight, std::int64_t row, float* out,
              const kernels::KernelTable& table) noexcept {
  read_rows(weight, row, 1, out, 0, table);
}

std::vector<float> read_vector(const model::Weight& weight, const kernels::KernelTable& table) {
  require_dequantize(weight);
  std::vector<float> values(static_cast<std::size_t>(weight.columns));
  read_row(weight, 0, values.data(), table);
  return values;
}

std::vector<float> read_matrix(const model::Weight& weight, const kernels::KernelTable& table) {
  require_dequantize(weight);
  std::vector<float> values(weight.elements());
  read_rows(weight, 0, weight.rows, values.data(), static_cast<std::size_t>(weight.columns), table);
  return values;
}

}  // namespace wring::engine
