// Rotary frequencies from the parameters: plain, divided (linear), or divided for long wavelengths only
// (llama3, yarn).
#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"

namespace wring::model {

/// (head_dim / 2) inverse frequencies, radians a position, computed in float64 and rounded once.
std::vector<float> rope_inverse_frequencies(const RopeParameters& rope, std::int64_t head_dim);

}  // namespace wring::model
