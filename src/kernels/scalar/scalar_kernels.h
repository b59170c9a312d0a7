// The functions of the scalar table (levels.h declares those that other levels call too).
#pragma once

#include <cstddef>

#include "kernels/kernel_table.h"

namespace wring::kernels::scalar {

void tile(const float* from, std::size_t stride, std::size_t count, std::size_t k, float* to);
void matmul(const float* tiled_w, std::size_t rows, const float* tiled_x, std::size_t tokens, std::size_t k,
            float* y, std::size_t y_stride);
void matvec(formats::QuantType type, const void* w, std::size_t row_bytes, std::size_t rows, const float* x,
            std::size_t k, float* y);
void quantize_row(const float* x, const QuantizedRows& out, std::size_t token);
void packed_matmul(formats::QuantType type, const std::byte* groups, std::size_t rows, const QuantizedRows& x,
                   std::size_t tokens, float* y, std::size_t y_stride);
void rms_norm(const float* x, const float* weight, float weight_offset, std::size_t n, float eps, float* y);
void layer_norm(const float* x, const float* weight, const float* bias, std::size_t n, float eps, float* y);
void add(float* x, const float* y, std::size_t n);
void scale(float* x, std::size_t n, float factor);
void sigmoid_mul(float* x, const float* gate, std::size_t n);
void delta_rule(const DeltaRuleArgs& args);
void silu(float* x, std::size_t n);
void silu_mul(float* gate, const float* up, std::size_t n);
void gelu_tanh_mul(float* gate, const float* up, std::size_t n);
void gelu_tanh(float* x, std::size_t n);
void clamped_swiglu(float* gate, const float* up, std::size_t n, float alpha, float limit);
void exp(float* x, std::size_t n);
void softcap(float* x, std::size_t n, float cap);
void rope_half(float* x, const float* cosine, const float* sine, std::size_t half);
void rope_pairs(float* x, const float* cosine, const float* sine, std::size_t half);
void attention(const AttentionArgs& args);
double log_sum_exp(const float* x, std::size_t n);
std::size_t fma_loop(std::size_t rounds, float* sink);
std::size_t byte_loop(std::size_t rounds, std::int32_t* sink);
float read_loop(const float* x, std::size_t n);

}  // namespace wring::kernels::scalar
