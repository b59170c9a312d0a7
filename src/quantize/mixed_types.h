// The rule of llama.cpp's files called Q4_K_M: which matrices get Q6_K instead of Q4_K.
#pragma once

#include <span>
#include <vector>

#include "model/spec.h"
#include "quantize/planned_tensor.h"

namespace wring::quantize {

/// By tensor of a GGUF file: whether it gets more bits. Of n layers those are the down projections (experts'
/// and shared experts' too) of the first and last eighth and of every third layer between; and by the same
/// rule, counted by themselves over the file, attention's values, alone or in one map with queries and keys.
/// llama.cpp's exceptions for models of 8 experts and for Llama 70B are left out.
std::vector<bool> wants_more_bits(const model::ModelSpec& spec, std::span<const PlannedTensor> tensors);

}  // namespace wring::quantize
