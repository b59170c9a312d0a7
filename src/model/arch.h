// One function an architecture: from hyper-parameters to the declarative list of layers.
#pragma once

#include "model/spec.h"

namespace wring::model {

/// Llama 1 to 3 and everything that shares their graph (SmolLM2, …): pre-norm, rotary, grouped heads, gated
/// SiLU MLP.
ModelSpec make_llama_spec(const ModelConfig& config);

}  // namespace wring::model
