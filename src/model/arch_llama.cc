// The llama graph as a list of layers, under the weight names of Hugging Face's LlamaForCausalLM.
#include <fmt/format.h>

#include <cmath>

#include "model/arch.h"
#include "model/rope.h"

namespace wring::model {

ModelSpec make_llama_spec(const ModelConfig& c) {
  ModelSpec spec;
  spec.embedding = "model.embed_tokens";
  spec.vocab_size = c.vocab_size;
  spec.hidden_size = c.hidden_size;
  const auto eps = static_cast<float>(c.rms_norm_eps);
  const int head_dim = static_cast<int>(c.head_dim);
  const std::int64_t q_rows = c.num_attention_heads * c.head_dim;
  const std::int64_t kv_rows = c.num_key_value_heads * c.head_dim;
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const std::string p = fmt::format("model.layers.{}.", i);
    LayerSpec layer;
    layer.input_norm = {p + "input_layernorm", c.hidden_size, eps, 0};
    AttentionSpec& a = layer.attention;
    a.q = {p + "self_attn.q_proj", q_rows, c.hidden_size, c.attention_bias, head_dim};
    a.k = {p + "self_attn.k_proj", kv_rows, c.hidden_size, c.attention_bias, head_dim};
    a.v = {p + "self_attn.v_proj", kv_rows, c.hidden_size, c.attention_bias, 0};
    a.o = {p + "self_attn.o_proj", c.hidden_size, q_rows, c.attention_bias, 0};
    a.num_heads = static_cast<int>(c.num_attention_heads);
    a.num_kv_heads = static_cast<int>(c.num_key_value_heads);
    a.head_dim = head_dim;
    a.scale =
        static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));  // sqrt is exact on every CPU
    layer.post_attention_norm = {p + "post_attention_layernorm", c.hidden_size, eps, 0};
    layer.mlp.gate = {p + "mlp.gate_proj", c.intermediate_size, c.hidden_size, c.mlp_bias, 0};
    layer.mlp.up = {p + "mlp.up_proj", c.intermediate_size, c.hidden_size, c.mlp_bias, 0};
    layer.mlp.down = {p + "mlp.down_proj", c.hidden_size, c.intermediate_size, c.mlp_bias, 0};
    spec.layers.push_back(std::move(layer));
  }
  spec.final_norm = {"model.norm", c.hidden_size, eps, 0};
  spec.head = {c.tie_word_embeddings ? spec.embedding : "lm_head", c.vocab_size, c.hidden_size, false, 0};
  spec.rope_inverse_frequencies = rope_inverse_frequencies(c.rope, c.head_dim);
  return spec;
}

}  // namespace wring::model
