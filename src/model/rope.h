// Rotary frequencies from the parameters (longrope: from lists): plain, divided (linear), or divided for long
// wavelengths only (llama3, yarn).
#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"

namespace wring::model {

/// Inverse frequencies, one a rotated pair of a head, radians a position, computed in float64 and rounded
/// once; of longrope those of short sequences.
std::vector<float> rope_inverse_frequencies(const RopeParameters& rope, std::int64_t head_dim);

/// How many values of a head are rotated, from its front: an even number.
std::int64_t rotated_values(const RopeParameters& rope, std::int64_t head_dim);

/// 1 / theta^(2i/n), each divided by divisors[i].
std::vector<float> divided_frequencies(double rope_theta, const std::vector<float>& divisors);

}  // namespace wring::model
