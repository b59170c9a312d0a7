// DeepSeek V2 and V3 (arch.h). Source: modeling_deepseek_v2.py and modeling_deepseek_v3.py of transformers;
// the form of GGUF's deepseek2.
#include <fmt/format.h>

#include <cmath>

#include "base/portable_math.h"
#include "model/arch.h"

namespace wring::model {
namespace {

constexpr float kLatentNormEps = 1e-6F;  // whatever rms_norm_eps says

/// YaRN sharpens these scores twice: once for queries, once for keys.
double score_scale(const ModelConfig& c) {
  const double plain = 1.0 / std::sqrt(static_cast<double>(c.qk_nope_head_dim + c.qk_rope_head_dim));
  if (c.rope.rope_type != "yarn" || c.rope.mscale_all_dim <= 0 || c.rope.factor <= 1) return plain;
  const double sharpening = 0.1 * c.rope.mscale_all_dim * portable_log(c.rope.factor) + 1;
  return plain * sharpening * sharpening;
}

AttentionSpec latent_attention(const ModelConfig& c, std::size_t layer) {
  const std::string p = fmt::format("model.layers.{}.self_attn.", layer);
  const std::int64_t heads = c.num_attention_heads, nope = c.qk_nope_head_dim, rope = c.qk_rope_head_dim;
  LatentSpec l;
  if (c.q_lora_rank > 0) {
    l.q_a = {p + "q_a_proj", c.q_lora_rank, c.hidden_size, c.attention_bias};
    l.q_a_norm = {p + "q_a_layernorm", c.q_lora_rank, kLatentNormEps, 0};
    l.q_b = {p + "q_b_proj", heads * (nope + rope), c.q_lora_rank};
  } else {
    l.q_b = {p + "q_proj", heads * (nope + rope), c.hidden_size};
  }
  l.kv_a = {p + "kv_a_proj_with_mqa", c.kv_lora_rank + rope, c.hidden_size, c.attention_bias};
  l.kv_a_norm = {p + "kv_a_layernorm", c.kv_lora_rank, kLatentNormEps, 0};
  if (c.splits_kv_b) {
    l.k_b = {p + "k_b_proj", heads * c.kv_lora_rank, nope};
    l.v_b = {p + "v_b_proj", heads * c.v_head_dim, c.kv_lora_rank};
    l.k_b.stacked = l.v_b.stacked = heads;
  } else {
    l.kv_b = {p + "kv_b_proj", heads * (nope + c.v_head_dim), c.kv_lora_rank};
  }
  l.nope_dim = static_cast<int>(nope);
  l.value_dim = static_cast<int>(c.v_head_dim);

  AttentionSpec a;
  a.o = {p + "o_proj", c.hidden_size, heads * c.v_head_dim, c.attention_bias};
  a.num_heads = static_cast<int>(heads);
  a.num_kv_heads = 1;
  a.head_dim = static_cast<int>(c.kv_lora_rank + rope);
  a.value_dim = static_cast<int>(c.kv_lora_rank);
  a.rotary_begin = static_cast<int>(c.kv_lora_rank);
  a.rotary_pairs = true;
  a.scale = static_cast<float>(score_scale(c));
  a.latent = std::move(l);
  return a;
}

}  // namespace

ModelSpec make_deepseek_v2_spec(const ModelConfig& c) {
  ModelSpec spec = make_llama_spec(c);
  for (std::size_t i = 0; i < spec.layers.size(); ++i) spec.layers[i].attention = latent_attention(c, i);
  add_experts(spec, c);
  for (LayerSpec& layer : spec.layers) {
    if (layer.moe) layer.moe->group_best = 1;
  }
  return spec;
}

ModelSpec make_deepseek_v3_spec(const ModelConfig& c) {
  ModelSpec spec = make_deepseek_v2_spec(c);
  for (LayerSpec& layer : spec.layers) {
    if (layer.moe) layer.moe->group_best = 2;
  }
  choose_by_biased_sigmoid(spec, "mlp.gate.e_score_correction_bias");
  return spec;
}

}  // namespace wring::model
