// Divergences against closed forms.
#include "evaluate/kl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace wring::evaluate {
namespace {

std::vector<float> logs(const std::vector<double>& p) {
  std::vector<float> row;
  for (const double v : p) row.push_back(static_cast<float>(std::log(v)));
  return row;
}

TEST(KlPositions, AreTheThirtyTwoOfThePlan) {
  const auto p = kl_positions(1024, KlPositions::kThirtyTwo);
  ASSERT_EQ(p.size(), 32U);
  EXPECT_EQ(p.front(), 31);  // ⌊1023/33⌋
  EXPECT_EQ(p[1], 62);
  EXPECT_EQ(p.back(), 992);  // ⌊32·1023/33⌋
}

TEST(KlPositions, OfShortDocumentsAreDistinctAndPredictSomething) {
  for (std::int64_t tokens = 2; tokens < 80; ++tokens) {
    const auto p = kl_positions(tokens, KlPositions::kThirtyTwo);
    ASSERT_FALSE(p.empty());
    for (std::size_t i = 0; i < p.size(); ++i) {
      EXPECT_LT(p[i], tokens - 1);
      if (i > 0) {
        EXPECT_GT(p[i], p[i - 1]);
      }
    }
    EXPECT_EQ(p.size(), static_cast<std::size_t>(std::min<std::int64_t>(32, tokens - 1)));
  }
  EXPECT_THAT(kl_positions(4, KlPositions::kAll), ::testing::ElementsAre(0, 1, 2));
}

TEST(CompareRows, IsTheSumOverTheVocabulary) {
  const std::vector<double> p = {0.5, 0.25, 0.125, 0.125}, q = {0.25, 0.5, 0.125, 0.125};
  const KlRow row = compare_rows(logs(p), logs(q), 1);
  EXPECT_NEAR(row.kl, 0.5 * std::log(2) - 0.25 * std::log(2), 1e-7);
  EXPECT_NEAR(row.delta_p, 0.25, 1e-7);
  EXPECT_FALSE(row.same_top);
  // Reference first: the other direction differs when the distributions are not mirror images.
  const std::vector<double> r = {0.9, 0.1}, s = {0.5, 0.5};
  EXPECT_NEAR(compare_rows(logs(r), logs(s), 0).kl, 0.9 * std::log(1.8) + 0.1 * std::log(0.2), 1e-7);
  EXPECT_NEAR(compare_rows(logs(s), logs(r), 0).kl, 0.5 * std::log(0.5 / 0.9) + 0.5 * std::log(5), 1e-7);
}

TEST(CompareRows, EqualRowsGiveExactlyZero) {
  std::vector<float> row;
  for (int i = 0; i < 5000; ++i) row.push_back(std::sin(static_cast<float>(i)) * 20 + 300);
  const KlRow same = compare_rows(row, row, 17);
  EXPECT_EQ(same.kl, 0);
  EXPECT_EQ(same.delta_p, 0);
  EXPECT_TRUE(same.same_top);
}

TEST(CompareRows, AConstantAddedToAllLogitsChangesNothing) {
  std::vector<float> a, b;
  for (int i = 0; i < 1000; ++i) {
    a.push_back(static_cast<float>(i % 13));
    b.push_back(a.back() + 64.0F);
  }
  const KlRow row = compare_rows(a, b, 3);
  EXPECT_LT(row.kl, 1e-13);
  EXPECT_GE(row.kl, 0);
  EXPECT_NEAR(row.delta_p, 0, 1e-16);
}

TEST(CompareRows, SurvivesLogitsFarApart) {
  const std::vector<float> a = {1000.0F, -1000.0F}, b = {-1000.0F, 1000.0F};
  EXPECT_NEAR(compare_rows(a, b, 0).kl, 2000, 1e-9);
  EXPECT_NEAR(compare_rows(a, b, 0).delta_p, -1, 1e-12);
}

TEST(CompareRows, SameTopTakesTheLowestOfEqualTokens) {
  const std::vector<float> tie = {1, 2, 2}, second = {0, 0, 1}, first = {0, 1, 0};
  EXPECT_TRUE(compare_rows(tie, first, 0).same_top);
  EXPECT_FALSE(compare_rows(tie, second, 0).same_top);
}

}  // namespace
}  // namespace wring::evaluate
