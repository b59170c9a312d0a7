// The reference of everything but attention and weight types: matrix products, norm, activation, rotary,
// log-sum-exp.
#include <algorithm>
#include <cmath>

#include "base/portable_math.h"
#include "kernels/levels.h"
#include "kernels/scalar/scalar_kernels.h"
#include "kernels/scalar/scalar_math.h"

namespace wring::kernels::scalar {

void tile(const float* from, std::size_t stride, std::size_t count, std::size_t k, float* to) {
  for (std::size_t i = 0; i < count; ++i) std::copy_n(from + i * stride, k, to + tiled_floats(i, 1, k));
}

void matmul(const float* tiled_w, std::size_t rows, const float* tiled_x, std::size_t tokens, std::size_t k,
            float* y, std::size_t y_stride) {
  const std::size_t stride = tiled_floats(1, 1, k);
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t r = 0; r < rows; ++r)
      y[t * y_stride + r] = dot(tiled_w + r * stride, 1, tiled_x + t * stride, 1, k);
  }
}

void matvec(formats::QuantType type, const void* w, std::size_t row_bytes, std::size_t rows, const float* x,
            std::size_t k, float* y) {
  const auto* bytes = static_cast<const std::byte*>(w);
  const std::size_t size = formats::info_of(type).block_bytes;
  for (std::size_t r = 0; r < rows; ++r) {
    float p[16] = {};
    for (std::size_t i = 0; i < k; ++i) {
      float weight;
      dequantize(type, bytes + r * row_bytes + i * size, &weight, 1);
      p[i % 16] = std::fma(weight, x[i], p[i % 16]);
    }
    y[r] = tree_sum(p);
  }
}

void rms_norm(const float* x, const float* weight, float weight_offset, std::size_t n, float eps, float* y) {
  const float scale = 1.0F / std::sqrt(dot(x, 1, x, 1, n) / static_cast<float>(n) + eps);
  for (std::size_t i = 0; i < n; ++i) y[i] = x[i] * scale * (weight[i] + weight_offset);
}

void layer_norm(const float* x, const float* weight, const float* bias, std::size_t n, float eps, float* y) {
  float sums[16] = {};
  for (std::size_t i = 0; i < n; ++i) sums[i % 16] += x[i];
  const float mean = tree_sum(sums) / static_cast<float>(n);
  float squares[16] = {};
  for (std::size_t i = 0; i < n; ++i) squares[i % 16] = std::fma(x[i] - mean, x[i] - mean, squares[i % 16]);
  const float scale = 1.0F / std::sqrt(tree_sum(squares) / static_cast<float>(n) + eps);
  for (std::size_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * scale * weight[i] + bias[i];
}

void add(float* x, const float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] += y[i];
}

void scale(float* x, std::size_t n, float factor) {
  for (std::size_t i = 0; i < n; ++i) x[i] *= factor;
}

void silu_mul(float* gate, const float* up, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) gate[i] = gate[i] / (1.0F + exp_f32(-gate[i])) * up[i];
}

void exp(float* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] = exp_f32(x[i]);
}

void silu(float* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] = x[i] / (1.0F + exp_f32(-x[i]));
}

void sigmoid_mul(float* x, const float* gate, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] *= 1.0F / (1.0F + exp_f32(-gate[i]));
}

void gelu_tanh_mul(float* gate, const float* up, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const float v = gate[i];
    const float inner = kGeluSlope * (v + kGeluCubic * (v * v * v));
    gate[i] = 0.5F * v * (1.0F + tanh_f32(inner)) * up[i];
  }
}

void gelu_tanh(float* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const float v = x[i];
    x[i] = 0.5F * v * (1.0F + tanh_f32(kGeluSlope * (v + kGeluCubic * (v * v * v))));
  }
}

void clamped_swiglu(float* gate, const float* up, std::size_t n, float alpha, float limit) {
  for (std::size_t i = 0; i < n; ++i) {
    const float g = limit < gate[i] ? limit : gate[i];  // NaN stays
    const float below = limit < up[i] ? limit : up[i];
    const float u = -limit > below ? -limit : below;
    gate[i] = g * (1.0F / (1.0F + exp_f32(-(alpha * g)))) * (u + 1.0F);
  }
}

void softcap(float* x, std::size_t n, float cap) {
  for (std::size_t i = 0; i < n; ++i) x[i] = cap * tanh_f32(x[i] / cap);
}

namespace {

void rotate(float& a, float& b, float cosine, float sine) {
  const float rotated_a = a * cosine - b * sine;
  b = b * cosine + a * sine;
  a = rotated_a;
}

}  // namespace

void rope_half(float* x, const float* cosine, const float* sine, std::size_t half) {
  for (std::size_t i = 0; i < half; ++i) rotate(x[i], x[i + half], cosine[i], sine[i]);
}

void rope_pairs(float* x, const float* cosine, const float* sine, std::size_t half) {
  for (std::size_t i = 0; i < half; ++i) rotate(x[2 * i], x[2 * i + 1], cosine[i], sine[i]);
}

double add_log(float max, double sum) {
  return static_cast<double>(max) + wring::portable_log(sum);
}

double log_sum_exp(const float* x, std::size_t n) {
  float max = x[0];
  for (std::size_t i = 1; i < n; ++i) max = max > x[i] ? max : x[i];
  double p[16] = {};
  for (std::size_t i = 0; i < n; ++i) p[i % 16] += static_cast<double>(exp_f32(x[i] - max));
  return add_log(max, tree_sum(p));
}

std::size_t fma_loop(std::size_t rounds, float* sink) {
  float p[16];
  for (int i = 0; i < 16; ++i) p[i] = static_cast<float>(i);
  for (std::size_t round = 0; round < rounds; ++round) {
    for (float& value : p) value = std::fma(value, 0.5F, 1.0F);
  }
  *sink = tree_sum(p);
  return rounds * 16;
}

float read_loop(const float* x, std::size_t n) {
  float highest[8];
  std::fill_n(highest, 8, x[0]);
  for (std::size_t i = 0; i < n; i += 8) {
    for (std::size_t j = 0; j < 8; ++j) highest[j] = highest[j] > x[i + j] ? highest[j] : x[i + j];
  }
  return *std::max_element(highest, highest + 8);
}

}  // namespace wring::kernels::scalar
