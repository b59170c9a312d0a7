// The llama graph as a list of layers, under the weight names of Hugging Face's LlamaForCausalLM.
#include <fmt/format.h>

#include <cmath>

#include "model/arch.h"
#include "model/rope.h"

namespace wring::model {
namespace {

RopeSpec rope_spec(const RopeParameters& rope, std::int64_t head_dim) {
  RopeSpec spec{rope_inverse_frequencies(rope, head_dim), static_cast<float>(rope.attention_factor), {}, 0};
  if (rope.rope_type == "longrope") {
    spec.long_inverse_frequencies = divided_frequencies(rope.rope_theta, rope.long_factor);
    spec.long_from = rope.original_max_position_embeddings;
  }
  return spec;
}

AttentionSpec attention(const ModelConfig& c, std::size_t layer) {
  const std::string p = fmt::format("model.layers.{}.self_attn.", layer);
  const std::int64_t q_rows = c.num_attention_heads * c.head_dim;
  const std::int64_t kv_rows = c.num_key_value_heads * c.head_dim;
  const bool sliding = !c.layer_types.empty() && c.layer_types[layer] == LayerType::kSlidingAttention;
  const double scalar =
      c.query_pre_attn_scalar > 0 ? c.query_pre_attn_scalar : static_cast<double>(c.head_dim);
  AttentionSpec a;
  a.num_heads = static_cast<int>(c.num_attention_heads);
  a.num_kv_heads = static_cast<int>(c.num_key_value_heads);
  a.head_dim = static_cast<int>(c.head_dim);
  a.scale = static_cast<float>(1.0 / std::sqrt(scalar));  // sqrt is exact on every CPU
  a.softcap = static_cast<float>(c.attn_logit_softcapping);
  a.window = sliding ? static_cast<int>(c.sliding_window) : 0;
  const bool rotary = c.rotary_layers.empty() || c.rotary_layers[layer];
  a.rope = !rotary ? -1 : sliding && c.local_rope ? 1 : 0;
  a.q = {p + "q_proj", q_rows, c.hidden_size, c.attention_bias, a.head_dim};
  a.k = {p + "k_proj", kv_rows, c.hidden_size, c.attention_bias, a.head_dim};
  a.v = {p + "v_proj", kv_rows, c.hidden_size, c.attention_bias, 0};
  a.o = {p + "o_proj", c.hidden_size, q_rows, c.attention_bias, 0};
  return a;
}

}  // namespace

ModelSpec make_llama_spec(const ModelConfig& c) {
  ModelSpec spec;
  spec.embedding = "model.embed_tokens";
  spec.vocab_size = c.vocab_size;
  spec.hidden_size = c.hidden_size;
  const auto eps = static_cast<float>(c.rms_norm_eps);
  const Activation activation = activation_named(c.hidden_act);
  for (std::size_t i = 0; i < static_cast<std::size_t>(c.num_hidden_layers); ++i) {
    const std::string p = fmt::format("model.layers.{}.", i);
    LayerSpec layer;
    layer.mixer_norm = {p + "input_layernorm", c.hidden_size, eps, 0};
    layer.attention = attention(c, i);
    layer.mlp_norm = {p + "post_attention_layernorm", c.hidden_size, eps, 0};
    layer.mlp.gate = {p + "mlp.gate_proj", c.intermediate_size, c.hidden_size, c.mlp_bias, 0};
    layer.mlp.up = {p + "mlp.up_proj", c.intermediate_size, c.hidden_size, c.mlp_bias, 0};
    layer.mlp.down = {p + "mlp.down_proj", c.hidden_size, c.intermediate_size, c.mlp_bias, 0};
    layer.mlp.activation = activation;
    spec.layers.push_back(std::move(layer));
  }
  spec.final_norm = {"model.norm", c.hidden_size, eps, 0};
  spec.head = {c.tie_word_embeddings ? spec.embedding : "lm_head", c.vocab_size, c.hidden_size, false, 0};
  spec.logit_softcap = static_cast<float>(c.final_logit_softcapping);
  spec.ropes.push_back(rope_spec(c.rope, c.head_dim));
  if (c.local_rope) spec.ropes.push_back(rope_spec(*c.local_rope, c.head_dim));
  return spec;
}

}  // namespace wring::model
