// The choice of experts against its definition written out naively, and its ties.
#include "engine/router.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

namespace wring::engine {
namespace {

model::MoeSpec spec_of(int experts, int per_token) {
  model::MoeSpec spec;
  spec.experts.resize(static_cast<std::size_t>(experts));
  spec.per_token = per_token;
  return spec;
}

std::vector<Choice> choose(const model::MoeSpec& spec, const std::vector<float>& logits,
                           const std::vector<float>& bias = {}) {
  RouterScratch scratch;
  scratch.reserve(spec);
  std::vector<Choice> out(static_cast<std::size_t>(spec.per_token));
  choose_experts(spec, logits, bias, scratch, out);
  return out;
}

// Sort everything, in float64.
std::vector<Choice> choose_naively(const model::MoeSpec& spec, const std::vector<float>& logits,
                                   const std::vector<float>& bias) {
  const std::size_t n = logits.size(), size = n / static_cast<std::size_t>(spec.groups);
  std::vector<double> score(n), rank(n);
  double sum = 0;
  for (const float l : logits) sum += std::exp(static_cast<double>(l));
  for (std::size_t e = 0; e < n; ++e) {
    const double l = logits[e];
    score[e] = spec.scores == model::RouterScores::kSoftmax ? std::exp(l) / sum : 1 / (1 + std::exp(-l));
    rank[e] = score[e] + (bias.empty() ? 0.0 : static_cast<double>(bias[e]));
  }
  std::vector<std::pair<double, std::size_t>> groups;
  for (std::size_t g = 0; g * size < n; ++g) {
    std::vector<double> members(rank.begin() + static_cast<std::ptrdiff_t>(g * size),
                                rank.begin() + static_cast<std::ptrdiff_t>((g + 1) * size));
    std::ranges::sort(members, std::greater<>{});
    groups.emplace_back(-(members[0] + (size > 1 && spec.group_best == 2 ? members[1] : 0)), g);
  }
  std::ranges::sort(groups);
  std::vector<std::pair<double, std::size_t>> allowed;
  for (int i = 0; i < spec.groups_per_token; ++i) {
    const std::size_t g = groups[static_cast<std::size_t>(i)].second;
    for (std::size_t e = g * size; e < (g + 1) * size; ++e) allowed.emplace_back(-rank[e], e);
  }
  std::ranges::sort(allowed);
  std::vector<Choice> out;
  double total = 0;
  for (int i = 0; i < spec.per_token; ++i) total += score[allowed[static_cast<std::size_t>(i)].second];
  for (int i = 0; i < spec.per_token; ++i) {
    const std::size_t e = allowed[static_cast<std::size_t>(i)].second;
    const double weight = score[e] / (spec.normalize ? total : 1.0) * static_cast<double>(spec.scale);
    out.push_back({static_cast<std::int32_t>(e), static_cast<float>(weight)});
  }
  return out;
}

TEST(Router, EqualsTheDefinition) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 2);
  for (int round = 0; round < 400; ++round) {
    const int groups = 1 << random() % 3, per_group = 2 + static_cast<int>(random() % 5);
    model::MoeSpec spec = spec_of(groups * per_group, 1 + static_cast<int>(random() % 2));
    spec.groups = groups;
    spec.groups_per_token = 1 + static_cast<int>(random() % static_cast<unsigned>(groups));
    spec.scores = random() % 2 ? model::RouterScores::kSoftmax : model::RouterScores::kSigmoid;
    spec.group_best = 1 + static_cast<int>(random() % 2);
    spec.normalize = random() % 2;
    spec.scale = random() % 2 ? 2.5F : 1.0F;
    std::vector<float> logits(spec.experts.size()), bias;
    for (float& l : logits) l = normal(random);
    if (random() % 2) {
      bias.resize(logits.size());
      for (float& b : bias) b = normal(random) / 10;
    }
    const auto got = choose(spec, logits, bias), want = choose_naively(spec, logits, bias);
    for (std::size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(got[i].expert, want[i].expert) << round;
      ASSERT_NEAR(got[i].weight, want[i].weight, 1e-6) << round;
    }
  }
}

TEST(Router, NoExpertIsChosenTwiceWhateverTheNumbers) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    for (const model::RouterScores scores : {model::RouterScores::kSoftmax, model::RouterScores::kSigmoid}) {
      model::MoeSpec spec = spec_of(6, 4);
      spec.scores = scores;
      for (const std::vector<float>& bias : {std::vector<float>{}, std::vector<float>(6, bad)}) {
        std::set<std::int32_t> chosen;
        for (const Choice& c : choose(spec, std::vector<float>(6, bad), bias)) chosen.insert(c.expert);
        EXPECT_EQ(chosen.size(), 4U) << bad;
        EXPECT_TRUE(std::isnan(choose(spec, std::vector<float>(6, NAN), bias)[0].weight));
        EXPECT_GE(*chosen.begin(), 0);
        EXPECT_LT(*chosen.rbegin(), 6);
      }
    }
  }
}

TEST(Router, OfEqualScoresTheFirstIsTaken) {
  const auto choices = choose(spec_of(6, 3), std::vector<float>(6, 0.5F));
  for (std::int32_t i = 0; i < 3; ++i) EXPECT_EQ(choices[static_cast<std::size_t>(i)].expert, i);
  model::MoeSpec grouped = spec_of(6, 2);
  grouped.groups = 3;
  grouped.groups_per_token = 1;
  EXPECT_EQ(choose(grouped, std::vector<float>(6, 0.5F))[1].expert, 1);
}

}  // namespace
}  // namespace wring::engine
