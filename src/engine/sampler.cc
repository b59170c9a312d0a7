#include "engine/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/portable_math.h"

namespace wring::engine {
namespace {

// One Philox 4x32-10 block: ten rounds of two 32×32→64 bit products (Salmon et al., "Parallel random numbers:
// as easy as 1, 2, 3").
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t kM0 = 0xD2511F53, kM1 = 0xCD9E8D57;
  constexpr std::uint32_t kW0 = 0x9E3779B9, kW1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = kM0 * counter[0], b = kM1 * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += kW0;
    key[1] += kW1;
  }
  return counter;
}

void check(std::string_view name, double value, double low, double high) {
  if (value >= low && value <= high) return;
  throw Error(ErrorCode::kUsage, fmt::format("{} is {}, outside [{}, {}]", name, value, low, high));
}

}  // namespace

double uniform_at(std::uint64_t seed, std::uint32_t choice, std::int64_t position) {
  const auto p = static_cast<std::uint64_t>(position);
  const auto out = philox({static_cast<std::uint32_t>(p), static_cast<std::uint32_t>(p >> 32), choice, 0},
                          {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  const std::uint64_t bits = (static_cast<std::uint64_t>(out[0]) << 32 | out[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

TokenId argmax(std::span<const float> logits) {
  // The maximum first, in independent lanes that compilers vectorise; then where it stands.
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> best;
  best.fill(-std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    for (std::size_t j = 0; j < kLanes; ++j) best[j] = logits[i + j] > best[j] ? logits[i + j] : best[j];
  }
  float top = *std::max_element(best.begin(), best.end());
  for (; i < logits.size(); ++i) top = logits[i] > top ? logits[i] : top;
  const auto found = std::find(logits.begin(), logits.end(), top);
  return found == logits.end() ? 0
                               : static_cast<TokenId>(found - logits.begin());  // all NaN: nothing is highest
}

Sampler::Sampler(const SamplingParams& params) : params_(params) {
  check("temperature", params.temperature, 0, 100);
  check("top_k", params.top_k, 0, std::numeric_limits<int>::max());
  check("top_p", params.top_p, 0, 1);
  check("min_p", params.min_p, 0, 1);
}

TokenId Sampler::sample(std::span<const float> logits, std::int64_t position) {
  const TokenId best = argmax(logits);
  if (params_.temperature == 0) return best;
  const std::size_t n = logits.size();
  const auto top = static_cast<double>(logits[static_cast<std::size_t>(best)]);
  weights_.resize(n);
  for (std::size_t i = 0; i < n; ++i)
    weights_[i] = portable_exp((static_cast<double>(logits[i]) - top) / params_.temperature);

  // Filters zero the weights that they exclude; the most likely token always stays.
  for (double& w : weights_) {
    if (w < params_.min_p) w = 0;
  }
  const bool by_count = params_.top_k > 0 && static_cast<std::size_t>(params_.top_k) < n;
  if (by_count || params_.top_p < 1) {
    order_.resize(n);
    std::iota(order_.begin(), order_.end(), 0);
    std::sort(order_.begin(), order_.end(), [&](std::int32_t a, std::int32_t b) {
      const double x = weights_[static_cast<std::size_t>(a)], y = weights_[static_cast<std::size_t>(b)];
      return x != y ? x > y : a < b;
    });
    std::size_t keep = by_count ? static_cast<std::size_t>(params_.top_k) : n;
    double total = 0;
    for (std::size_t i = 0; i < keep; ++i) total += weights_[static_cast<std::size_t>(order_[i])];
    double sum = 0;
    for (std::size_t i = 0; i < keep; ++i) {
      sum += weights_[static_cast<std::size_t>(order_[i])];
      if (sum >= params_.top_p * total) keep = i + 1;
    }
    for (std::size_t i = keep; i < n; ++i) weights_[static_cast<std::size_t>(order_[i])] = 0;
  }

  double total = 0;
  for (const double w : weights_) total += w;
  const double target = uniform_at(params_.seed, params_.choice, position) * total;
  double sum = 0;
  TokenId last = best;
  for (std::size_t i = 0; i < n; ++i) {
    if (weights_[i] == 0) continue;
    sum += weights_[i];
    last = static_cast<TokenId>(i);
    if (sum > target) break;
  }
  return last;
}

}  // namespace wring::engine
