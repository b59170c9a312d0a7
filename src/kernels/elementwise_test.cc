// Norm, activations, rotary and log-sum-exp: equal to the bit on every level, and near what libm says in
// double.
#include <bit>
#include <cmath>
#include <functional>

#include "kernels/test_support.h"

namespace wring::kernels {
namespace {

// Lengths around every multiple of 8 and 16, and a long one.
const std::size_t kLengths[] = {1, 2, 7, 8, 9, 15, 16, 17, 23, 24, 31, 32, 33, 40, 57, 64, 100, 768, 1000};

// Runs f(table, x, y) on copies of x for each level and compares what x becomes.
void expect_same(std::size_t n, const std::vector<float>& x,
                 const std::function<void(const KernelTable&, std::vector<float>&)>& f) {
  std::vector<float> expected = x;
  f(reference(), expected);
  for (const Level& level : levels()) {
    std::vector<float> got = x;
    f(*level.table, got);
    EXPECT_TRUE(same_bits(expected, got)) << level.name << ", n = " << n;
  }
}

TEST(Elementwise, EveryLevelGivesTheReferencesBits) {
  for (const std::size_t n : kLengths) {
    const auto x = random_values(n, 11, 50.0F);
    const auto y = random_values(n, 12);
    const auto wide = random_values(2 * n, 13);
    std::vector<float> cosine(n);
    std::vector<float> sine(n);
    for (std::size_t i = 0; i < n; ++i) {
      cosine[i] = static_cast<float>(std::cos(static_cast<double>(i)));
      sine[i] = static_cast<float>(std::sin(static_cast<double>(i)));
    }
    expect_same(n, x, [&](const KernelTable& t, std::vector<float>& a) { t.add(a.data(), y.data(), n); });
    expect_same(n, x,
                [&](const KernelTable& t, std::vector<float>& a) { t.silu_mul(a.data(), y.data(), n); });
    expect_same(n, x,
                [&](const KernelTable& t, std::vector<float>& a) { t.gelu_tanh_mul(a.data(), y.data(), n); });
    expect_same(n, x, [&](const KernelTable& t, std::vector<float>& a) { t.silu(a.data(), n); });
    expect_same(n, x,
                [&](const KernelTable& t, std::vector<float>& a) { t.sigmoid_mul(a.data(), y.data(), n); });
    expect_same(n, x, [&](const KernelTable& t, std::vector<float>& a) { t.scale(a.data(), n, 25.298F); });
    expect_same(n, x, [&](const KernelTable& t, std::vector<float>& a) { t.exp(a.data(), n); });
    expect_same(n, x, [&](const KernelTable& t, std::vector<float>& a) { t.softcap(a.data(), n, 30.0F); });
    expect_same(n, x, [&](const KernelTable& t, std::vector<float>& a) {
      t.rms_norm(a.data(), y.data(), 1.0F, n, 1e-6F, a.data());
    });
    expect_same(n, x, [&](const KernelTable& t, std::vector<float>& a) {
      t.layer_norm(a.data(), y.data(), wide.data(), n, 1e-5F, a.data());
    });
    expect_same(n, x, [&](const KernelTable& t, std::vector<float>& a) { t.gelu_tanh(a.data(), n); });
    expect_same(n, x, [&](const KernelTable& t, std::vector<float>& a) {
      t.clamped_swiglu(a.data(), wide.data(), n, 1.702F, 0.5F);
    });
    expect_same(n, wide, [&](const KernelTable& t, std::vector<float>& a) {
      t.rope_half(a.data(), cosine.data(), sine.data(), n);
    });
    expect_same(n, wide, [&](const KernelTable& t, std::vector<float>& a) {
      t.rope_pairs(a.data(), cosine.data(), sine.data(), n);
    });
    for (const Level& level : levels()) {
      EXPECT_EQ(reference().log_sum_exp(x.data(), n), level.table->log_sum_exp(x.data(), n))
          << level.name << ' ' << n;
    }
  }
}

TEST(Elementwise, NothingBeyondTheEndIsWritten) {
  for (const Level& level : levels()) {
    std::vector<float> x(21, 7.0F);
    const std::vector<float> y(21, 1.0F);
    level.table->add(x.data(), y.data(), 13);
    level.table->silu_mul(x.data(), y.data(), 13);
    level.table->gelu_tanh_mul(x.data(), y.data(), 13);
    level.table->scale(x.data(), 13, 3.0F);
    level.table->sigmoid_mul(x.data(), y.data(), 13);
    level.table->silu(x.data(), 13);
    level.table->rms_norm(x.data(), y.data(), 0.0F, 13, 1e-6F, x.data());
    level.table->layer_norm(x.data(), y.data(), y.data(), 13, 1e-6F, x.data());
    level.table->gelu_tanh(x.data(), 13);
    level.table->clamped_swiglu(x.data(), y.data(), 13, 1.702F, 7.0F);
    level.table->exp(x.data(), 13);
    level.table->softcap(x.data(), 13, 5.0F);
    for (std::size_t i = 13; i < 21; ++i) EXPECT_EQ(x[i], 7.0F) << level.name;
  }
}

// Every 6,000th float32 of both signs, with the edges.
std::vector<float> sweep() {
  std::vector<float> values = {0.0F,      -0.0F,      INFINITY,  -INFINITY,  NAN,
                               88.72283F, 88.722840F, -87.3365F, -87.33654F, -87.336550F,
                               -103.9F,   3.4e38F,    -3.4e38F,  1e-45F,     0.625F};
  for (std::uint32_t bits = 0; bits < 0x7F800000U; bits += 6007) {
    values.push_back(std::bit_cast<float>(bits));
    values.push_back(std::bit_cast<float>(bits | 0x80000000U));
  }
  for (float x = -90; x < 90; x += 0.0071F) values.push_back(x);
  return values;
}

TEST(Elementwise, ExponentialTanhAndSiluAgreeOverADenseSweep) {
  const auto values = sweep();
  const std::vector<float> ones(values.size(), 1.0F);
  expect_same(values.size(), values,
              [](const KernelTable& t, std::vector<float>& a) { t.exp(a.data(), a.size()); });
  expect_same(values.size(), values,
              [](const KernelTable& t, std::vector<float>& a) { t.softcap(a.data(), a.size(), 1.0F); });
  expect_same(values.size(), values, [&](const KernelTable& t, std::vector<float>& a) {
    t.silu_mul(a.data(), ones.data(), a.size());
  });
  expect_same(values.size(), values, [&](const KernelTable& t, std::vector<float>& a) {
    t.gelu_tanh_mul(a.data(), ones.data(), a.size());
  });
}

TEST(Elementwise, ExponentialIsWithinItsErrorAndRightAtTheEdges) {
  auto values = sweep();
  auto results = values;
  reference().exp(results.data(), results.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = std::exp(static_cast<double>(values[i]));
    if (std::isnan(values[i])) {
      EXPECT_TRUE(std::isnan(results[i]));
    } else if (expected < 0x1p-126) {
      EXPECT_TRUE(results[i] == 0.0F || values[i] > -87.3366F) << values[i];
    } else if (expected > 0x1.fffffep127) {
      EXPECT_EQ(results[i], INFINITY) << values[i];
    } else {
      ASSERT_NEAR(results[i] / expected, 1.0, 1.2e-7) << values[i];
    }
  }
  std::vector<float> zero = {0.0F};
  reference().exp(zero.data(), 1);
  EXPECT_EQ(zero[0], 1.0F);  // merging attention blocks of equal maximum must change nothing
}

TEST(Elementwise, TanhAndSiluAreWithinTheirErrors) {
  auto values = sweep();
  auto capped = values;
  auto silu = values;
  auto gelu = values;
  const std::vector<float> ones(values.size(), 1.0F);
  reference().gelu_tanh_mul(gelu.data(), ones.data(), gelu.size());
  reference().softcap(capped.data(), capped.size(), 1.0F);
  reference().silu_mul(silu.data(), ones.data(), silu.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) {
      EXPECT_TRUE(std::isnan(capped[i]));
      continue;
    }
    const double x = values[i];
    if (std::abs(x) < 12) {
      const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
      ASSERT_NEAR(gelu[i], 0.5 * x * (1 + std::tanh(inner)), 3e-7 * std::max(1.0, std::abs(x))) << values[i];
    }
    ASSERT_NEAR(capped[i], std::tanh(x), 2e-7 * std::fabs(std::tanh(x)) + 1e-45) << x;
    if (x > -80 && std::isfinite(x)) {
      const double expected = x / (1 + std::exp(-x));
      ASSERT_NEAR(silu[i], expected, 5e-7 * std::fabs(expected) + 1e-44) << x;
    }
  }
}

TEST(Elementwise, LayerNormMeetsTheFormula) {
  const std::size_t n = 301;
  auto x = random_values(n, 16, 3.0F);
  for (float& v : x) v += 2.0F;  // a mean to take off
  const auto weight = random_values(n, 17, 3.0F), bias = random_values(n, 18);
  double mean = 0, variance = 0;
  for (const float v : x) mean += static_cast<double>(v) / n;
  for (const float v : x) variance += (v - mean) * (v - mean) / n;
  std::vector<float> y(n);
  reference().layer_norm(x.data(), weight.data(), bias.data(), n, 1e-5F, y.data());
  for (std::size_t i = 0; i < n; ++i) {
    const double scaled = (x[i] - mean) / std::sqrt(variance + 1e-5) * weight[i];
    EXPECT_NEAR(y[i], scaled + bias[i], 1e-6 * (std::fabs(scaled) + std::fabs(bias[i])) + 1e-6);
  }
}

TEST(Elementwise, ClampedSwigluMeetsTheFormulaAndKeepsNan) {
  const std::vector<float> gates = {-20.0F, -1.0F, 0.5F, 6.9F, 7.5F, 100.0F}, ups = {9.0F, -9.0F, 0.3F};
  for (const float g : gates) {
    for (const float u : ups) {
      float value = g;
      reference().clamped_swiglu(&value, &u, 1, 1.702F, 7.0F);
      const double gate = std::min(g, 7.0F), up = std::clamp(u, -7.0F, 7.0F);
      EXPECT_NEAR(value, gate / (1 + std::exp(-1.702 * gate)) * (up + 1), 1e-5) << g << ' ' << u;
    }
  }
  for (const Level& level : levels()) {
    std::vector<float> gate = {NAN, 1.0F}, up = {1.0F, NAN};
    level.table->clamped_swiglu(gate.data(), up.data(), 2, 1.702F, 7.0F);
    EXPECT_TRUE(std::isnan(gate[0]) && std::isnan(gate[1])) << level.name;
  }
}

TEST(Elementwise, RmsNormAndLogSumExpMeetTheFormulas) {
  const std::size_t n = 777;
  const auto x = random_values(n, 14, 30.0F);
  const auto weight = random_values(n, 15, 3.0F);
  std::vector<float> y(n);
  reference().rms_norm(x.data(), weight.data(), 1.0F, n, 1e-5F, y.data());
  double squares = 0;
  double max = x[0];
  for (const float v : x) {
    squares += static_cast<double>(v) * v;
    max = std::max(max, static_cast<double>(v));
  }
  double terms = 0;
  for (const float v : x) terms += std::exp(static_cast<double>(v) - max);
  const double rms = std::sqrt(squares / n + 1e-5);
  for (std::size_t i = 0; i < n; ++i) {
    const double expected = x[i] / rms * (static_cast<double>(weight[i]) + 1);
    EXPECT_NEAR(y[i], expected, 1e-5 * std::fabs(expected) + 1e-40);
  }
  EXPECT_NEAR(reference().log_sum_exp(x.data(), n), max + std::log(terms), 1e-7);
  const float far[] = {-1000.0F, -1001.0F, -4000.0F};
  EXPECT_NEAR(reference().log_sum_exp(far, 3), -1000.0 + std::log1p(std::exp(-1.0)), 1e-7);
}

TEST(Elementwise, RotaryTurnsPairsByTheirAngle) {
  std::vector<float> half = {1, 2, 3, 10, 20, 30};
  std::vector<float> pairs = {1, 10, 2, 20, 3, 30};
  const float cosine[] = {1, 0, -1};
  const float sine[] = {0, 1, 0};
  reference().rope_half(half.data(), cosine, sine, 3);
  reference().rope_pairs(pairs.data(), cosine, sine, 3);
  EXPECT_EQ(half, (std::vector<float>{1, -20, -3, 10, 2, -30}));
  EXPECT_EQ(pairs, (std::vector<float>{1, 10, -20, 2, -3, -30}));
}

TEST(Elementwise, FmaLoopCountsItsWork) {
  for (const Level& level : levels()) {
    float sink = 0;
    const std::size_t one = level.table->fma_loop(1, &sink);
    EXPECT_GT(one, 0U) << level.name;
    EXPECT_EQ(level.table->fma_loop(1000, &sink), 1000 * one) << level.name;
    std::int32_t bytes = 0;
    EXPECT_EQ(level.table->byte_loop(1000, &bytes), 1000 * level.table->byte_loop(1, &bytes)) << level.name;
    for (const std::size_t at : {0, 1, 200, 383}) {
      std::vector<float> x(384, -2.0F);
      x[at] = -1.0F;
      EXPECT_EQ(level.table->read_loop(x.data(), x.size()), -1.0F) << level.name << ' ' << at;
      EXPECT_EQ(reference().read_loop(x.data(), x.size()), -1.0F) << at;
    }
    EXPECT_NEAR(std::remainder(sink, 2.0F), 0.0F, 1e-3) << level.name;  // each chain ends at 2
  }
}

}  // namespace
}  // namespace wring::kernels
