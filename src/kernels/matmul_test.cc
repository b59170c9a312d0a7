// The matrix product: equal to the bit on every level and in every company, and near the true product.
#include <cmath>
#include <tuple>

#include "base/aligned_buffer.h"
#include "base/floats.h"
#include "kernels/test_support.h"

namespace wring::kernels {
namespace {

/// y of `tokens` rows of `y_stride`, through tiles, and by matvec too for a single token.
void multiply(const KernelTable& table, const float* w, std::size_t stride, std::size_t rows, const float* x,
              std::size_t tokens, std::size_t k, float* y, std::size_t y_stride) {
  // NaN where tiling must not leave anything unwritten.
  AlignedBuffer<float> tiled_w, tiled_x;
  const std::size_t w_floats = tiled_floats(rows, table.tile_height, k);
  const std::size_t x_floats = tiled_floats(tokens, table.tile_width, k);
  tiled_w.reserve(w_floats);
  tiled_x.reserve(x_floats);
  std::fill_n(tiled_w.data(), w_floats, NAN);
  std::fill_n(tiled_x.data(), x_floats, NAN);
  table.tile_rows(w, stride, rows, k, tiled_w.data());
  table.tile_tokens(x, stride, tokens, k, tiled_x.data());
  table.matmul(tiled_w.data(), rows, tiled_x.data(), tokens, k, y, y_stride);
  if (tokens != 1) return;
  std::vector<float> alone(rows);
  table.matvec(formats::QuantType::kF32, w, stride * sizeof(float), rows, x, k, alone.data());
  EXPECT_TRUE(same_bits(y, alone.data(), rows)) << "matvec, " << rows << " rows, k " << k;
}

std::vector<float> product(const KernelTable& table, const std::vector<float>& w, std::size_t rows,
                           const std::vector<float>& x, std::size_t tokens, std::size_t k,
                           std::size_t stride) {
  std::vector<float> y(tokens * (rows + 3), -1.0F);
  multiply(table, w.data(), stride, rows, x.data(), tokens, k, y.data(), rows + 3);
  return y;
}

TEST(Matmul, EveryLevelGivesTheReferencesBitsForEveryShape) {
  const std::tuple<int, int, int> shapes[] = {
      {1, 1, 1},     {1, 1, 16},   {4, 3, 15},     {5, 7, 17},  {3, 2, 31},   {16, 1, 64},  {9, 1, 100},
      {13, 5, 24},   {8, 4, 8},    {4, 6, 512},    {7, 13, 48}, {4, 11, 513}, {6, 8, 1040}, {4, 60, 4200},
      {4, 100, 768}, {17, 9, 768}, {10, 33, 1535}, {2, 2, 0},   {8, 23, 520}};
  for (const auto& [rows, tokens, k] : shapes) {
    const std::size_t stride = static_cast<std::size_t>(k) + 5;
    const auto w = random_values(static_cast<std::size_t>(rows) * stride, 1);
    const auto x = random_values(static_cast<std::size_t>(tokens) * stride, 2);
    const auto expected = product(reference(), w, rows, x, tokens, k, stride);
    for (const Level& level : levels()) {
      EXPECT_TRUE(same_bits(expected, product(*level.table, w, rows, x, tokens, k, stride)))
          << level.name << ' ' << rows << 'x' << tokens << 'x' << k;
    }
  }
}

TEST(Matmul, OrderIsTheSixteenPartialSumsAndTheTree) {
  // Every k from 0 to 70 puts the end of the sum at another lane. The expected value is built from the
  // definition alone.
  const auto w = random_values(80, 3);
  const auto x = random_values(80, 4);
  for (std::size_t k = 0; k <= 70; ++k) {
    float p[16] = {};
    for (std::size_t i = 0; i < k; ++i) p[i % 16] = std::fma(w[i], x[i], p[i % 16]);
    for (int i = 0; i < 8; ++i) p[i] += p[i + 8];
    for (int i = 0; i < 4; ++i) p[i] += p[i + 4];
    for (int i = 0; i < 2; ++i) p[i] += p[i + 2];
    const float expected = p[0] + p[1];
    float got = -1;
    multiply(reference(), w.data(), 80, 1, x.data(), 1, k, &got, 1);
    EXPECT_TRUE(same_bits(&expected, &got, 1)) << k;
    for (const Level& level : levels()) {
      multiply(*level.table, w.data(), 80, 1, x.data(), 1, k, &got, 1);
      EXPECT_TRUE(same_bits(&expected, &got, 1)) << level.name << ' ' << k;
    }
  }
}

TEST(Matmul, StoredSixteenBitWeightsGiveTheProductOfTheirFloats) {
  for (const auto& [rows, k] :
       {std::pair<std::size_t, std::size_t>{1, 1}, {5, 15}, {9, 100}, {13, 768}, {4, 1535}}) {
    const auto values = random_values(rows * k, 11);
    const auto x = random_values(k, 12);
    for (const auto type : {formats::QuantType::kF16, formats::QuantType::kBF16}) {
      // One byte off alignment, as a safetensors file may have it.
      std::vector<std::byte> stored(rows * k * 2 + 1);
      std::vector<float> floats(rows * k);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const bool half = type == formats::QuantType::kF16;
        const std::uint16_t bits = half ? float_to_f16(values[i]) : float_to_bf16(values[i]);
        std::memcpy(stored.data() + 1 + 2 * i, &bits, 2);
        floats[i] = half ? f16_to_float(bits) : bf16_to_float(bits);
      }
      std::vector<float> expected(rows);
      reference().matvec(formats::QuantType::kF32, floats.data(), k * sizeof(float), rows, x.data(), k,
                         expected.data());
      std::vector<Level> all = levels();
      all.push_back({"scalar", &reference()});
      for (const Level& level : all) {
        std::vector<float> got(rows);
        level.table->matvec(type, stored.data() + 1, k * 2, rows, x.data(), k, got.data());
        EXPECT_TRUE(same_bits(expected, got)) << level.name << ' ' << formats::name_of(type) << ' ' << k;
      }
    }
  }
}

TEST(Matmul, APartialSumOfMinusZeroSurvivesTheTail) {
  // −2^-100 · 2^-100 underflows to −0; the group's other lanes and the tail must leave it so.
  std::vector<float> w(17, 0.0F);
  std::vector<float> x(17, 0.0F);
  for (int i = 0; i < 16; ++i) {
    w[i] = -0x1p-100F;
    x[i] = 0x1p-100F;
  }
  w[16] = -0x1p-100F;
  x[16] = 0x1p-100F;
  for (const std::size_t k : {16, 17}) {
    float expected = 1;
    multiply(reference(), w.data(), 17, 1, x.data(), 1, k, &expected, 1);
    EXPECT_TRUE(expected == 0.0F && std::signbit(expected));
    for (const Level& level : levels()) {
      float got = 1;
      multiply(*level.table, w.data(), 17, 1, x.data(), 1, k, &got, 1);
      EXPECT_TRUE(same_bits(&expected, &got, 1)) << level.name << ' ' << k;
    }
  }
}

TEST(Matmul, InfinityBeyondTheEndIsNotRead) {
  std::vector<float> w(6 * 20, INFINITY);
  std::vector<float> x(5 * 20, NAN);
  for (int r = 0; r < 6; ++r) std::fill_n(w.begin() + r * 20, 9, 2.0F);
  for (int t = 0; t < 5; ++t) std::fill_n(x.begin() + t * 20, 9, 3.0F);
  for (const Level& level : levels()) {
    for (const std::size_t tokens : {1, 5}) {
      std::vector<float> y(tokens * 6, -1.0F);
      multiply(*level.table, w.data(), 20, 6, x.data(), tokens, 9, y.data(), 6);
      EXPECT_EQ(y, std::vector<float>(tokens * 6, 54.0F)) << level.name;
    }
  }
}

TEST(Matmul, ARowAndATokenDoNotDependOnTheirCompany) {
  constexpr std::size_t kRows = 19;
  constexpr std::size_t kTokens = 101;
  constexpr std::size_t kSize = 700;
  const auto w = random_values(kRows * kSize, 5);
  const auto x = random_values(kTokens * kSize, 6);
  for (const Level& level : levels()) {
    std::vector<float> together(kTokens * kRows);
    multiply(*level.table, w.data(), kSize, kRows, x.data(), kTokens, kSize, together.data(), kRows);
    for (std::size_t t = 0; t < kTokens; t += 7) {
      std::vector<float> alone(kRows);
      multiply(*level.table, w.data(), kSize, kRows, x.data() + t * kSize, 1, kSize, alone.data(), kRows);
      EXPECT_TRUE(same_bits(together.data() + t * kRows, alone.data(), kRows))
          << level.name << " token " << t;
      for (std::size_t r = 0; r < kRows; ++r) {
        float one = 0;
        multiply(*level.table, w.data() + r * kSize, kSize, 1, x.data() + t * kSize, 1, kSize, &one, 1);
        EXPECT_TRUE(same_bits(&together[t * kRows + r], &one, 1))
            << level.name << " token " << t << " row " << r;
      }
    }
  }
}

TEST(Matmul, ErrorStaysWithinTheBoundOfASixteenWaySum) {
  // |error| ≤ (n/16 + 4) · 2^-24 · Σ|w x|, the standard bound for a chain of n/16 fused steps and a tree of 4
  // additions.
  constexpr std::size_t kSize = 2048;
  const auto w = random_values(kSize, 7, 1e3F);
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto x = random_values(kSize, 100 + seed, 1e3F);
    double exact = 0;
    double size = 0;
    for (std::size_t i = 0; i < kSize; ++i) {
      exact += static_cast<double>(w[i]) * x[i];
      size += std::fabs(static_cast<double>(w[i]) * x[i]);
    }
    float got = 0;
    multiply(reference(), w.data(), kSize, 1, x.data(), 1, kSize, &got, 1);
    EXPECT_LE(std::fabs(got - exact), (kSize / 16 + 4) * 0x1p-24 * size);
  }
}

}  // namespace
}  // namespace wring::kernels
