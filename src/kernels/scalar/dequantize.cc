// Stored blocks to float32, one weight at a time. The products are taken in ggml's order and in float32, so
// that the values are ggml's to the bit (layouts: formats/block_layouts.h).
#include "kernels/scalar/dequantize.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/floats.h"
#include "formats/block_layouts.h"
#include "kernels/levels.h"
#include "kernels/scalar/dequantize_grids.h"

namespace wring::kernels {
namespace scalar {
namespace {

using formats::QuantType;

// Overloads from dequantize_grids.h, beside those below.
using scalar::take;

void take(const formats::BlockQ4_0& b, float* dst) {
  const float d = from_f16(b.d);
  for (int j = 0; j < 16; ++j) {
    dst[j] = static_cast<float>((b.qs[j] & 15) - 8) * d;
    dst[j + 16] = static_cast<float>((b.qs[j] >> 4) - 8) * d;
  }
}

void take(const formats::BlockQ4_1& b, float* dst) {
  const float d = from_f16(b.d);
  const float m = from_f16(b.m);
  for (int j = 0; j < 16; ++j) {
    dst[j] = static_cast<float>(b.qs[j] & 15) * d + m;
    dst[j + 16] = static_cast<float>(b.qs[j] >> 4) * d + m;
  }
}

// Bits 0…4 of weight j of a Q5 block.
int five_bits(const std::uint8_t* qs, std::uint32_t high, int j) {
  const int low = j < 16 ? qs[j] & 15 : qs[j - 16] >> 4;
  return low | static_cast<int>(high >> j & 1) << 4;
}

void take(const formats::BlockQ5_0& b, float* dst) {
  const float d = from_f16(b.d);
  const std::uint32_t high = four_bytes(b.qh);
  for (int j = 0; j < 32; ++j) dst[j] = static_cast<float>(five_bits(b.qs, high, j) - 16) * d;
}

void take(const formats::BlockQ5_1& b, float* dst) {
  const float d = from_f16(b.d);
  const float m = from_f16(b.m);
  const std::uint32_t high = four_bytes(b.qh);
  for (int j = 0; j < 32; ++j) dst[j] = static_cast<float>(five_bits(b.qs, high, j)) * d + m;
}

void take(const formats::BlockQ8_0& b, float* dst) {
  const float d = from_f16(b.d);
  for (int j = 0; j < 32; ++j) dst[j] = static_cast<float>(b.qs[j]) * d;
}

void take(const formats::BlockQ2_K& b, float* dst) {
  const float d = from_f16(b.d);
  const float dmin = from_f16(b.dmin);
  for (int i = 0; i < 256; ++i) {
    const std::uint8_t scale = b.scales[i / 16];
    const int q = b.qs[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    dst[i] =
        d * static_cast<float>(scale & 15) * static_cast<float>(q) - dmin * static_cast<float>(scale >> 4);
  }
}

void take(const formats::BlockQ3_K& b, float* dst) {
  const float d = from_f16(b.d);
  for (int i = 0; i < 256; ++i) {
    const int g = i / 16;
    const int low = g < 8 ? b.scales[g] & 15 : b.scales[g - 8] >> 4;
    const int scale = low | (b.scales[8 + g % 4] >> (g / 4 * 2) & 3) << 4;
    const int q = b.qs[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    const int high = b.hmask[i % 32] >> (i / 32) & 1;
    dst[i] = d * static_cast<float>(scale - 32) * static_cast<float>(q + 4 * high - 4);
  }
}

void take(const formats::BlockQ4_K& b, float* dst) {
  const float d = from_f16(b.d);
  const float dmin = from_f16(b.dmin);
  for (int g = 0; g < 8; ++g) {
    const ScaleMin s = scale_min(b.scales, g);
    const float scale = d * static_cast<float>(s.scale);
    const float min = dmin * static_cast<float>(s.min);
    for (int j = 0; j < 32; ++j) {
      const int q = b.qs[g / 2 * 32 + j] >> (g % 2 * 4) & 15;
      dst[32 * g + j] = scale * static_cast<float>(q) - min;
    }
  }
}

void take(const formats::BlockQ5_K& b, float* dst) {
  const float d = from_f16(b.d);
  const float dmin = from_f16(b.dmin);
  for (int g = 0; g < 8; ++g) {
    const ScaleMin s = scale_min(b.scales, g);
    const float scale = d * static_cast<float>(s.scale);
    const float min = dmin * static_cast<float>(s.min);
    for (int j = 0; j < 32; ++j) {
      const int q = (b.qs[g / 2 * 32 + j] >> (g % 2 * 4) & 15) | (b.qh[j] >> g & 1) << 4;
      dst[32 * g + j] = scale * static_cast<float>(q) - min;
    }
  }
}

void take(const formats::BlockQ6_K& b, float* dst) {
  const float d = from_f16(b.d);
  for (int i = 0; i < 256; ++i) {
    const int low = b.ql[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
    const int high = b.qh[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    dst[i] = d * static_cast<float>(b.scales[i / 16]) * static_cast<float>((low | high << 4) - 32);
  }
}

void take(const formats::BlockIQ4_NL& b, float* dst) {
  const float d = from_f16(b.d);
  for (int j = 0; j < 16; ++j) {
    dst[j] = d * static_cast<float>(formats::kIq4Values[b.qs[j] & 15]);
    dst[j + 16] = d * static_cast<float>(formats::kIq4Values[b.qs[j] >> 4]);
  }
}

void take(const formats::BlockIQ4_XS& b, float* dst) {
  const float d = from_f16(b.d);
  for (int g = 0; g < 8; ++g) {
    const int scale = (b.scales_l[g / 2] >> (g % 2 * 4) & 15) | (b.scales_h >> (2 * g) & 3) << 4;
    const float ds = d * static_cast<float>(scale - 32);
    for (int j = 0; j < 16; ++j) {
      dst[32 * g + j] = ds * static_cast<float>(formats::kIq4Values[b.qs[16 * g + j] & 15]);
      dst[32 * g + j + 16] = ds * static_cast<float>(formats::kIq4Values[b.qs[16 * g + j] >> 4]);
    }
  }
}

void take(const formats::BlockMXFP4& b, float* dst) {
  const float d = std::bit_cast<float>(b.e < 2 ? 0x00200000U << b.e : (b.e - 1U) << 23);
  for (int j = 0; j < 16; ++j) {
    dst[j] = d * static_cast<float>(formats::kFp4Doubled[b.qs[j] & 15]);
    dst[j + 16] = d * static_cast<float>(formats::kFp4Doubled[b.qs[j] >> 4]);
  }
}

// E4M3 without a sign; 0x7F, its NaN, counts as zero as in ggml.
float from_unsigned_e4m3(std::uint8_t code) {
  if (code == 0x7F) return 0.0F;
  const int exponent = code >> 3 & 15;
  const auto mantissa = static_cast<float>(code & 7);
  if (exponent == 0) return mantissa * 0x1p-9F;
  return (1.0F + mantissa / 8.0F) * std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 120) << 23);
}

void take(const formats::BlockNVFP4& b, float* dst) {
  for (int g = 0; g < 4; ++g) {
    const float d = from_unsigned_e4m3(b.d[g]) * 0.5F;
    for (int j = 0; j < 8; ++j) {
      dst[16 * g + j] = d * static_cast<float>(formats::kFp4Doubled[b.qs[8 * g + j] & 15]);
      dst[16 * g + 8 + j] = d * static_cast<float>(formats::kFp4Doubled[b.qs[8 * g + j] >> 4]);
    }
  }
}

// Digit n of a byte that holds 256/243 of a five-digit base-3 number: what stands left of the point after n
// digits went.
int base3_digit(std::uint8_t byte, int n) {
  std::uint8_t shifted = byte;
  for (int i = 0; i < n; ++i) shifted = static_cast<std::uint8_t>(shifted * 3);
  return shifted * 3 >> 8;
}

void take(const formats::BlockTQ1_0& b, float* dst) {
  const float d = from_f16(b.d);
  const auto weight = [&](std::uint8_t byte, int n) {
    return d * static_cast<float>(base3_digit(byte, n) - 1);
  };
  for (int i = 0; i < 160; ++i) dst[i] = weight(b.qs[i % 32], i / 32);
  for (int i = 0; i < 80; ++i) dst[160 + i] = weight(b.qs[32 + i % 16], i / 16);
  for (int i = 0; i < 16; ++i) dst[240 + i] = weight(b.qh[i % 4], i / 4);
}

void take(const formats::BlockTQ2_0& b, float* dst) {
  const float d = from_f16(b.d);
  for (int i = 0; i < 256; ++i) {
    const int q = b.qs[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    dst[i] = d * static_cast<float>(q - 1);
  }
}

void take(const formats::BlockQ1_0& b, float* dst) {
  const float d = from_f16(b.d);
  for (int i = 0; i < 128; ++i) dst[i] = (b.qs[i / 8] >> (i % 8) & 1) != 0 ? d : -d;
}

void take(const formats::BlockQ2_0& b, float* dst) {
  const float d = from_f16(b.d);
  for (int i = 0; i < 64; ++i) dst[i] = static_cast<float>((b.qs[i / 4] >> (i % 4 * 2) & 3) - 1) * d;
}

template <class Block, std::size_t kWeights>
void take_blocks(const void* src, float* dst, std::size_t n) {
  const auto* bytes = static_cast<const unsigned char*>(src);
  for (std::size_t i = 0; i < n / kWeights; ++i) {
    Block block;
    std::memcpy(&block, bytes + i * sizeof(Block), sizeof(Block));  // files align nothing
    take(block, dst + i * kWeights);
  }
}

void copy(const void* src, float* dst, std::size_t n) {
  std::memcpy(dst, src, n * sizeof(float));
}

template <float (*kConvert)(std::uint16_t)>
void take_halves(const void* src, float* dst, std::size_t n) {
  const auto* bytes = static_cast<const unsigned char*>(src);
  for (std::size_t i = 0; i < n; ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, bytes + 2 * i, sizeof(bits));
    dst[i] = kConvert(bits);
  }
}

// Null: this type is not had.
void (*function_for(QuantType type))(const void*, float*, std::size_t) {
  using namespace formats;
  switch (type) {
    case QuantType::kF32:
      return copy;
    case QuantType::kF16:
      return take_halves<from_f16>;
    case QuantType::kBF16:
      return take_halves<bf16_to_float>;
    case QuantType::kQ4_0:
      return take_blocks<BlockQ4_0, kSmallBlock>;
    case QuantType::kQ4_1:
      return take_blocks<BlockQ4_1, kSmallBlock>;
    case QuantType::kQ5_0:
      return take_blocks<BlockQ5_0, kSmallBlock>;
    case QuantType::kQ5_1:
      return take_blocks<BlockQ5_1, kSmallBlock>;
    case QuantType::kQ8_0:
      return take_blocks<BlockQ8_0, kSmallBlock>;
    case QuantType::kQ2_K:
      return take_blocks<BlockQ2_K, kSuperBlock>;
    case QuantType::kQ3_K:
      return take_blocks<BlockQ3_K, kSuperBlock>;
    case QuantType::kQ4_K:
      return take_blocks<BlockQ4_K, kSuperBlock>;
    case QuantType::kQ5_K:
      return take_blocks<BlockQ5_K, kSuperBlock>;
    case QuantType::kQ6_K:
      return take_blocks<BlockQ6_K, kSuperBlock>;
    case QuantType::kIQ4_NL:
      return take_blocks<BlockIQ4_NL, kSmallBlock>;
    case QuantType::kIQ4_XS:
      return take_blocks<BlockIQ4_XS, kSuperBlock>;
    case QuantType::kMXFP4:
      return take_blocks<BlockMXFP4, kSmallBlock>;
    case QuantType::kNVFP4:
      return take_blocks<BlockNVFP4, 64>;
    case QuantType::kTQ1_0:
      return take_blocks<BlockTQ1_0, kSuperBlock>;
    case QuantType::kTQ2_0:
      return take_blocks<BlockTQ2_0, kSuperBlock>;
    case QuantType::kQ1_0:
      return take_blocks<BlockQ1_0, 128>;
    case QuantType::kQ2_0:
      return take_blocks<BlockQ2_0, 64>;
    case QuantType::kIQ1_S:
      return take_blocks<BlockIQ1_S, kSuperBlock>;
    case QuantType::kIQ1_M:
      return take_blocks<BlockIQ1_M, kSuperBlock>;
    case QuantType::kIQ2_XXS:
      return take_blocks<BlockIQ2_XXS, kSuperBlock>;
    case QuantType::kIQ2_XS:
      return take_blocks<BlockIQ2_XS, kSuperBlock>;
    case QuantType::kIQ2_S:
      return take_blocks<BlockIQ2_S, kSuperBlock>;
    case QuantType::kIQ3_XXS:
      return take_blocks<BlockIQ3_XXS, kSuperBlock>;
    case QuantType::kIQ3_S:
      return take_blocks<BlockIQ3_S, kSuperBlock>;
    default:
      return nullptr;
  }
}

}  // namespace

float from_f16(std::uint16_t bits) {
  const float value = f16_to_float(bits);
  return value == value ? value : std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | 0x00400000U);
}

std::uint32_t four_bytes(const std::uint8_t* bytes) {
  return bytes[0] | std::uint32_t{bytes[1]} << 8 | std::uint32_t{bytes[2]} << 16 |
         std::uint32_t{bytes[3]} << 24;
}

ScaleMin scale_min(const std::uint8_t* packed, int group) {
  if (group < 4) return {packed[group] & 63, packed[group + 4] & 63};
  return {(packed[group + 4] & 15) | (packed[group - 4] >> 6) << 4,
          (packed[group + 4] >> 4) | (packed[group] >> 6) << 4};
}

void dequantize(QuantType type, const void* src, float* dst, std::size_t n) {
  function_for(type)(src, dst, n);
}

}  // namespace scalar

bool has_dequantize(formats::QuantType type) {
  return scalar::function_for(type) != nullptr;
}

}  // namespace wring::kernels
