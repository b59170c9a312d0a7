// The architecture's keys of a written GGUF ("qwen3moe.expert_count"): what config_gguf.cc and llama.cpp
// read.
#pragma once

#include "formats/gguf.h"
#include "model/config.h"

namespace wring::quantize {

/// Adds "<architecture>.*". Precondition: refuse_another_computation() had nothing against `config`.
void add_gguf_architecture(formats::GgufWriter& writer, const model::ModelConfig& config);

}  // namespace wring::quantize
