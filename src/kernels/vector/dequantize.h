// Stored blocks to float32 in vectors: scalar/dequantize.cc's products in the same order. Types not named
// here go there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/block_layouts.h"
#include "kernels/kernel_table.h"
#include "kernels/levels.h"

namespace wring::kernels::vector {

template <class V>
struct Dequantize {
  using F = typename V::F;
  using I = typename V::I;
  using Type = formats::QuantType;

  static inline F f16(const std::uint16_t& bits) { return V::set(V::f16_to_float(bits)); }
  static inline F integer(int value) { return V::set(static_cast<float>(value)); }

  static inline void take(const formats::BlockQ8_0& b, float* dst) {
    const F d = f16(b.d);
    for (int j = 0; j < 32; j += V::kLanes) V::store(dst + j, V::mul(V::to_float(V::load_i8(b.qs + j)), d));
  }

  static inline void take(const formats::BlockQ4_0& b, float* dst) {
    const F d = f16(b.d);
    for (int j = 0; j < 16; j += V::kLanes) {
      const I q = V::load_u8(b.qs + j);
      V::store(dst + j, V::mul(V::sub(V::to_float(V::bits(q, 0, 15)), V::set(8.0F)), d));
      V::store(dst + j + 16, V::mul(V::sub(V::to_float(V::bits(q, 4, 15)), V::set(8.0F)), d));
    }
  }

  static inline void take(const formats::BlockQ4_1& b, float* dst) {
    const F d = f16(b.d);
    const F m = f16(b.m);
    for (int j = 0; j < 16; j += V::kLanes) {
      const I q = V::load_u8(b.qs + j);
      V::store(dst + j, V::add(V::mul(V::to_float(V::bits(q, 0, 15)), d), m));
      V::store(dst + j + 16, V::add(V::mul(V::to_float(V::bits(q, 4, 15)), d), m));
    }
  }

  static inline void take(const formats::BlockQ2_K& b, float* dst) {
    const F d = f16(b.d);
    const F dmin = f16(b.dmin);
    for (int g = 0; g < 16; ++g) {
      const F scale = V::mul(d, integer(b.scales[g] & 15));
      const F min = V::mul(dmin, integer(b.scales[g] >> 4));
      for (int j = 0; j < 16; j += V::kLanes) {
        const I q = V::bits(V::load_u8(b.qs + g / 8 * 32 + g % 2 * 16 + j), g % 8 / 2 * 2, 3);
        V::store(dst + 16 * g + j, V::sub(V::mul(scale, V::to_float(q)), min));
      }
    }
  }

  static inline void take(const formats::BlockQ3_K& b, float* dst) {
    const F d = f16(b.d);
    for (int g = 0; g < 16; ++g) {
      const int low = g < 8 ? b.scales[g] & 15 : b.scales[g - 8] >> 4;
      const int high = b.scales[8 + g % 4] >> (g / 4 * 2) & 3;
      const F scale = V::mul(d, integer((low | high << 4) - 32));
      for (int j = 0; j < 16; j += V::kLanes) {
        const I q = V::bits(V::load_u8(b.qs + g / 8 * 32 + g % 2 * 16 + j), g % 8 / 2 * 2, 3);
        const I top = V::bits(V::load_u8(b.hmask + g % 2 * 16 + j), g / 2, 1);
        V::store(dst + 16 * g + j,
                 V::mul(scale, V::sub(V::to_float(V::plus_shifted(q, top, 2)), V::set(4.0F))));
      }
    }
  }

  /// The 8 scales (first) and mins (second) of Q4_K and Q5_K, as floats times d and dmin.
  static inline void scales_of(const std::uint8_t* packed, float d, float dmin, float (&scale)[8],
                               float (&min)[8]) {
    std::uint32_t word[3];
    __builtin_memcpy(word, packed, sizeof(word));
    const std::uint32_t codes[4] = {
        word[0] & 0x3F3F3F3FU, (word[2] & 0x0F0F0F0FU) | (word[0] >> 6 & 0x03030303U) << 4,
        word[1] & 0x3F3F3F3FU, (word[2] >> 4 & 0x0F0F0F0FU) | (word[1] >> 6 & 0x03030303U) << 4};
    for (int g = 0; g < 8; ++g) {
      scale[g] = d * static_cast<float>(static_cast<int>(codes[g / 4] >> (g % 4 * 8) & 63));
      min[g] = dmin * static_cast<float>(static_cast<int>(codes[2 + g / 4] >> (g % 4 * 8) & 63));
    }
  }

