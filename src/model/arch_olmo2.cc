// OLMo 2 and EXAONE 4 (arch.h). Source: modeling_olmo2.py and modeling_exaone4.py of transformers.
#include "model/arch.h"

namespace wring::model {
namespace {

ModelSpec make_post_norm_spec(const ModelConfig& c) {
  ModelSpec spec = make_llama_spec(c);
  add_output_norms(spec, c);
  for (LayerSpec& layer : spec.layers) {
    layer.mixer_norm.reset();
    layer.mlp_norm.reset();
  }
  add_head_norms(spec, c);
  return spec;
}

}  // namespace

ModelSpec make_olmo2_spec(const ModelConfig& c) {
  ModelSpec spec = make_post_norm_spec(c);
  for (LayerSpec& layer : spec.layers) {
    AttentionSpec& a = layer.attention;
    a.q_norm->size = a.q.rows;
    a.k_norm->size = a.k.rows;
  }
  return spec;
}

ModelSpec make_exaone4_spec(const ModelConfig& c) {
  return make_post_norm_spec(c);
}

}  // namespace wring::model
