#include "base/portable_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace wring {
namespace {

// The distance in units of the last place of `expected`.
double ulps(double got, double expected) {
  const double ulp = std::nextafter(std::fabs(expected), INFINITY) - std::fabs(expected);
  return std::fabs(got - expected) / ulp;
}

TEST(PortableMath, ExpIsWithinTwoUlpOfTheTruth) {
  double worst = 0;
  for (double x = -744.9; x < 709.7; x += 0.0137) {
    worst =
        std::max(worst, ulps(portable_exp(x), static_cast<double>(std::exp(static_cast<long double>(x)))));
  }
  EXPECT_LE(worst, 2.0);
  EXPECT_EQ(portable_exp(0.0), 1.0);
  EXPECT_EQ(portable_exp(-INFINITY), 0.0);
  EXPECT_EQ(portable_exp(-1e4), 0.0);
  EXPECT_EQ(portable_exp(INFINITY), INFINITY);
  EXPECT_EQ(portable_exp(709.79), INFINITY);
  EXPECT_TRUE(std::isfinite(portable_exp(709.78)));
  EXPECT_TRUE(std::isnan(portable_exp(NAN)));
}

TEST(PortableMath, LogIsWithinTwoUlpOfTheTruth) {
  double worst = 0;
  const auto check = [&](double x) {
    worst =
        std::max(worst, ulps(portable_log(x), static_cast<double>(std::log(static_cast<long double>(x)))));
  };
  for (double x = 0.01; x < 3.0; x += 0.000131) check(x);
  for (double x = 1e-320; x < 1e300; x *= 1.37) check(x);
  check(std::nextafter(1.0, 0.0));
  check(std::nextafter(1.0, 2.0));
  EXPECT_LE(worst, 2.0);
  EXPECT_EQ(portable_log(1.0), 0.0);
  EXPECT_EQ(portable_log(0.0), -INFINITY);
  EXPECT_EQ(portable_log(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(portable_log(-1.0)));
  EXPECT_TRUE(std::isnan(portable_log(NAN)));
}

TEST(PortableMath, SineAndCosineHoldOverEveryRotaryAngle) {
  double worst = 0;
  const auto check = [&](double x) {
    worst = std::max(worst,
                     std::fabs(portable_sin(x) - static_cast<double>(std::sin(static_cast<long double>(x)))));
    worst = std::max(worst,
                     std::fabs(portable_cos(x) - static_cast<double>(std::cos(static_cast<long double>(x)))));
  };
  for (double x = -30; x < 30; x += 0.00137) check(x);
  for (double x = 1e-12; x < 0x1p24; x *= 1.0011) check(x);
  for (int n = 1; n < 10'000'000; n = n * 3 / 2 + 1) check(n * 1.5707963267948966);  // beside the zeros
  EXPECT_LE(worst, 3e-16);
  EXPECT_EQ(portable_sin(0.0), 0.0);
  EXPECT_EQ(portable_cos(0.0), 1.0);
  EXPECT_TRUE(std::isnan(portable_sin(INFINITY)));
  EXPECT_TRUE(std::isnan(portable_cos(0x1p25)));
}

TEST(PortableMath, SineIsRelativelyExactBesideItsZeros) {
  for (int n = 1; n < 5'000'000; n = n * 2 + 1) {
    const double x = n * 3.141592653589793;
    const double expected = static_cast<double>(std::sin(static_cast<long double>(x)));
    EXPECT_NEAR(portable_sin(x) / expected, 1.0, 1e-9) << n;
  }
}

TEST(PortableMath, PowMeetsItsBound) {
  for (const double base : {1.5, 10.0, 10'000.0, 500'000.0, 1e6}) {
    for (double y = -2; y <= 2; y += 0.0371) {
      const auto expected = std::pow(static_cast<long double>(base), static_cast<long double>(y));
      const double bound = 2e-16 * (2 + std::fabs(y * std::log(base)));
      EXPECT_LE(std::fabs(static_cast<double>(portable_pow(base, y) / expected - 1)), bound)
          << base << '^' << y;
    }
  }
}

}  // namespace
}  // namespace wring
