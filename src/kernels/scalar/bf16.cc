// The reference of Bf16Dots. Its tiles are rows one after the other, as many as AVX-512's, so that whoever
// uses it cuts matrices into the same pieces.
#include <cstring>

#include "kernels/kernel_table.h"
#include "kernels/scalar/bf16_lane.h"
#include "kernels/scalar/scalar_math.h"

namespace wring::kernels {
namespace {

std::uint32_t pair_at(const void* row, std::size_t i) {
  std::uint32_t pair;
  std::memcpy(&pair, static_cast<const std::byte*>(row) + i * sizeof(pair), sizeof(pair));
  return pair;
}

float dot_pairs(const void* w, const void* x, std::size_t k) {
  float p[16] = {};
  for (std::size_t i = 0; i < k / 2; ++i)
    p[i % 16] = scalar::add_pair(p[i % 16], pair_at(w, i), pair_at(x, i));
  return scalar::tree_sum(p);
}

void round(const float* x, std::size_t n, std::uint16_t* bf16) {
  for (std::size_t i = 0; i < n; ++i) bf16[i] = scalar::rounded_to_bf16(x[i]);
}

void tile(const void* from, std::size_t row_bytes, std::size_t rows, std::size_t k, float* tiled) {
  for (std::size_t r = 0; r < rows; ++r) {
    std::memcpy(tiled + tiled_floats(r, 1, k / 2), static_cast<const std::byte*>(from) + r * row_bytes,
                k / 2 * sizeof(float));
  }
}

void matmul(const float* tiled_w, std::size_t rows, const float* tiled_x, std::size_t tokens, std::size_t k,
            float* y, std::size_t y_stride) {
  const std::size_t stride = tiled_floats(1, 1, k / 2);
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t r = 0; r < rows; ++r)
      y[t * y_stride + r] = dot_pairs(tiled_w + r * stride, tiled_x + t * stride, k);
  }
}

void matvec(const void* w, std::size_t row_bytes, std::size_t rows, const std::uint16_t* x, std::size_t k,
            float* y) {
  for (std::size_t r = 0; r < rows; ++r)
    y[r] = dot_pairs(static_cast<const std::byte*>(w) + r * row_bytes, x, k);
}

std::size_t peak_loop(std::size_t rounds, float* sink) {
  float sum = 0;
  for (std::size_t round = 0; round < rounds; ++round) sum = scalar::add_pair(sum, 0x3F803F80U, 0x3F803F80U);
  *sink = sum;
  return 2 * rounds;
}

}  // namespace

const Bf16Dots& bf16_reference() {
  static constexpr Bf16Dots kDots = {.round = round,
                                     .tile_height = 8,
                                     .tile_width = 3,
                                     .tile_rows = tile,
                                     .tile_tokens = tile,
                                     .matmul = matmul,
                                     .matvec = matvec,
                                     .peak_loop = peak_loop};
  return kDots;
}

}  // namespace wring::kernels
