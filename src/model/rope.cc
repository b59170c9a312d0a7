#include "model/rope.h"

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

}  // namespace

std::vector<float> rope_inverse_frequencies(const RopeParameters& rope, std::int64_t head_dim) {
  std::vector<float> out;
  const double log_theta = portable_log(rope.rope_theta);
  for (std::int64_t i = 0; i < head_dim / 2; ++i) {
    double frequency =
        portable_exp(-2.0 * static_cast<double>(i) / static_cast<double>(head_dim) * log_theta);
    if (rope.rope_type == "linear") frequency /= rope.factor;
    if (rope.rope_type == "llama3") frequency = llama3_frequency(rope, frequency);
    if (!rope.freq_divisors.empty())
      frequency /= static_cast<double>(rope.freq_divisors[static_cast<std::size_t>(i)]);
    out.push_back(static_cast<float>(frequency));
  }
  return out;
}

}  // namespace wring::model
