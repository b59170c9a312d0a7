// IQ1, IQ2 and IQ3 blocks to float32: a code chooses a pattern of levels (grids.h), a scale and signs or an
// offset make weights of it. Below the last product nothing is rounded (11 bits of d, at most 5 of the scale
// and 6 of the level), so the order of the factors is free. Layouts: formats/block_layouts.h, after ggml and
// the package gguf.
#include "kernels/scalar/dequantize_grids.h"

#include <bit>

#include "kernels/scalar/dequantize.h"
#include "kernels/scalar/grids.h"

namespace wring::kernels::scalar {
namespace {

// Half n of the bytes, low halves first.
int half_byte(const std::uint8_t* bytes, int n) {
  return bytes[n / 2] >> (n % 2 * 4) & 15;
}

// All 8 signs from the 7 that are stored: the number of minus signs is even.
unsigned even_signs(unsigned seven) {
  return seven | (static_cast<unsigned>(std::popcount(seven)) & 1) << 7;
}

// The scales of IQ2 and IQ3_XXS: `scale` and a half.
float and_a_half(unsigned scale) {
  return static_cast<float>(scale) + 0.5F;
}

// 8 weights of 3 levels.
void put_eight(float scale, unsigned pattern, unsigned signs, float* dst) {
  for (int i = 0; i < 8; ++i) {
    const float value = scale * static_cast<float>(formats::kIq2Levels[pattern >> (2 * i) & 3]);
    dst[i] = (signs >> i & 1) != 0 ? -value : value;
  }
}

// 4 weights of 8 levels.
void put_four(float scale, const std::int8_t (&levels)[8], unsigned pattern, unsigned signs, float* dst) {
  for (int i = 0; i < 4; ++i) {
    const float value = scale * static_cast<float>(levels[pattern >> (3 * i) & 7]);
    dst[i] = (signs >> i & 1) != 0 ? -value : value;
  }
}

// 8 weights of IQ1.
void put_shifted(float scale, unsigned pattern, bool minus, float* dst) {
  const float shift = minus ? -0.125F : 0.125F;
  for (int i = 0; i < 8; ++i)
    dst[i] = scale * (static_cast<float>(formats::kIq1Levels[pattern >> (2 * i) & 3]) + shift);
}

}  // namespace

void take(const formats::BlockIQ2_XXS& b, float* dst) {
  const float d = from_f16(b.d);
  for (int g = 0; g < 8; ++g) {
    const std::uint8_t* codes = b.qs + 8 * g;
    const std::uint32_t rest = four_bytes(codes + 4);
    const float scale = d * and_a_half(rest >> 28) * 0.25F;
    for (int k = 0; k < 4; ++k)
      put_eight(scale, kIq2XxsGrid[codes[k]], even_signs(rest >> (7 * k) & 127), dst + 32 * g + 8 * k);
  }
}

void take(const formats::BlockIQ2_XS& b, float* dst) {
  const float d = from_f16(b.d);
  for (int e = 0; e < 32; ++e) {
    const float scale = d * and_a_half(static_cast<unsigned>(half_byte(b.scales, e / 2))) * 0.25F;
    const unsigned q = b.qs[e];
    put_eight(scale, kIq2XsGrid[q & 511], even_signs(q >> 9), dst + 8 * e);
  }
}

void take(const formats::BlockIQ2_S& b, float* dst) {
  const float d = from_f16(b.d);
  for (int e = 0; e < 32; ++e) {
    const float scale = d * and_a_half(static_cast<unsigned>(half_byte(b.scales, e / 2))) * 0.25F;
    const unsigned high = b.qh[e / 4] >> (e % 4 * 2) & 3U;
    put_eight(scale, kIq2SGrid[b.qs[e] | high << 8], b.signs[e], dst + 8 * e);
  }
}

void take(const formats::BlockIQ3_XXS& b, float* dst) {
  const float d = from_f16(b.d);
  for (int g = 0; g < 8; ++g) {
    const std::uint32_t rest = four_bytes(b.signs + 4 * g);
    const float scale = d * and_a_half(rest >> 28) * 0.5F;
    for (int k = 0; k < 8; ++k) {
      const unsigned signs = even_signs(rest >> (k / 2 * 7) & 127) >> (k % 2 * 4);
      const int f = 8 * g + k;
      put_four(scale, formats::kIq3XxsLevels, kIq3XxsGrid[b.qs[f]], signs, dst + 4 * f);
    }
  }
}

void take(const formats::BlockIQ3_S& b, float* dst) {
  const float d = from_f16(b.d);
  for (int f = 0; f < 64; ++f) {
    const float scale = d * static_cast<float>(2 * half_byte(b.scales, f / 8) + 1);
    const unsigned high = b.qh[f / 8] >> (f % 8) & 1U;
    const unsigned signs = static_cast<unsigned>(half_byte(b.signs, f));
    put_four(scale, formats::kIq3SLevels, kIq3SGrid[b.qs[f] | high << 8], signs, dst + 4 * f);
  }
}

void take(const formats::BlockIQ1_S& b, float* dst) {
  const float d = from_f16(b.d);
  for (int e = 0; e < 32; ++e) {
    const unsigned group = b.qh[e / 4];
    const float scale = d * static_cast<float>(2 * (group >> 12 & 7) + 1);
    const unsigned high = group >> (e % 4 * 3) & 7;
    put_shifted(scale, kIq1Grid[b.qs[e] | high << 8], group >> 15 != 0, dst + 8 * e);
  }
}

void take(const formats::BlockIQ1_M& b, float* dst) {
  unsigned bits = 0;
  for (int j = 0; j < 4; ++j) bits |= static_cast<unsigned>(b.scales[j] >> 12) << (4 * j);
  const float d = from_f16(static_cast<std::uint16_t>(bits));
  for (int e = 0; e < 32; ++e) {
    const int g = e / 2;
    const float scale = d * static_cast<float>(2 * (b.scales[g / 4] >> (g % 4 * 3) & 7) + 1);
    const unsigned high = static_cast<unsigned>(half_byte(b.qh, e));
    put_shifted(scale, kIq1Grid[b.qs[e] | (high & 7) << 8], high >> 3 != 0, dst + 8 * e);
  }
}

}  // namespace wring::kernels::scalar
