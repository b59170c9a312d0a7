// Argument reduction after Cody and Waite (Software Manual for the Elementary Functions, 1980); the series
// are the Taylor series of the functions, long enough that the first term left out is below half an ulp on
// the reduced range.
#include "base/portable_math.h"

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace wring {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kRounder = 0x1.8p52;  // adding it rounds to an integer, to nearest even

// ln 2: the first piece has 32 significant bits, so that n · kLn2High is exact for |n| < 2^20.
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

// π/2 in pieces of 28 bits: n · piece is exact for n < 2^25.
constexpr double kHalfPi1 = 0x1.921fb54p+0;
constexpr double kHalfPi2 = 0x1.10b4610p-30;
constexpr double kHalfPi3 = 0x1.a626330p-58;
constexpr double kHalfPi4 = 0x1.45c06e0e68948p-86;

double power_of_two(int n) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
}

// x = n · π/2 + high + low, |high| ≤ π/4 and a little.
struct Reduced {
  int quadrant;
  double high, low;
};

Reduced reduce(double x) {
  const double n = (x * 0x1.45f306dc9c883p-1 + kRounder) - kRounder;
  const double a = (x - n * kHalfPi1);  // exact: the products are, and x is near n · π/2
  const double b = n * kHalfPi2;
  const double high = a - b;
  // What the subtraction lost (Knuth's two-sum), and the lower pieces.
  const double b_seen = a - high;
  const double lost = (a - (high + b_seen)) - (b - b_seen);
  const double low = lost - n * kHalfPi3 - n * kHalfPi4;
  const double sum = high + low;
  return {static_cast<int>(static_cast<std::int64_t>(n) & 3), sum, (high - sum) + low};
}

double sin_series(double x, double low) {
  const double s = x * x;
  double p = -1.0 / 1307674368000.0;  // 15!
  p = p * s + 1.0 / 6227020800.0;
  p = p * s - 1.0 / 39916800.0;
  p = p * s + 1.0 / 362880.0;
  p = p * s - 1.0 / 5040.0;
  p = p * s + 1.0 / 120.0;
  p = p * s - 1.0 / 6.0;
  return x + (x * s * p + low * (1.0 - 0.5 * s));
}

double cos_series(double x, double low) {
  const double s = x * x;
  double p = 1.0 / 20922789888000.0;  // 16!
  p = p * s - 1.0 / 87178291200.0;
  p = p * s + 1.0 / 479001600.0;
  p = p * s - 1.0 / 3628800.0;
  p = p * s + 1.0 / 40320.0;
  p = p * s - 1.0 / 720.0;
  p = p * s + 1.0 / 24.0;
  const double half = 0.5 * s;
  const double one = 1.0 - half;
  return one + (((1.0 - one) - half) + (s * s * p - x * low));
}

}  // namespace

double portable_exp(double x) {
  if (!(x == x)) return x;
  if (x > 0x1.62e42fefa39efp+9) return kInfinity;
  if (x < -746.0) return 0.0;
  const double n = (x * 0x1.71547652b82fep+0 + kRounder) - kRounder;
  const double high = x - n * kLn2High;  // exact
  const double low = n * kLn2Low;
  const double r = high - low;     // |r| ≤ 0.35
  double p = 1.0 / 87178291200.0;  // 14!
  for (const double factorial : {6227020800.0, 479001600.0, 39916800.0, 3628800.0, 362880.0, 40320.0, 5040.0,
                                 720.0, 120.0, 24.0, 6.0, 2.0}) {
    p = p * r + 1.0 / factorial;
  }
  const double lost = (high - r) - low;
  const double value = 1.0 + (r + (lost + r * r * p));
  // Two factors, each a normal number: subnormal results are rounded once.
  const int whole = static_cast<int>(n);
  const int half = whole / 2;
  return value * power_of_two(half) * power_of_two(whole - half);
}

double portable_log(double x) {
  if (!(x == x)) return x;
  if (x < 0) return kNan;
  if (x == 0) return -kInfinity;
  if (x == kInfinity) return x;
  int exponent = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    exponent = -54;
  }
  const auto bits = std::bit_cast<std::uint64_t>(x);
  exponent += static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL);
  if (m > 0x1.6a09e667f3bcdp+0) {  // √2: m lies in (√½, √2]
    m *= 0.5;
    ++exponent;
  }
  // ln(1 + f) = f − f²/2 + s·(f²/2 + R), s = f/(2 + f), R = 2s²(1/3 + s²/5 + s⁴/7 …): the atanh series,
  // arranged so that the leading terms are exact or nearly so.
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double p = 0;
  for (const double odd : {23.0, 21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0})
    p = p * z + 2.0 / odd;
  const double half_square = 0.5 * f * f;
  const double n = exponent;
  return n * kLn2High + (f - (half_square - (s * (half_square + z * p) + n * kLn2Low)));
}

double portable_sin(double x) {
  if (!(x >= -0x1p24 && x <= 0x1p24)) return kNan;
  const Reduced r = reduce(x);
  const double value = (r.quadrant & 1) != 0 ? cos_series(r.high, r.low) : sin_series(r.high, r.low);
  return (r.quadrant & 2) != 0 ? -value : value;
}

double portable_cos(double x) {
  if (!(x >= -0x1p24 && x <= 0x1p24)) return kNan;
  const Reduced r = reduce(x);
  const double value = (r.quadrant & 1) != 0 ? sin_series(r.high, r.low) : cos_series(r.high, r.low);
  return ((r.quadrant + 1) & 2) != 0 ? -value : value;
}

double portable_pow(double x, double y) {
  return portable_exp(y * portable_log(x));
}

}  // namespace wring
