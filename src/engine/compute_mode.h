// How weights meet activations. Every result names its mode; results of the two are never mixed.
#pragma once

#include <string_view>

namespace wring::engine {

/// `exact`: weights dequantized on the fly, float32 activations and cache: what the format loses. `packed`:
/// integer products of the stored codes with activations in 8-bit codes, by default a 16-bit cache: what a
/// user gets.
enum class ComputeMode { kExact, kPacked };

std::string_view compute_mode_name(ComputeMode mode);  // "exact", "packed"

}  // namespace wring::engine
