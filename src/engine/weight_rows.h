// Weights as float32, however they are stored: what the forward pass and the quantizers read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/kernel_table.h"
#include "model/weights.h"

namespace wring::engine {

/// Errors: kNotSupported, naming file and tensor, for a type that cannot be made float32.
void require_dequantize(const model::Weight& weight);

/// out[i · stride + c], c < columns: rows `first` … `first + count − 1` in our order. Precondition:
/// require_dequantize(weight) passed.
void read_rows(const model::Weight& weight, std::int64_t first, std::int64_t count, float* out,
               std::size_t stride, const kernels::KernelTable& table) noexcept;

/// One of them.
void read_row(const model::Weight& weight, std::int64_t row, float* out,
              const kernels::KernelTable& table) noexcept;

/// The first row of a weight: norms and biases. Errors: as require_dequantize.
std::vector<float> read_vector(const model::Weight& weight, const kernels::KernelTable& table);

/// All rows, one after the other. Errors: as require_dequantize.
std::vector<float> read_matrix(const model::Weight& weight, const kernels::KernelTable& table);

}  // namespace wring::engine
