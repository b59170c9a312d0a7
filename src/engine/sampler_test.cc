#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace wring::engine {
namespace {

TEST(Uniform, DependsOnSeedChoiceAndPositionOnly) {
  EXPECT_EQ(uniform_at(1, 0, 5), uniform_at(1, 0, 5));
  EXPECT_NE(uniform_at(1, 0, 5), uniform_at(2, 0, 5));
  EXPECT_NE(uniform_at(1, 0, 5), uniform_at(1, 1, 5));
  EXPECT_NE(uniform_at(1, 0, 5), uniform_at(1, 0, 6));
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double u = uniform_at(7, 0, i);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.015);  // five standard errors
}

TEST(Sampler, GreedyTakesTheLowestOfEqualIds) {
  const std::vector<float> logits = {0, 3, 1, 3};
  EXPECT_EQ(Sampler({}).sample(logits, 9), 1);
}

TEST(Sampler, FollowsTheDistribution) {
  const std::vector<float> logits = {std::log(0.5F), std::log(0.3F), std::log(0.2F)};
  Sampler sampler({.temperature = 1, .seed = 3});
  std::vector<int> counts(3);
  for (int i = 0; i < 20000; ++i) ++counts[static_cast<std::size_t>(sampler.sample(logits, i))];
  EXPECT_NEAR(counts[0] / 20000.0, 0.5, 0.02);
  EXPECT_NEAR(counts[1] / 20000.0, 0.3, 0.02);
}

TEST(Sampler, FiltersExcludeTheTail) {
  const std::vector<float> logits = {std::log(0.5F), std::log(0.3F), std::log(0.15F), std::log(0.05F)};
  const auto seen = [&](SamplingParams p) {
    p.temperature = 1;
    Sampler sampler(p);
    std::vector<int> counts(4);
    for (int i = 0; i < 3000; ++i) ++counts[static_cast<std::size_t>(sampler.sample(logits, i))];
    int mask = 0;
    for (int i = 0; i < 4; ++i) mask |= counts[static_cast<std::size_t>(i)] > 0 ? 1 << i : 0;
    return mask;
  };
  EXPECT_EQ(seen({}), 0b1111);
  EXPECT_EQ(seen({.top_k = 2}), 0b0011);
  EXPECT_EQ(seen({.top_p = 0.75}), 0b0011);
  EXPECT_EQ(seen({.top_p = 0}), 0b0001);
  EXPECT_EQ(seen({.min_p = 0.2}), 0b0111);
}

TEST(Sampler, RefusesParametersOutsideTheirRange) {
  EXPECT_THROW(Sampler({.temperature = -1}), Error);
  EXPECT_THROW(Sampler({.temperature = std::nan("")}), Error);
  EXPECT_THROW(Sampler({.top_p = 1.5}), Error);
  EXPECT_THROW(Sampler({.top_k = -1}), Error);
}

}  // namespace
}  // namespace wring::engine
