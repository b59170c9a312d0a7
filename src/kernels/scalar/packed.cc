// Packed mode's reference: one code at a time, in the order that kernels/packed.h defines.
#include "kernels/packed.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/floats.h"
#include "kernels/levels.h"
#include "kernels/scalar/scalar_kernels.h"
#include "kernels/scalar/scalar_math.h"

namespace wring::kernels::scalar {
namespace {

using formats::QuantType;

// Up to 256 columns of a group, taken apart.
struct Chunk {
  bool is_super = true;  // a super-block: integer scales under d, and under dmin the mins if it has any
  bool has_mins = false;
  int columns = 256;
  int codes[16][256];  // [row][column]
  int scales[16][16];  // [16 columns][row]
  int mins[8][16];     // [32 columns][row]
  float d[8][16];      // [32 columns][row]; of a super-block only the first
  float dmin[16];
};

int nibble(const std::uint8_t (*qs)[kStepBytes], int row, int column) {
  const int step = column / 4;
  return qs[step / 2][4 * row + column % 4] >> (step % 2 * 4) & 15;
}

void take(const GroupQ4_K& g, Chunk& chunk) {
  chunk.has_mins = true;
  for (int row = 0; row < 16; ++row) {
    chunk.d[0][row] = f16_to_float(g.d[row]);
    chunk.dmin[row] = f16_to_float(g.dmin[row]);
    for (int b = 0; b < 8; ++b) {
      const int high = g.high[b % 4][row] >> (b / 4 * 4);
      chunk.scales[2 * b][row] = chunk.scales[2 * b + 1][row] = (g.low[b][row] & 15) | (high & 3) << 4;
      chunk.mins[b][row] = g.low[b][row] >> 4 | (high >> 2 & 3) << 4;
    }
    for (int c = 0; c < 256; ++c) chunk.codes[row][c] = nibble(g.qs, row, c);
  }
}

void take(const GroupQ6_K& g, Chunk& chunk) {
  for (int row = 0; row < 16; ++row) {
    chunk.d[0][row] = f16_to_float(g.d[row]);
    for (int b = 0; b < 16; ++b) chunk.scales[b][row] = int{g.scales[b][row]};
    for (int c = 0; c < 256; ++c) {
      const int high = g.qh[c / 16][4 * row + c % 4] >> (c / 4 % 4 * 2) & 3;
      chunk.codes[row][c] = (nibble(g.ql, row, c) | high << 4) - 32;
    }
  }
}

void take(const GroupQ8_0* g, Chunk& chunk) {
  chunk.is_super = false;
  for (int row = 0; row < 16; ++row) {
    for (int b = 0; b < chunk.columns / 32; ++b) {
      chunk.scales[2 * b][row] = chunk.scales[2 * b + 1][row] = 1;
      chunk.d[b][row] = f16_to_float(g[b].d[row]);
    }
    for (int c = 0; c < chunk.columns; ++c)
      chunk.codes[row][c] = int{g[c / 32].qs[c % 32 / 4][4 * row + c % 4]};
  }
}

void take(QuantType type, const std::byte* group, std::size_t first_column, Chunk& chunk) {
  switch (type) {
    case QuantType::kQ4_K:
      return take(reinterpret_cast<const GroupQ4_K*>(group)[first_column / 256], chunk);
    case QuantType::kQ6_K:
      return take(reinterpret_cast<const GroupQ6_K*>(group)[first_column / 256], chunk);
    default:
      return take(reinterpret_cast<const GroupQ8_0*>(group) + first_column / 32, chunk);
  }
}

void add_products(const Chunk& chunk, int row, const ActivationChunk& x, float& y) {
  float a = 0, b = 0;
  for (int block = 0; block < chunk.columns / 32; ++block) {
    std::int32_t dot = 0;
    for (int c = 32 * block; c < 32 * (block + 1); ++c)
      dot += chunk.scales[c / 16][row] * chunk.codes[row][c] * x.codes[c];
    if (chunk.is_super) {
      a = std::fma(static_cast<float>(dot), x.scales[block], a);
    } else {
      y = std::fma(static_cast<float>(dot), chunk.d[block][row] * x.scales[block], y);
    }
    if (chunk.has_mins) b = std::fma(static_cast<float>(chunk.mins[block][row]), x.sums[block], b);
  }
  if (chunk.is_super) y = std::fma(chunk.d[0][row], a, y);
  if (chunk.has_mins) y = std::fma(-chunk.dmin[row], b, y);
}

// The code of the largest of 32 values, 127 … 124, that makes the sum of squared errors least: 8 partial sums
// by i mod 8 and a tree over them.
float best_code(const float* x, float largest) {
  float best = 127.0F, least = 0;
  for (float code = 127.0F; code >= 124.0F; code -= 1.0F) {
    const float scale = largest / code, inverse = code / largest;
    float p[8] = {};
    for (int i = 0; i < 32; ++i) {
      const float error = std::fma(-scale, std::nearbyint(x[i] * inverse), x[i]);
      p[i % 8] = std::fma(error, error, p[i % 8]);
    }
    for (int width = 4; width >= 1; width /= 2) {
      for (int i = 0; i < width; ++i) p[i] += p[i + width];
    }
    if (code == 127.0F || p[0] < least) {
      best = code;
      least = p[0];
    }
  }
  return best;
}

}  // namespace

void quantize_row(const float* x, const QuantizedRows& out, std::size_t token) {
  for (std::size_t at = 0; at < out.columns; at += 32) {
    ActivationChunk& chunk = *out.at(at / kChunkColumns, token);
    const std::size_t inner = at % kChunkColumns;
    float largest = 0;
    bool finite = true;
    for (std::size_t i = 0; i < 32; ++i) {
      finite = finite && std::isfinite(x[at + i]);
      largest = std::max(largest, std::fabs(x[at + i]));
    }
    float scale = 0, inverse = 0;
    if (!finite) {
      scale = std::numeric_limits<float>::quiet_NaN();
    } else if (largest / 127.0F >= std::numeric_limits<float>::min()) {
      const float code = best_code(x + at, largest);
      scale = largest / code;
      inverse = code / largest;
    }
    std::int32_t sums[2] = {0, 0};
    for (std::size_t i = 0; i < 32; ++i) {
      const auto code = inverse == 0 ? 0 : static_cast<std::int32_t>(std::lrint(x[at + i] * inverse));
      chunk.codes[inner + i] = static_cast<std::int8_t>(code);
      sums[i / 16] += code;
    }
    chunk.code_sums[inner / 16] = static_cast<std::int16_t>(sums[0]);
    chunk.code_sums[inner / 16 + 1] = static_cast<std::int16_t>(sums[1]);
    chunk.scales[inner / 32] = scale;
    chunk.sums[inner / 32] = scale * static_cast<float>(sums[0] + sums[1]);
  }
}

void packed_matmul(QuantType type, const std::byte* groups, std::size_t rows, const QuantizedRows& x,
                   std::size_t tokens, float* y, std::size_t y_stride) {
  const std::size_t group_bytes = packed_group_bytes(type, x.columns);
  for (std::size_t r = 0; r < rows; r += kGroupRows, groups += group_bytes) {
    for (std::size_t at = 0; at < x.columns; at += 256) {
      Chunk chunk;
      chunk.columns = static_cast<int>(std::min<std::size_t>(256, x.columns - at));
      take(type, groups, at, chunk);
      for (std::size_t t = 0; t < tokens; ++t) {
        for (std::size_t i = r; i < std::min(rows, r + kGroupRows); ++i) {
          float& sum = y[t * y_stride + i];
          if (at == 0) sum = 0;
          add_products(chunk, static_cast<int>(i - r), *x.at(at / 256, t), sum);
        }
      }
    }
  }
}

std::size_t byte_loop(std::size_t rounds, std::int32_t* sink) {
  std::int32_t sums[16] = {};
  for (std::size_t round = 0; round < rounds; ++round) {
    for (int i = 0; i < 16; ++i) sums[i] += static_cast<std::int8_t>(round + static_cast<std::size_t>(i)) * 3;
  }
  *sink = tree_sum(sums);
  return rounds * 16;
}

}  // namespace wring::kernels::scalar
