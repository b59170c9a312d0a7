// What may be said about a difference that was measured on a sample of documents or items: quantiles, paired
// bootstrap intervals, Holm's correction. Everything is deterministic: the bootstrap draws from the house's
// counter-based generator under a fixed seed, sums are float64 in the order of the data, so a report can be
// computed again to the last bit.
//
// Sources: percentile bootstrap, Efron & Tibshirani, An Introduction to the Bootstrap (1993), ch. 13;
// quantiles, Hyndman & Fan (1996), definition 7; step-down correction, Holm (1979).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace wring::evaluate {

double mean(std::span<const double> values);

/// Quantile p in [0, 1] of values in rising order: linear between the order statistics around (n − 1)·p
/// (Hyndman and Fan's definition 7, the default of numpy and R). n ≥ 1.
double quantile_of_sorted(std::span<const double> sorted, double p);

/// How far the worse part of a distribution reaches.
struct Tails {
  double p50 = 0, p95 = 0, p99 = 0, max = 0;
};

/// Of at least one value, in any order.
Tails tails(std::vector<double> values);

/// An estimate with a percentile bootstrap interval. `p_value` is two-sided for "the true value is 0": twice
/// the smaller share of resamples on either side of 0, counting the sample itself, at most 1.
struct Interval {
  double mean = 0, low = 0, high = 0;
  double p_value = 1;
};

inline constexpr int kResamples = 2000;
inline constexpr double kConfidence = 0.95;
inline constexpr std::uint64_t kBootstrapSeed = 20260922;

/// Resamples units (documents, items) with replacement. Paired: the caller passes what it measured on the
/// same units, so the difference of two candidates is resampled as one value a unit. Objects of equal size,
/// seed and resamples draw the same units, whatever they measure.
class PairedBootstrap {
 public:
  /// Errors: kUsage for no units, fewer than 100 resamples, or a confidence outside (0, 1).
  explicit PairedBootstrap(std::size_t units, int resamples = kResamples, double confidence = kConfidence,
                           std::uint64_t seed = kBootstrapSeed);

  /// Σ sums / Σ weights over the units, e.g. ΔNLL: sums of token differences, weighted by tokens. Both have
  /// one value a unit; weights are positive.
  Interval ratio(std::span<const double> sums, std::span<const double> weights) const;

  /// Mean over the units.
  Interval mean_of(std::span<const double> values) const;

  /// Any statistic of a list of unit numbers (with repeats); called resamples + 1 times, first with 0 … n−1.
  Interval statistic(const std::function<double(std::span<const std::uint32_t> units)>& f) const;

  std::size_t units() const { return units_; }

 private:
  std::size_t units_;
  int resamples_;
  double confidence_;
  std::uint64_t seed_;
};

/// Holm's step-down adjusted p-values, in the order given: reject hypothesis i at level α if the result is at
/// most α; the chance of any false rejection is then at most α, whatever the dependence.
std::vector<double> holm_adjusted(std::span<const double> p_values);

}  // namespace wring::evaluate
