// The short float formats, converted one value at a time: bit-exact, round to nearest even, the same on every
// CPU.
#pragma once

#include <bit>
#include <cstdint>

namespace wring {

inline float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// NaN stays a (quiet) NaN; overflow becomes infinity.
inline std::uint16_t float_to_bf16(float value) {
  const auto u = std::bit_cast<std::uint32_t>(value);
  if ((u & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((u >> 16) | 0x0040U);
  return static_cast<std::uint16_t>((u + 0x7FFFU + ((u >> 16) & 1U)) >> 16);
}

inline float f16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1FU;
  const std::uint32_t mantissa = bits & 0x3FFU;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000U | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;  // subnormal: exact
  return sign != 0 ? -magnitude : magnitude;
}

/// Values from 65520 on become infinity, as IEEE 754 rounds.
inline std::uint16_t float_to_f16(float value) {
  const auto u = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((u >> 16) & 0x8000U);
  const std::uint32_t magnitude = u & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U)
    return static_cast<std::uint16_t>(sign | 0x7E00U | ((magnitude >> 13) & 0x3FFU));
  if (magnitude >= 0x477FF000U) return static_cast<std::uint16_t>(sign | 0x7C00U);
  if (magnitude < 0x38800000U) {
    // Below 2^-14: adding 0.5 puts the bits of weight 2^-24 last, and the addition rounds to nearest even.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000U));
  }
  const std::uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13) & 1U) - 0x38000000U;
  return static_cast<std::uint16_t>(sign | (rounded >> 13));
}

/// FP8 E4M3 without infinities: sign, 4 bits of exponent (bias 7), 3 of mantissa; 0x7F is NaN.
inline float e4m3_to_float(std::uint8_t code) {
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x80U) << 24;
  const std::uint32_t magnitude = code & 0x7FU;
  if (magnitude == 0x7F) return std::bit_cast<float>(sign | 0x7FC00000U);
  if (magnitude >= 8) return std::bit_cast<float>(sign | ((magnitude << 20) + (120U << 23)));
  const float small = static_cast<float>(magnitude) * 0x1p-9F;
  return sign != 0 ? -small : small;
}

/// Magnitudes above 448, the largest, become it; NaN stays NaN.
inline std::uint8_t float_to_e4m3(float value) {
  const auto u = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint8_t>((u >> 24) & 0x80U);
  const std::uint32_t magnitude = u & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return static_cast<std::uint8_t>(sign | 0x7FU);
  if (magnitude >= 0x43E00000U) return static_cast<std::uint8_t>(sign | 0x7EU);  // 448
  if (magnitude < 0x3C800000U) {
    // Below 2^-6: adding 2^14 puts the bits of weight 2^-9 last.
    const float shifted = std::bit_cast<float>(magnitude) + 0x1p14F;
    return static_cast<std::uint8_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x46800000U));
  }
  const std::uint32_t rounded = magnitude + 0x7FFFFU + ((magnitude >> 20) & 1U) - (120U << 23);
  return static_cast<std::uint8_t>(sign | (rounded >> 20));
}

/// FP4 E2M1 in the low four bits: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
inline float e2m1_to_float(std::uint8_t code) {
  const std::uint32_t magnitude = code & 7U;
  const float value = magnitude >= 2 ? std::bit_cast<float>((magnitude << 22) + (126U << 23))
                                     : static_cast<float>(magnitude) * 0.5F;
  return (code & 8U) != 0 ? -value : value;
}

/// Ties go to the even code; magnitudes above 6 become 6. Precondition: not NaN.
inline std::uint8_t float_to_e2m1(float value) {
  const auto u = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint8_t>((u >> 28) & 8U);
  const std::uint32_t magnitude = u & 0x7FFFFFFFU;
  if (magnitude >= 0x40C00000U) return static_cast<std::uint8_t>(sign | 7U);  // 6
  if (magnitude < 0x3F800000U) {
    // Below 1: adding 2^22 puts the bits of weight 0.5 last.
    const float shifted = std::bit_cast<float>(magnitude) + 0x1p22F;
    return static_cast<std::uint8_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x4A800000U));
  }
  const std::uint32_t rounded = magnitude + 0x1FFFFFU + ((magnitude >> 22) & 1U) - (126U << 23);
  return static_cast<std::uint8_t>(sign | (rounded >> 22));
}

}  // namespace wring
