// How weights meet activations. Every result names its mode; results of the two are never mixed.
#pragma once

#include <string_view>

namespace wring::engine {

/// `exact`: weights dequantized on the fly, float32 activations and cache: what the format loses. `packed`:
/// integer products of the stored codes with activations in 8-bit codes, products of BF16 weights with
/// activations rounded to BF16 where those pay, by default a 16-bit cache: what a user gets.
enum class ComputeMode { kExact, kPacked };

/// What a matrix product multiplies, the faster ones last: the peak that its speed is a share of. Packed mode
/// has all three.
enum class Products { kFloats, kBf16, kBytes };

std::string_view compute_mode_name(ComputeMode mode);  // "exact", "packed"

}  // namespace wring::engine
