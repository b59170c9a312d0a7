// Quantiles, bootstrap and Holm's correction; see the header for sources.
#include "evaluate/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "engine/sampler.h"

namespace wring::evaluate {

double mean(std::span<const double> values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

double quantile_of_sorted(std::span<const double> sorted, double p) {
  const double at = static_cast<double>(sorted.size() - 1) * p;
  const auto below = static_cast<std::size_t>(at);
  if (below + 1 >= sorted.size()) return sorted.back();
  const double share = at - static_cast<double>(below);
  return sorted[below] + share * (sorted[below + 1] - sorted[below]);
}

Tails tails(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {quantile_of_sorted(values, 0.50), quantile_of_sorted(values, 0.95),
          quantile_of_sorted(values, 0.99), values.back()};
}

PairedBootstrap::PairedBootstrap(std::size_t units, int resamples, double confidence, std::uint64_t seed)
    : units_(units), resamples_(resamples), confidence_(confidence), seed_(seed) {
  if (units == 0) throw Error(ErrorCode::kUsage, "a bootstrap needs at least one document or item");
  if (resamples < 100) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} bootstrap resamples are too few, at least 100 are needed", resamples));
  }
  if (!(confidence > 0 && confidence < 1)) {
    throw Error(ErrorCode::kUsage, fmt::format("confidence {} is not between 0 and 1", confidence));
  }
}

Interval PairedBootstrap::ratio(std::span<const double> sums, std::span<const double> weights) const {
  if (sums.size() != units_ || weights.size() != units_) {
    throw Error(ErrorCode::kInternal, fmt::format("bootstrap over {} units was given {} sums, {} weights",
                                                  units_, sums.size(), weights.size()));
  }
  return statistic([&](std::span<const std::uint32_t> units) {
    double sum = 0, weight = 0;
    for (const std::uint32_t u : units) {
      sum += sums[u];
      weight += weights[u];
    }
    return sum / weight;
  });
}

Interval PairedBootstrap::mean_of(std::span<const double> values) const {
  return ratio(values, std::vector<double>(units_, 1.0));
}

Interval PairedBootstrap::statistic(
    const std::function<double(std::span<const std::uint32_t> units)>& f) const {
  std::vector<std::uint32_t> units(units_);
  std::iota(units.begin(), units.end(), 0U);
  Interval result;
  result.mean = f(units);

  std::vector<double> values(static_cast<std::size_t>(resamples_));
  const auto n = static_cast<double>(units_);
  for (int r = 0; r < resamples_; ++r) {
    for (std::size_t j = 0; j < units_; ++j) {
      const double u = engine::uniform_at(seed_, static_cast<std::uint32_t>(r), static_cast<std::int64_t>(j));
      units[j] = static_cast<std::uint32_t>(u * n);
    }
    values[static_cast<std::size_t>(r)] = f(units);
  }
  std::sort(values.begin(), values.end());
  result.low = quantile_of_sorted(values, (1 - confidence_) / 2);
  result.high = quantile_of_sorted(values, (1 + confidence_) / 2);

  const auto at_most = std::upper_bound(values.begin(), values.end(), 0.0) - values.begin();
  const auto at_least = values.end() - std::lower_bound(values.begin(), values.end(), 0.0);
  const double side = static_cast<double>(std::min(at_most, at_least) + 1) / (resamples_ + 1);
  result.p_value = std::min(1.0, 2 * side);
  return result;
}

std::vector<double> holm_adjusted(std::span<const double> p_values) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> adjusted(p_values.size());
  double highest = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const double scaled = p_values[order[rank]] * static_cast<double>(order.size() - rank);
    highest = std::max(highest, std::min(1.0, scaled));
    adjusted[order[rank]] = highest;
  }
  return adjusted;
}

}  // namespace wring::evaluate
