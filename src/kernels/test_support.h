// For the kernels' tests: the levels this CPU can run, random numbers of every size, comparison to the bit.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "kernels/kernel_table.h"

namespace wring::kernels {

/// The 16-lane templates over plain C++ lanes: they stand in for AVX-512 where the CPU lacks it
/// (emulated_test_level.cc).
const KernelTable& emulated_sixteen_lanes();

/// Scalar's table with all that is AVX-512's own in packed mode, over SIMDe (simde_test_level.cc). Defined
/// where WRING_HAS_SIMDE is.
const KernelTable& simde_packed();

struct Level {
  std::string name;
  const KernelTable* table;
};

/// Every level but scalar that can run here.
inline std::vector<Level> levels() {
  std::vector<Level> found = {{"emulated16", &emulated_sixteen_lanes()}};
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    if (isa <= cpu_info().best) found.push_back({std::string(isa_name(isa)), &kernels_for(isa)});
  }
  return found;
}

inline const KernelTable& reference() {
  return kernels_for(Isa::kScalar);
}

/// Mostly values near 1; among them zeros of both signs, subnormal, tiny and large ones.
inline std::vector<float> random_values(std::size_t n, unsigned seed, float large = 1e4F) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) {
    value = normal(generator);
    switch (generator() % 64) {
      case 0:
        value = 0.0F;
        break;
      case 1:
        value = -0.0F;
        break;
      case 2:
        value *= 1e-42F;
        break;
      case 3:
        value *= 1e-25F;
        break;
      case 4:
        value *= large;
        break;
      default:
        break;
    }
  }
  return values;
}

/// Equal to the bit; any NaN equals any other.
inline ::testing::AssertionResult same_bits(const float* expected, const float* got, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    if (std::memcmp(expected + i, got + i, sizeof(float)) == 0) continue;
    if (std::isnan(expected[i]) && std::isnan(got[i])) continue;
    return ::testing::AssertionFailure() << "value " << i << " of " << n << ": " << std::hexfloat
                                         << expected[i] << " expected, " << got[i] << " got";
  }
  return ::testing::AssertionSuccess();
}

inline ::testing::AssertionResult same_bits(const std::vector<float>& expected,
                                            const std::vector<float>& got) {
  if (expected.size() != got.size()) return ::testing::AssertionFailure() << "sizes differ";
  return same_bits(expected.data(), got.data(), expected.size());
}

}  // namespace wring::kernels
