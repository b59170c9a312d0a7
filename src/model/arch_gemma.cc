// Gemma 2 and 3 (arch.h). Source: modeling_gemma2.py and modeling_gemma3.py of transformers.
#include <fmt/format.h>

#include <cmath>

#include "model/arch.h"

namespace wring::model {

ModelSpec make_gemma2_spec(const ModelConfig& c) {
  ModelSpec spec = make_llama_spec(c);
  add_output_norms(spec, c);
  spec.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(c.hidden_size)));
  const float offset = c.norms_hold_one ? 0.0F : 1.0F;
  spec.final_norm.weight_offset = offset;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerSpec& layer = spec.layers[i];
    layer.mlp_norm->name = fmt::format("model.layers.{}.pre_feedforward_layernorm", i);
    for (auto* norm :
         {&layer.mixer_norm, &layer.mixer_output_norm, &layer.mlp_norm, &layer.mlp_output_norm}) {
      (*norm)->weight_offset = offset;
    }
  }
  return spec;
}

ModelSpec make_gemma3_spec(const ModelConfig& c) {
  ModelSpec spec = make_gemma2_spec(c);
  add_head_norms(spec, c);
  for (LayerSpec& layer : spec.layers) {
    for (auto* norm : {&layer.attention.q_norm, &layer.attention.k_norm}) {
      (*norm)->weight_offset = spec.final_norm.weight_offset;
    }
  }
  return spec;
}

}  // namespace wring::model
