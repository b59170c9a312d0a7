// What the CPU levels share inside this room: their tables, and the plain functions of scalar/ that the
// vector levels call where vectors would not pay (rare weight types, one logarithm a row).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"

namespace wring::kernels {

/// Rows (one query of one head each) whose scores attention keeps at a time, in the vector levels.
inline constexpr int kAttentionRows = 48;

/// Floats from one such row to the next in the scratch: its scores, its block's and its merged output. A page
/// as floats follows the last row.
constexpr std::size_t attention_row_floats(int value_dim) {
  return kAttentionBlockTokens + 2 * ((static_cast<std::size_t>(value_dim) + 15) / 16 * 16);
}

/// Of the tanh form of GELU (Hendrycks and Gimpel 2016): √(2/π), and the factor of the cube.
inline constexpr float kGeluSlope = 0.79788456F;
inline constexpr float kGeluCubic = 0.044715F;

namespace scalar {

const KernelTable& table();

void dequantize(formats::QuantType type, const void* src, float* dst, std::size_t n);
void store_kv(formats::QuantType type, const float* k, const float* v, int head_dim, int value_dim, int slot,
              void* k_page, void* v_page);

/// max + ln(sum): the last step of log_sum_exp.
double add_log(float max, double sum);

}  // namespace scalar

namespace avx2 {
const KernelTable& table();

void quantize_row(const float* x, const QuantizedRows& out, std::size_t token);
void packed_matmul(formats::QuantType type, const std::byte* groups, std::size_t rows, const QuantizedRows& x,
                   std::size_t tokens, float* y, std::size_t y_stride);
std::size_t byte_loop(std::size_t rounds, std::int32_t* sink);

}  // namespace avx2

namespace avx512 {
/// vnni: whether the CPU has it; packed mode is avx2's where it lacks it.
const KernelTable& table(bool vnni);

void quantize_row(const float* x, const QuantizedRows& out, std::size_t token);
void packed_matmul(formats::QuantType type, const std::byte* groups, std::size_t rows, const QuantizedRows& x,
                   std::size_t tokens, float* y, std::size_t y_stride);
std::size_t byte_loop(std::size_t rounds, std::int32_t* sink);

/// For CPUs with AVX512_BF16.
const Bf16Dots& bf16_dots();

}  // namespace avx512

}  // namespace wring::kernels
