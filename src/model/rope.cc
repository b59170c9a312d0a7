#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/portable_math.h"

namespace wring::model {
namespace {

// Llama 3.1's rule: wavelengths shorter than original / high_freq_factor stay, those longer than original /
// low_freq_factor are stretched by `factor`, and between the two the inverse frequencies are blended
// linearly.
double llama3_frequency(const RopeParameters& rope, double frequency) {
  const double wavelength = 2 * std::numbers::pi / frequency;
  const auto original = static_cast<double>(rope.original_max_position_embeddings);
  if (wavelength < original / rope.high_freq_factor) return frequency;
  if (wavelength > original / rope.low_freq_factor) return frequency / rope.factor;
  const double smooth =
      (original / wavelength - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  return (1 - smooth) * frequency / rope.factor + smooth * frequency;
}

// YaRN's rule (Peng et al. 2023, "YaRN: efficient context window extension"): pairs that turn more than
// beta_fast times in the original context stay, those that turn less than beta_slow times are stretched by
// `factor`, with a ramp over the pairs between.
double yarn_frequency(const RopeParameters& rope, double frequency, std::int64_t pair,
                      std::int64_t head_dim) {
  const auto dim = static_cast<double>(head_dim);
  const auto original = static_cast<double>(rope.original_max_position_embeddings);
  const auto pair_that_turns = [&](double times) {
    return dim * portable_log(original / (times * 2 * std::numbers::pi)) /
           (2 * portable_log(rope.rope_theta));
  };
  double low = pair_that_turns(rope.beta_fast), high = pair_that_turns(rope.beta_slow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high) high += 0.001;
  const double ramp = std::clamp((static_cast<double>(pair) - low) / (high - low), 0.0, 1.0);
  return frequency / rope.factor * ramp + frequency * (1 - ramp);
}

}  // namespace

std::int64_t rotated_values(const RopeParameters& rope, std::int64_t head_dim) {
  return static_cast<std::int64_t>(static_cast<double>(head_dim) * rope.partial_rotary_factor) / 2 * 2;
}

std::vector<float> divided_frequencies(double rope_theta, const std::vector<float>& divisors) {
  RopeParameters rope;
  rope.rope_theta = rope_theta;
  rope.freq_divisors = divisors;
  return rope_inverse_frequencies(rope, 2 * static_cast<std::int64_t>(divisors.size()));
}

std::vector<float> rope_inverse_frequencies(const RopeParameters& rope, std::int64_t head_dim) {
  if (rope.rope_type == "longrope") return divided_frequencies(rope.rope_theta, rope.short_factor);
  const std::int64_t rotated = rotated_values(rope, head_dim);
  std::vector<float> out;
  const double log_theta = portable_log(rope.rope_theta);
  for (std::int64_t i = 0; i < rotated / 2; ++i) {
    double frequency = portable_exp(-2.0 * static_cast<double>(i) / static_cast<double>(rotated) * log_theta);
    if (rope.rope_type == "linear") frequency /= rope.factor;
    if (rope.rope_type == "llama3") frequency = llama3_frequency(rope, frequency);
    if (rope.rope_type == "yarn") frequency = yarn_frequency(rope, frequency, i, rotated);
    if (!rope.freq_divisors.empty())
      frequency /= static_cast<double>(rope.freq_divisors[static_cast<std::size_t>(i)]);
    out.push_back(static_cast<float>(frequency));
  }
  return out;
}

}  // namespace wring::model
