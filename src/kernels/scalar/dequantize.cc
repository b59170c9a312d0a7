// Stored blocks to float32, one weight at a time. The products are taken in ggml's order and in float32, so
// that the values are ggml's to the bit (layouts: formats/block_layouts.h).
#include "kernels/scalar/dequantize.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/floats.h"
#include "formats/block_layouts.h"
#include "kernels/levels.h"

namespace wring::kernels {
namespace scalar {
namespace {

using formats::QuantType;

// A signalling NaN becomes quiet, as the hardware's conversion makes it.
float from_f16(std::uint16_t bits) {
  const float value = f16_to_float(bits);
  return value == value ? value : std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | 0x00400000U);
}

std::uint32_t four_bytes(const std::uint8_t* bytes) {
  return bytes[0] | std::uint32_t{bytes[1]} << 8 | std::uint32_t{bytes[2]} << 16 |
         std::uint32_t{bytes[3]} << 24;
}

void take(const std::uint16_t* halves, bool bf16, float* dst, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) dst[i] = bf16 ? bf16_to_float(halves[i]) : from_f16(halves[i]);
}

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

template <class Block>
void take_blocks(const void* src, float* dst, std::size_t n, std::size_t block_size) {
  const auto* bytes = static_cast<const unsigned char*>(src);
  for (std::size_t i = 0; i < n / block_size; ++i) {
    Block block;
    std::memcpy(&block, bytes + i * sizeof(Block), sizeof(Block));  // files align nothing
    take(block, dst + i * block_size);
  }
}

}  // namespace

ScaleMin scale_min(const std::uint8_t* packed, int group) {
  if (group < 4) return {packed[group] & 63, packed[group + 4] & 63};
  return {(packed[group + 4] & 15) | (packed[group - 4] >> 6) << 4,
          (packed[group + 4] >> 4) | (packed[group] >> 6) << 4};
}

void dequantize(QuantType type, const void* src, float* dst, std::size_t n) {
  using namespace formats;
  switch (type) {
    case QuantType::kF32:
      std::memcpy(dst, src, n * sizeof(float));
      return;
    case QuantType::kF16:
      take(static_cast<const std::uint16_t*>(src), false, dst, n);
      return;
    case QuantType::kBF16:
      take(static_cast<const std::uint16_t*>(src), true, dst, n);
      return;
    case QuantType::kQ4_0:
      take_blocks<BlockQ4_0>(src, dst, n, kSmallBlock);
      return;
    case QuantType::kQ4_1:
      take_blocks<BlockQ4_1>(src, dst, n, kSmallBlock);
      return;
    case QuantType::kQ5_0:
      take_blocks<BlockQ5_0>(src, dst, n, kSmallBlock);
      return;
    case QuantType::kQ5_1:
      take_blocks<BlockQ5_1>(src, dst, n, kSmallBlock);
      return;
    case QuantType::kQ8_0:
      take_blocks<BlockQ8_0>(src, dst, n, kSmallBlock);
      return;
    case QuantType::kQ2_K:
      take_blocks<BlockQ2_K>(src, dst, n, kSuperBlock);
      return;
    case QuantType::kQ3_K:
      take_blocks<BlockQ3_K>(src, dst, n, kSuperBlock);
      return;
    case QuantType::kQ4_K:
      take_blocks<BlockQ4_K>(src, dst, n, kSuperBlock);
      return;
    case QuantType::kQ5_K:
      take_blocks<BlockQ5_K>(src, dst, n, kSuperBlock);
      return;
    case QuantType::kQ6_K:
      take_blocks<BlockQ6_K>(src, dst, n, kSuperBlock);
      return;
    case QuantType::kIQ4_NL:
      take_blocks<BlockIQ4_NL>(src, dst, n, kSmallBlock);
      return;
    case QuantType::kIQ4_XS:
      take_blocks<BlockIQ4_XS>(src, dst, n, kSuperBlock);
      return;
    default:
      return;  // has_dequantize names the types above
  }
}

}  // namespace scalar

bool has_dequantize(formats::QuantType type) {
  using formats::QuantType;
  switch (type) {
    case QuantType::kF32:
    case QuantType::kF16:
    case QuantType::kBF16:
    case QuantType::kQ4_0:
    case QuantType::kQ4_1:
    case QuantType::kQ5_0:
    case QuantType::kQ5_1:
    case QuantType::kQ8_0:
    case QuantType::kQ2_K:
    case QuantType::kQ3_K:
    case QuantType::kQ4_K:
    case QuantType::kQ5_K:
    case QuantType::kQ6_K:
    case QuantType::kIQ4_NL:
    case QuantType::kIQ4_XS:
      return true;
    default:
      return false;
  }
}

}  // namespace wring::kernels
