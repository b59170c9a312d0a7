// BF16 by BF16: the reference follows the instruction's definition and stays near the true product, AVX-512's
// source over SIMDe gives the reference's bits, and every level that runs here gives the same bits in any
// company.
#include <cmath>
#include <limits>
#include <memory>
#include <tuple>

#include "base/aligned_buffer.h"
#include "base/floats.h"
#include "kernels/levels.h"
#include "kernels/test_support.h"

namespace wring::kernels {

namespace {

struct Dots {
  std::string name;
  const Bf16Dots* dots;
};

/// In this order: the reference, its equals to the bit, and the CPU's own, which nothing here proves to
/// follow its definition.
std::vector<Dots> all_dots() {
  std::vector<Dots> found = {{"reference", &bf16_reference()}};
#ifdef WRING_HAS_SIMDE
  found.push_back({"simde-avx512", simde_packed().bf16});
#endif
  if (cpu_info().avx512_bf16) found.push_back({"cpu", &avx512::bf16_dots()});
  return found;
}

bool is_cpus(const Dots& level) {
  return level.name == "cpu";
}

/// Rows of BF16 whose stride is longer than they are, NaN beyond their ends, two bytes off alignment.
struct Rows {
  Rows(const std::vector<float>& values, std::size_t rows, std::size_t columns)
      : count(rows), k(columns), row_bytes(2 * k + 4), stored(2 + rows * row_bytes, std::byte{0xFF}) {
    for (std::size_t r = 0; r < count; ++r) {
      for (std::size_t i = 0; i < k; ++i) {
        const std::uint16_t bits = float_to_bf16(values[r * k + i]);
        std::memcpy(stored.data() + 2 + r * row_bytes + 2 * i, &bits, sizeof(bits));
      }
    }
  }
  const std::byte* row(std::size_t r) const { return stored.data() + 2 + r * row_bytes; }
  float at(std::size_t r, std::size_t i) const {
    std::uint16_t bits;
    std::memcpy(&bits, row(r) + 2 * i, sizeof(bits));
    return bf16_to_float(bits);
  }
  std::size_t count, k, row_bytes;
  std::vector<std::byte> stored;
};

Rows random_rows(std::size_t rows, std::size_t k, unsigned seed) {
  return {random_values(rows * k, seed), rows, k};
}

/// y of (tokens, rows) through tiles.
std::vector<float> product(const Bf16Dots& dots, const Rows& w, const Rows& x) {
  AlignedBuffer<float> tiled_w, tiled_x;
  const std::size_t w_floats = tiled_floats(w.count, dots.tile_height, w.k / 2);
  const std::size_t x_floats = tiled_floats(x.count, dots.tile_width, w.k / 2);
  tiled_w.reserve(w_floats);
  tiled_x.reserve(x_floats);
  // NaN where tiling must not leave anything unwritten.
  std::fill_n(tiled_w.data(), w_floats, NAN);
  std::fill_n(tiled_x.data(), x_floats, NAN);
  dots.tile_rows(w.row(0), w.row_bytes, w.count, w.k, tiled_w.data());
  for (std::size_t t = 0; t < x.count; t += dots.tile_width) {  // tile by tile, as threads do
    dots.tile_tokens(x.row(t), x.row_bytes, std::min(dots.tile_width, x.count - t), x.k,
                     tiled_x.data() + tiled_floats(t, dots.tile_width, x.k / 2));
  }
  std::vector<float> y(x.count * (w.count + 3), -1.0F);
  dots.matmul(tiled_w.data(), w.count, tiled_x.data(), x.count, w.k, y.data(), w.count + 3);
  return y;
}

/// y of one token, without tiles.
std::vector<float> product_of_one(const Bf16Dots& dots, const Rows& w, const Rows& x, std::size_t token) {
  std::vector<std::uint16_t> alone(x.k);
  std::memcpy(alone.data(), x.row(token), 2 * x.k);
  std::vector<float> y(w.count);
  dots.matvec(w.row(0), w.row_bytes, w.count, alone.data(), w.k, y.data());
  return y;
}

constexpr std::size_t kSizes[] = {2, 30, 32, 34, 576, 1538};

TEST(Bf16, EveryShapeGivesTheReferencesBitsAndATokenAloneGivesTheSame) {
  for (const std::size_t k : kSizes) {
    for (const std::size_t rows : {1, 7, 17}) {
      for (const std::size_t tokens : {1, 2, 3, 5, 13}) {
        const Rows w = random_rows(rows, k, 1), x = random_rows(tokens, k, 2);
        const auto expected = product(bf16_reference(), w, x);
        for (const Dots& level : all_dots()) {
          const auto got = product(*level.dots, w, x);
          if (!is_cpus(level)) {
            EXPECT_TRUE(same_bits(expected, got)) << level.name << ' ' << rows << 'x' << tokens << 'x' << k;
          }
          for (std::size_t t = 0; t < tokens; ++t) {
            const auto alone = product_of_one(*level.dots, w, x, t);
            EXPECT_TRUE(same_bits(got.data() + t * (rows + 3), alone.data(), rows))
                << level.name << ' ' << rows << 'x' << tokens << 'x' << k << " token " << t;
          }
        }
      }
    }
  }
}

TEST(Bf16, ErrorStaysWithinTheBoundsOfRoundingAndOfSixteenPartialSums) {
  // Rounding an activation moves it by at most 2^-8 of itself; then chains of k/16 fused steps and a tree of
  // 4 additions, in float32. Values are far from subnormals here.
  for (const std::size_t k : kSizes) {
    constexpr std::size_t kRows = 7, kTokens = 5;
    std::mt19937 generator(3);
    std::normal_distribution<float> normal;
    std::vector<float> weights(kRows * k), inputs(kTokens * k);
    for (float& v : weights) v = normal(generator);
    for (float& v : inputs) v = normal(generator);
    const Rows w(weights, kRows, k);
    for (const Dots& level : all_dots()) {
      Rows x(inputs, kTokens, k);
      for (std::size_t t = 0; t < kTokens; ++t) {
        std::vector<std::uint16_t> rounded(k);
        level.dots->round(inputs.data() + t * k, k, rounded.data());
        std::memcpy(x.stored.data() + 2 + t * x.row_bytes, rounded.data(), 2 * k);
      }
      const auto y = product(*level.dots, w, x);
      for (std::size_t t = 0; t < kTokens; ++t) {
        for (std::size_t r = 0; r < kRows; ++r) {
          double exact = 0, exact_of_rounded = 0, size = 0;
          for (std::size_t i = 0; i < k; ++i) {
            const double weight = w.at(r, i), input = inputs[t * k + i];
            exact += weight * input;
            exact_of_rounded += weight * x.at(t, i);
            size += std::fabs(weight * input);
          }
          const double got = y[t * (kRows + 3) + r];
          const double sums = (static_cast<double>(k) / 16 + 6) * 0x1p-24 * 1.01;
          EXPECT_LE(std::fabs(got - exact_of_rounded), sums * size) << level.name << ' ' << k;
          EXPECT_LE(std::fabs(got - exact), (0x1p-8 + sums) * size) << level.name << ' ' << k;
        }
      }
    }
  }
}

/// The product of one row with one token, given as the pairs {lower, upper} 0 and 16, which share a partial
/// sum.
float of_two_pairs(const Bf16Dots& dots, const float (&w)[4], const float (&x)[4]) {
  std::vector<float> row(34, 0.0F), token(34, 0.0F);
  for (const std::size_t i : {0, 1, 2, 3}) {
    const std::size_t at = i < 2 ? i : 30 + i;
    row[at] = w[i];
    token[at] = x[i];
  }
  const Rows a(row, 1, 34), b(token, 1, 34);
  const float y = product(dots, a, b)[0];
  EXPECT_TRUE(same_bits(&y, product_of_one(dots, a, b, 0).data(), 1));
  return y;
}

TEST(Bf16, APairIsAddedUpperHalfFirstFusedAndWithoutSubnormals) {
  for (const Dots& level : all_dots()) {
    if (is_cpus(level)) continue;
    const Bf16Dots& dots = *level.dots;
    const float ones[] = {1, 1, 1, 1};
    // (2^24 − 2^24) + 1, not (2^24 + 1) − 2^24.
    EXPECT_EQ(of_two_pairs(dots, {0, 0x1p24F, 1, -0x1p24F}, ones), 1.0F) << level.name;
    // One by one, not 2^24 + (1 + 1).
    EXPECT_EQ(of_two_pairs(dots, {0, 0x1p24F, 1, 1}, ones), 0x1p24F) << level.name;
    // The product 2^128 is not rounded (to infinity) before it is added.
    EXPECT_EQ(of_two_pairs(dots, {0, -0x1p127F, 0, 0x1p64F}, {0, 1, 0, 0x1p64F}), 0x1p127F) << level.name;
    // A subnormal operand, and a subnormal result.
    EXPECT_EQ(of_two_pairs(dots, {0, 0, 0x1p-130F, 0}, {0, 0, 0x1p100F, 0}), 0.0F) << level.name;
    EXPECT_EQ(of_two_pairs(dots, {0, 0, 0x1p-70F, 0}, {0, 0, 0x1p-70F, 0}), 0.0F) << level.name;
  }
}

TEST(Bf16, APartialSumOfMinusZeroSurvivesTheTail) {
  // −2^-100 · 2^-100 underflows to −0; padding and the tail must leave it so.
  for (const std::size_t k : {32, 34}) {
    const Rows w(std::vector<float>(k, -0x1p-100F), 1, k), x(std::vector<float>(2 * k, 0x1p-100F), 2, k);
    for (const Dots& level : all_dots()) {
      for (const float y : {product(*level.dots, w, x)[0], product_of_one(*level.dots, w, x, 0)[0]})
        EXPECT_TRUE(y == 0.0F && std::signbit(y)) << level.name << ' ' << k;
    }
  }
}

TEST(Bf16, InfinityAndNanReachTheirSumsAndNoOthers) {
  constexpr std::size_t kRows = 9, kTokens = 4, k = 70;
  std::vector<float> weights(kRows * k, 1.0F), inputs(kTokens * k, 1.0F);
  weights[3 * k + 69] = INFINITY;
  weights[5 * k] = NAN;
  inputs[2 * k + 35] = -INFINITY;
  inputs[3 * k + 68] = NAN;
  const Rows w(weights, kRows, k), x(inputs, kTokens, k);
  for (const Dots& level : all_dots()) {
    const auto y = product(*level.dots, w, x);
    for (std::size_t t = 0; t < kTokens; ++t) {
      const auto alone = product_of_one(*level.dots, w, x, t);
      EXPECT_TRUE(same_bits(y.data() + t * (kRows + 3), alone.data(), kRows)) << level.name;
      for (std::size_t r = 0; r < kRows; ++r) {
        const float got = y[t * (kRows + 3) + r];
        if (r == 5 || t == 3 || (r == 3 && t == 2)) {
          EXPECT_TRUE(std::isnan(got)) << level.name << ' ' << r << ' ' << t;
        } else {
          EXPECT_EQ(got, r == 3 ? INFINITY : t == 2 ? -INFINITY : 70.0F) << level.name;
        }
      }
    }
  }
}

TEST(Bf16, RoundsToTheNearestEvenAndKeepsWhatIsNoNumber) {
  const float max = std::numeric_limits<float>::max();
  const std::pair<float, std::uint16_t> known[] = {
      {1.0F, 0x3F80},      {0x1.01p0F, 0x3F80},  {0x1.03p0F, 0x3F82},  {0x1.010002p0F, 0x3F81},
      {max, 0x7F80},       {-max, 0xFF80},       {INFINITY, 0x7F80},   {0.0F, 0x0000},
      {-0.0F, 0x8000},     {0x1p-130F, 0x0000},  {-0x1p-130F, 0x8000}, {0x1p-126F, 0x0080},
      {-INFINITY, 0xFF80}, {-0x1.03p9F, 0xC402},
  };
  for (const Dots& level : all_dots()) {
    for (const auto& [value, bits] : known) {
      std::uint16_t got;
      level.dots->round(&value, 1, &got);
      EXPECT_EQ(got, bits) << level.name << ' ' << value;
    }
    std::uint16_t nan;
    const float not_a_number = NAN;
    level.dots->round(&not_a_number, 1, &nan);
    EXPECT_TRUE(std::isnan(bf16_to_float(nan)));
    for (const std::size_t n : {1, 15, 16, 17, 100}) {
      const auto x = random_values(n, 5, 1e38F);
      std::vector<std::uint16_t> expected(n), got(n + 1, 0x1234);
      bf16_reference().round(x.data(), n, expected.data());
      level.dots->round(x.data(), n, got.data());
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), got.begin())) << level.name << ' ' << n;
      EXPECT_EQ(got[n], 0x1234) << level.name;
    }
  }
}

TEST(Bf16, ThePeakLoopCountsWhatItDid) {
  for (const Dots& level : all_dots()) {
    float sink = 0;
    const std::size_t one = level.dots->peak_loop(1, &sink);
    EXPECT_GT(one, 0U);
    EXPECT_EQ(level.dots->peak_loop(10, &sink), 10 * one);
    EXPECT_GE(sink, 20.0F);
  }
}

}  // namespace
}  // namespace wring::kernels
