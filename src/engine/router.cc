#include "engine/router.h"

#include <algorithm>
#include <limits>

#include "base/portable_math.h"

namespace wring::engine {
namespace {

constexpr float kOut = -std::numeric_limits<float>::infinity();  // taken, or of a group that is left out

void score(model::RouterScores kind, std::span<const float> logits, std::vector<float>& scores) {
  if (kind == model::RouterScores::kSigmoid) {
    for (std::size_t e = 0; e < logits.size(); ++e)
      scores[e] = static_cast<float>(1 / (1 + portable_exp(-static_cast<double>(logits[e]))));
    return;
  }
  const float top = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float l : logits) sum += portable_exp(static_cast<double>(l) - static_cast<double>(top));
  for (std::size_t e = 0; e < logits.size(); ++e) {
    scores[e] =
        static_cast<float>(portable_exp(static_cast<double>(logits[e]) - static_cast<double>(top)) / sum);
  }
}

/// Takes experts outside the best groups out of the ranking.
void keep_best_groups(const model::MoeSpec& spec, RouterScratch& scratch) {
  const std::size_t groups = static_cast<std::size_t>(spec.groups), size = scratch.ranked.size() / groups;
  for (std::size_t g = 0; g < groups; ++g) {
    float first = kOut, second = kOut;
    for (std::size_t e = g * size; e < (g + 1) * size; ++e) {
      const float r = scratch.ranked[e];
      second = std::max(second, std::min(first, r));
      first = std::max(first, r);
    }
    scratch.groups[g] = size > 1 && spec.group_best > 1 ? first + second : first;
  }
  for (int drop = spec.groups - spec.groups_per_token; drop > 0; --drop) {
    // The last of the worst, so that of equal groups the first stay.
    std::size_t worst = 0;
    for (std::size_t g = 0; g < groups; ++g) {
      if (scratch.groups[g] <= scratch.groups[worst]) worst = g;
    }
    scratch.groups[worst] = std::numeric_limits<float>::infinity();
    std::fill_n(scratch.ranked.begin() + static_cast<std::ptrdiff_t>(worst * size), size, kOut);
  }
}

}  // namespace

void RouterScratch::reserve(const model::MoeSpec& spec) {
  scores.resize(spec.experts.size());
  ranked.resize(spec.experts.size());
  groups.resize(static_cast<std::size_t>(spec.groups));
}

void choose_experts(const model::MoeSpec& spec, std::span<const float> logits, std::span<const float> bias,
                    RouterScratch& scratch, std::span<Choice> out) noexcept {
  score(spec.scores, logits, scratch.scores);
  for (std::size_t e = 0; e < logits.size(); ++e) {
    const float ranked = scratch.scores[e] + (bias.empty() ? 0.0F : bias[e]);
    // Not a number, or −∞: still an expert that may be chosen once, as kOut may not.
    scratch.ranked[e] = ranked > kOut ? ranked : std::numeric_limits<float>::lowest();
  }
  if (spec.groups > spec.groups_per_token) keep_best_groups(spec, scratch);
  // A number that is none makes the sum none, and so the logits: nothing is dropped in silence.
  float sum = 0;
  for (const float s : scratch.scores) sum += s * 0.0F;
  for (const float b : bias) sum += b * 0.0F;
  for (Choice& choice : out) {
    const auto best = std::ranges::max_element(scratch.ranked);
    const auto expert = static_cast<std::size_t>(best - scratch.ranked.begin());
    choice = {static_cast<std::int32_t>(expert), scratch.scores[expert]};
    *best = kOut;
    sum += choice.weight;
  }
  for (Choice& choice : out) {
    choice.weight = sum == sum ? choice.weight / (spec.normalize ? sum + 1e-20F : 1.0F) * spec.scale : sum;
  }
}

}  // namespace wring::engine