  static inline void take(const formats::BlockQ4_K& b, float* dst) {
    float scale[8];
    float min[8];
    scales_of(b.scales, V::f16_to_float(b.d), V::f16_to_float(b.dmin), scale, min);
    for (int g = 0; g < 8; g += 2) {
      for (int j = 0; j < 32; j += V::kLanes) {
        const I q = V::load_u8(b.qs + 16 * g + j);
        float* at = dst + 32 * g + j;
        V::store(at, V::sub(V::mul(V::set(scale[g]), V::to_float(V::bits(q, 0, 15))), V::set(min[g])));
        V::store(at + 32,
                 V::sub(V::mul(V::set(scale[g + 1]), V::to_float(V::bits(q, 4, 15))), V::set(min[g + 1])));
      }
    }
  }

  static inline void take(const formats::BlockQ5_K& b, float* dst) {
    float scale[8];
    float min[8];
    scales_of(b.scales, V::f16_to_float(b.d), V::f16_to_float(b.dmin), scale, min);
    for (int g = 0; g < 8; ++g) {
      for (int j = 0; j < 32; j += V::kLanes) {
        const I low = V::bits(V::load_u8(b.qs + g / 2 * 32 + j), g % 2 * 4, 15);
        const I q = V::plus_shifted(low, V::bits(V::load_u8(b.qh + j), g, 1), 4);
        V::store(dst + 32 * g + j, V::sub(V::mul(V::set(scale[g]), V::to_float(q)), V::set(min[g])));
      }
    }
  }

  static inline void take(const formats::BlockQ6_K& b, float* dst) {
    const F d = f16(b.d);
    for (int g = 0; g < 16;
         ++g) {  // weights 16g …: half h = g / 8 of the block, quarter k = g % 8 / 2 of the half
      const int h = g / 8;
      const int k = g % 8 / 2;
      const F scale = V::mul(d, integer(b.scales[g]));
      for (int j = 0; j < 16; j += V::kLanes) {
        const int at = g % 2 * 16 + j;
        const I low = V::bits(V::load_u8(b.ql + 64 * h + k % 2 * 32 + at), k / 2 * 4, 15);
        const I q = V::plus_shifted(low, V::bits(V::load_u8(b.qh + 32 * h + at), 2 * k, 3), 4);
        V::store(dst + 16 * g + j, V::mul(scale, V::sub(V::to_float(q), V::set(32.0F))));
      }
    }
  }

  // Read in place: a copy on the stack would be written in one width and read in another, which stalls.
  template <class Block>
  static void take_blocks(const void* src, float* dst, std::size_t n, std::size_t block_size) {
    const auto* blocks = static_cast<const Block*>(src);
    for (std::size_t i = 0; i < n / block_size; ++i) take(blocks[i], dst + i * block_size);
  }

  static void run(Type type, const void* src, float* dst, std::size_t n) {
    using namespace formats;
    const std::size_t whole = n / V::kLanes * V::kLanes;  // of 2-byte floats; the rest is left to scalar
    const auto* bytes = static_cast<const unsigned char*>(src);
    switch (type) {
      case Type::kF16:
        for (std::size_t i = 0; i < whole; i += V::kLanes) V::store(dst + i, V::load_f16(bytes + 2 * i));
        return scalar::dequantize(type, bytes + 2 * whole, dst + whole, n - whole);
      case Type::kBF16:
        for (std::size_t i = 0; i < whole; i += V::kLanes) V::store(dst + i, V::load_bf16(bytes + 2 * i));
        return scalar::dequantize(type, bytes + 2 * whole, dst + whole, n - whole);
      case Type::kQ4_0:
        return take_blocks<BlockQ4_0>(src, dst, n, kSmallBlock);
      case Type::kQ4_1:
        return take_blocks<BlockQ4_1>(src, dst, n, kSmallBlock);
      case Type::kQ8_0:
        return take_blocks<BlockQ8_0>(src, dst, n, kSmallBlock);
      case Type::kQ2_K:
        return take_blocks<BlockQ2_K>(src, dst, n, kSuperBlock);
      case Type::kQ3_K:
        return take_blocks<BlockQ3_K>(src, dst, n, kSuperBlock);
      case Type::kQ4_K:
        return take_blocks<BlockQ4_K>(src, dst, n, kSuperBlock);
      case Type::kQ5_K:
        return take_blocks<BlockQ5_K>(src, dst, n, kSuperBlock);
      case Type::kQ6_K:
        return take_blocks<BlockQ6_K>(src, dst, n, kSuperBlock);
      default:
        return scalar::dequantize(type, src, dst, n);
    }
  }
};

}  // namespace wring::kernels::vector
