// The vector templates over sixteen lanes of plain C++. AVX-512 hardware is rare where tests run; this level
// runs everywhere and goes through exactly the code that the AVX-512 level goes through, but for the one-line
// wrappers of avx512/vec.h.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "base/floats.h"
#include "kernels/test_support.h"
#include "kernels/vector/table.h"

namespace wring::kernels {
namespace {

struct Lanes {
  std::array<float, 16> at;
};
struct Integers {
  std::array<std::int32_t, 16> at;
};

struct Emulated {
  static constexpr int kLanes = 16;
  static constexpr int kRowTile = 8;
  static constexpr int kTokenTile = 3;
  static constexpr int kStreams = 8;
  static constexpr int kAttentionTile = 6;

  using F = Lanes;
  using I = Integers;
  using M = std::array<bool, 16>;
  using Eight = std::array<float, 8>;

  template <class Function>
  static F each(Function f) {
    F result;
    for (int i = 0; i < 16; ++i) result.at[i] = f(i);
    return result;
  }
  template <class Function>
  static I each_integer(Function f) {
    I result;
    for (int i = 0; i < 16; ++i) result.at[i] = f(i);
    return result;
  }

  static F zero() { return set(0.0F); }
  static F set(float value) {
    return each([&](int) { return value; });
  }
  static F padding() { return set(-0.0F); }
  static F load(const float* p) {
    return each([&](int i) { return p[i]; });
  }
  static void store(float* p, const F& a) { std::copy(a.at.begin(), a.at.end(), p); }
  static F load_first(const float* p, int n) {
    return each([&](int i) { return i < n ? p[i] : 0.0F; });
  }
  static void store_first(float* p, const F& a, int n) { std::copy_n(a.at.begin(), std::min(n, 16), p); }

  static F add(const F& a, const F& b) {
    return each([&](int i) { return a.at[i] + b.at[i]; });
  }
  static F sub(const F& a, const F& b) {
    return each([&](int i) { return a.at[i] - b.at[i]; });
  }
  static F mul(const F& a, const F& b) {
    return each([&](int i) { return a.at[i] * b.at[i]; });
  }
  static F div(const F& a, const F& b) {
    return each([&](int i) { return a.at[i] / b.at[i]; });
  }
  static F fma(const F& a, const F& b, const F& c) {
    return each([&](int i) { return std::fma(a.at[i], b.at[i], c.at[i]); });
  }
  static void accumulate(F& sum, const F& a, const F& b) { sum = fma(a, b, sum); }
  static F max(const F& a, const F& b) {
    return each([&](int i) { return a.at[i] > b.at[i] ? a.at[i] : b.at[i]; });
  }
  static F negate(const F& a) {
    return each([&](int i) { return -a.at[i]; });
  }
  static F abs(const F& a) {
    return each([&](int i) { return std::fabs(a.at[i]); });
  }
  static F with_sign_of(const F& magnitude, const F& sign) {
    return each([&](int i) { return std::copysign(magnitude.at[i], sign.at[i]); });
  }

  static M less(const F& a, const F& b) {
    M mask;
    for (int i = 0; i < 16; ++i) mask[i] = a.at[i] < b.at[i];
    return mask;
  }
  static M not_less_equal(const F& a, const F& b) {
    M mask;
    for (int i = 0; i < 16; ++i) mask[i] = !(a.at[i] <= b.at[i]);
    return mask;
  }
  static M range(int begin, int end) {
    M mask;
    for (int i = 0; i < 16; ++i) mask[i] = i >= begin && i < end;
    return mask;
  }
  static F select(const M& mask, const F& yes, const F& no) {
    return each([&](int i) { return mask[i] ? yes.at[i] : no.at[i]; });
  }
  static F scale_by_power(const F& p, const F& shifted) {
    return each([&](int i) {
      return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p.at[i]) +
                                  (std::bit_cast<std::uint32_t>(shifted.at[i]) << 23));
    });
  }

  static float max_of(const F& a) {
    return std::reduce(a.at.begin(), a.at.end(), a.at[0], [](float x, float y) { return x > y ? x : y; });
  }
  static float first_of(const F& a) { return a.at[0]; }
  static Eight fold(const F* parts) {
    Eight p;
    for (int i = 0; i < 8; ++i) p[i] = parts[0].at[i] + parts[0].at[i + 8];
    return p;
  }
  static float tree_eight(Eight p) {
    for (int width = 4; width >= 1; width /= 2) {
      for (int i = 0; i < width; ++i) p[i] += p[i + width];
    }
    return p[0];
  }
  static void tree_eight_by_four(const Eight (&a)[4], float* sums) {
    for (int i = 0; i < 4; ++i) sums[i] = tree_eight(a[i]);
  }
  static float square_root(float x) { return std::sqrt(x); }

  static I load_u8(const std::uint8_t* p) {
    return each_integer([&](int i) { return std::int32_t{p[i]}; });
  }
  static I load_i8(const std::int8_t* p) {
    return each_integer([&](int i) { return std::int32_t{p[i]}; });
  }
  static I bits(const I& a, int shift, int mask) {
    return each_integer([&](int i) { return a.at[i] >> shift & mask; });
  }
  static I plus_shifted(const I& low, const I& high, int shift) {
    return each_integer([&](int i) { return low.at[i] + (high.at[i] << shift); });
  }
  static F to_float(const I& a) {
    return each([&](int i) { return static_cast<float>(a.at[i]); });
  }
  static std::uint16_t half(const void* p, int i) {
    std::uint16_t bits;
    std::memcpy(&bits, static_cast<const char*>(p) + 2 * i, sizeof(bits));
    return bits;
  }
  static F load_bf16(const void* p) {
    return each([&](int i) { return bf16_to_float(half(p, i)); });
  }
  // As the hardware's conversion makes it.
  static float quiet(float x) {
    return x == x ? x : std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) | 0x00400000U);
  }
  static float f16_to_float(std::uint16_t bits) { return quiet(wring::f16_to_float(bits)); }
  static void store_f16(std::uint16_t* p, const F& a) {
    for (int i = 0; i < 16; ++i) p[i] = float_to_f16(a.at[i]);
  }
  static F load_f16(const void* p) {
    return each([&](int i) { return f16_to_float(half(p, i)); });
  }
  static F load_twice(const float* p) {
    return each([&](int i) { return p[i / 2]; });
  }
  static F swap_pairs(const F& a) {
    return each([&](int i) { return a.at[i ^ 1]; });
  }
  static F negate_even(const F& a) {
    return each([&](int i) { return i % 2 == 0 ? -a.at[i] : a.at[i]; });
  }

  struct DoubleSums {
    double part[16] = {};

    void add(int /*index*/, const F& a) {
      for (int i = 0; i < 16; ++i) part[i] += static_cast<double>(a.at[i]);
    }
    double total() const {
      std::array<double, 16> p;
      std::copy_n(part, 16, p.begin());
      for (int width = 8; width >= 1; width /= 2) {
        for (int i = 0; i < width; ++i) p[i] += p[i + width];
      }
      return p[0];
    }
  };
};

}  // namespace

const KernelTable& emulated_sixteen_lanes() {
  static const KernelTable table = vector::make_table<Emulated>(
      Isa::kAvx512, {kernels_for(Isa::kScalar).quantize_row, kernels_for(Isa::kScalar).packed_matmul,
                     kernels_for(Isa::kScalar).byte_loop});
  return table;
}

}  // namespace wring::kernels
