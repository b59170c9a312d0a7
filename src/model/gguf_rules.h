// What llama.cpp fixes in its code instead of reading it from a GGUF: query scales, which layers slide, which
// have no rotary positions, how experts are chosen. Source: src/llama-model.cpp of llama.cpp.
#pragma once

#include <vector>

#include "model/config.h"

namespace wring::model {

/// gpt_oss' clamped SwiGLU as published.
inline constexpr double kSwigluAlpha = 1.702, kSwigluLimit = 7;

/// Every how many layers one sees all positions, where a file does not list them; 0: all do.
std::int64_t full_attention_interval(const ModelConfig& config);

/// Fills layer_types and rotary_layers from sliding_window: by `slides`, or by `interval` where that is
/// empty.
void set_gguf_layers(ModelConfig& config, std::int64_t interval, const std::vector<bool>& slides);

/// Sets the scale of queries that an architecture has whatever the model says.
void set_gguf_query_scale(ModelConfig& config);

/// Whether a GGUF says how experts are weighed; those architectures may have dense layers first.
bool says_routing(const ModelConfig& config);

/// Layers without experts before the first with them.
std::int64_t leading_dense_layers(const ModelConfig& config);

/// Every how many layers one is not recurrent, going by the first that is not.
std::int64_t recurrent_interval(const ModelConfig& config);

/// What the configuration would be after going through a GGUF's metadata.
ModelConfig as_gguf_says(ModelConfig config);

}  // namespace wring::model
