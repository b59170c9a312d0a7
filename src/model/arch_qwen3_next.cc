// Qwen 3.5 and Qwen3-Next (arch.h): three Gated DeltaNet layers, then one of gated attention. Source:
// modeling_qwen3_5.py and modeling_qwen3_next.py of transformers.
#include <fmt/format.h>

#include "model/arch.h"

namespace wring::model {
namespace {

DeltaNetSpec delta_net(const ModelConfig& c, std::size_t layer, bool fused) {
  const std::string p = fmt::format("model.layers.{}.linear_attn.", layer);
  const std::int64_t keys = c.linear_num_key_heads * c.linear_key_head_dim;
  const std::int64_t values = c.linear_num_value_heads * c.linear_value_head_dim;
  DeltaNetSpec d;
  if (fused) {
    d.fused = true;
    d.qkv = {p + "in_proj_qkvz", 2 * keys + 2 * values, c.hidden_size};
    d.b = {p + "in_proj_ba", 2 * c.linear_num_value_heads, c.hidden_size};
  } else {
    d.qkv = {p + "in_proj_qkv", 2 * keys + values, c.hidden_size};
    d.z = {p + "in_proj_z", values, c.hidden_size};
    d.b = {p + "in_proj_b", c.linear_num_value_heads, c.hidden_size};
    d.a = {p + "in_proj_a", c.linear_num_value_heads, c.hidden_size};
  }
  d.conv = {p + "conv1d", 2 * keys + values, c.linear_conv_kernel_dim};
  d.in_gguf_form = c.norms_hold_one;
  if (!d.in_gguf_form) d.conv.stacked = d.conv.rows;  // (channels, 1, width)
  d.a_log = p + "A_log";
  d.dt_bias = p + "dt_bias";
  d.norm = {p + "norm", c.linear_value_head_dim, static_cast<float>(c.rms_norm_eps), 0};
  d.out = {p + "out_proj", c.hidden_size, values};
  d.key_heads = static_cast<int>(c.linear_num_key_heads);
  d.value_heads = static_cast<int>(c.linear_num_value_heads);
  d.key_dim = static_cast<int>(c.linear_key_head_dim);
  d.value_dim = static_cast<int>(c.linear_value_head_dim);
  return d;
}

ModelSpec make_hybrid_spec(const ModelConfig& c, bool fused) {
  ModelSpec spec = make_qwen3_spec(c);
  const float offset = c.norms_hold_one ? 0.0F : 1.0F;
  spec.final_norm.weight_offset = offset;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerSpec& layer = spec.layers[i];
    layer.mixer_norm->weight_offset = layer.mlp_norm->weight_offset = offset;
    if (c.layer_types[i] == LayerType::kLinearAttention) {
      layer.attention = {};
      layer.delta_net = delta_net(c, i, fused);
    } else {
      layer.attention.q_norm->weight_offset = layer.attention.k_norm->weight_offset = offset;
      layer.attention.gated = true;
      layer.attention.q.rows *= 2;  // a head's rows are [query | gate]
    }
  }
  if (c.num_experts > 0) {
    add_experts(spec, c);
    for (std::size_t i = 0; i < spec.layers.size(); ++i) {
      if (!spec.layers[i].moe) continue;
      spec.layers[i].moe->shared_gate = {fmt::format("model.layers.{}.mlp.shared_expert_gate", i), 1,
                                         c.hidden_size};
    }
  }
  return spec;
}

}  // namespace

ModelSpec make_qwen3_5_spec(const ModelConfig& c) {
  return make_hybrid_spec(c, false);
}

ModelSpec make_qwen3_next_spec(const ModelConfig& c) {
  return make_hybrid_spec(c, true);
}

}  // namespace wring::model
