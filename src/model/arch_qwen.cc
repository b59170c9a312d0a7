// Qwen 2 and 3 (arch.h). Source: modeling_qwen2.py and modeling_qwen3.py of transformers.
#include "model/arch.h"

namespace wring::model {

ModelSpec make_qwen2_spec(const ModelConfig& c) {
  ModelSpec spec = make_llama_spec(c);
  for (LayerSpec& layer : spec.layers) {
    AttentionSpec& a = layer.attention;
    a.q.bias = a.k.bias = a.v.bias = true;
    a.o.bias = false;
  }
  return spec;
}

ModelSpec make_qwen3_spec(const ModelConfig& c) {
  ModelSpec spec = make_llama_spec(c);
  add_head_norms(spec, c);
  return spec;
}

}  // namespace wring::model
