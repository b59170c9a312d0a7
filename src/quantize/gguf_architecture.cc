#include "quantize/gguf_architecture.h"

#include <array>
#include <string>

#include "model/arch.h"
#include "model/gguf_rules.h"
#include "model/rope.h"

namespace wring::quantize {
namespace {

using formats::GgufWriter;
using model::ModelConfig;

constexpr std::uint32_t kSoftmax = 1, kSigmoid = 2;  // llama.cpp's numbers of gating functions

std::uint32_t u32(std::int64_t n) {
  return static_cast<std::uint32_t>(n);
}

void add_bools(GgufWriter& writer, const std::string& key, std::vector<bool> values) {
  writer.add_entry(key, {formats::GgufKind::kBool, std::move(values)});
}

std::vector<bool> layers_of(const ModelConfig& c, model::LayerType type) {
  std::vector<bool> layers;
  for (const model::LayerType t : c.layer_types) layers.push_back(t == type);
  return layers;
}

void add_windows_and_caps(GgufWriter& writer, const ModelConfig& c, const std::string& p) {
  if (c.sliding_window > 0) {
    writer.add_u32(p + "attention.sliding_window", u32(c.sliding_window));  // the pattern is llama.cpp's own
    if (c.model_type == "exaone_moe") {
      add_bools(writer, p + "attention.sliding_window_pattern",
                layers_of(c, model::LayerType::kSlidingAttention));
    }
  }
  if (c.attn_logit_softcapping > 0)
    writer.add_f32(p + "attn_logit_softcapping", static_cast<float>(c.attn_logit_softcapping));
  if (c.final_logit_softcapping > 0)
    writer.add_f32(p + "final_logit_softcapping", static_cast<float>(c.final_logit_softcapping));
  if (c.local_rope) writer.add_f32(p + "rope.freq_base_swa", static_cast<float>(c.local_rope->rope_theta));
}

/// Latent attention is what attention over the latent cache is: one key/value head of latent and rotary part.
void add_heads(GgufWriter& writer, const ModelConfig& c, const std::string& p) {
  writer.add_u32(p + "attention.head_count", u32(c.num_attention_heads));
  if (c.kv_lora_rank == 0) {
    writer.add_u32(p + "attention.head_count_kv", u32(c.num_key_value_heads));
    writer.add_u32(p + "attention.key_length", u32(c.head_dim));
    writer.add_u32(p + "attention.value_length", u32(c.head_dim));
    return;
  }
  writer.add_u32(p + "attention.head_count_kv", 1);
  writer.add_u32(p + "attention.key_length", u32(c.kv_lora_rank + c.qk_rope_head_dim));
  writer.add_u32(p + "attention.value_length", u32(c.kv_lora_rank));
  writer.add_u32(p + "attention.key_length_mla", u32(c.qk_nope_head_dim + c.qk_rope_head_dim));
  writer.add_u32(p + "attention.value_length_mla", u32(c.v_head_dim));
  if (c.q_lora_rank > 0) writer.add_u32(p + "attention.q_lora_rank", u32(c.q_lora_rank));
  writer.add_u32(p + "attention.kv_lora_rank", u32(c.kv_lora_rank));
}

void add_rope(GgufWriter& writer, const ModelConfig& c, const std::string& p) {
  const model::RopeParameters& rope = c.rope;
  const std::string scaling = p + "rope.scaling.";
  writer.add_u32(p + "rope.dimension_count", u32(model::rotated_values(rope, c.head_dim)));
  writer.add_f32(p + "rope.freq_base", static_cast<float>(rope.rope_theta));
  if (rope.rope_type == "linear" || rope.rope_type == "yarn") {
    writer.add_string(scaling + "type", rope.rope_type);
    writer.add_f32(scaling + "factor", static_cast<float>(rope.factor));
  }
  if (rope.rope_type == "yarn" || rope.rope_type == "longrope")
    writer.add_u32(scaling + "original_context_length", u32(rope.original_max_position_embeddings));
  if (rope.rope_type == "longrope")  // its divisors are tensors
    writer.add_f32(scaling + "attn_factor", static_cast<float>(rope.attention_factor));
  if (rope.rope_type == "yarn") {
    writer.add_f32(scaling + "yarn_beta_fast", static_cast<float>(rope.beta_fast));
    writer.add_f32(scaling + "yarn_beta_slow", static_cast<float>(rope.beta_slow));
    if (rope.mscale_all_dim > 0)
      writer.add_f32(scaling + "yarn_log_multiplier", static_cast<float>(0.1 * rope.mscale_all_dim));
  }
}

void add_experts(GgufWriter& writer, const ModelConfig& c, const std::string& p) {
  if (c.num_experts == 0) return;
  writer.add_u32(p + "expert_count", u32(c.num_experts));
  writer.add_u32(p + "expert_used_count", u32(c.num_experts_per_tok));
  if (c.model_type != "mixtral")
    writer.add_u32(p + "expert_feed_forward_length", u32(c.moe_intermediate_size));
  if (c.shared_expert_intermediate_size > 0) {
    writer.add_u32(p + "expert_shared_feed_forward_length", u32(c.shared_expert_intermediate_size));
  } else if (c.num_shared_experts > 0) {
    writer.add_u32(p + "expert_shared_count", u32(c.num_shared_experts));
    writer.add_u32(p + "expert_shared_feed_forward_length",
                   u32(c.num_shared_experts * c.moe_intermediate_size));
  }
  if (!model::says_routing(c)) return;  // the rest is fixed in llama.cpp's code
  writer.add_u32(p + "expert_group_count", u32(c.n_group));
  writer.add_u32(p + "expert_group_used_count", u32(c.topk_group));
  writer.add_u32(p + "expert_gating_func", c.model_type == "deepseek_v2" ? kSoftmax : kSigmoid);
  writer.add_f32(p + "expert_weights_scale", static_cast<float>(c.routed_scaling_factor));
  writer.add_bool(p + "expert_weights_norm", c.norm_topk_prob);
  writer.add_u32(p + "leading_dense_block_count", u32(model::leading_dense_layers(c)));
}

/// How the rotated pairs are shared among time, height and width: of text the three are the same, but
/// llama.cpp asks for it. As equal as can be, where the configuration does not say.
std::array<std::int32_t, 4> rope_sections(const ModelConfig& c) {
  const auto pairs = static_cast<std::int32_t>(model::rotated_values(c.rope, c.head_dim) / 2);
  std::array<std::int32_t, 4> sections = {(pairs + 2) / 3, (pairs + 1) / 3, pairs / 3, 0};
  for (std::size_t i = 0; i < c.rope.mrope_section.size(); ++i)
    sections[i] = static_cast<std::int32_t>(c.rope.mrope_section[i]);
  return sections;
}

void add_delta_net(GgufWriter& writer, const ModelConfig& c, const std::string& p) {
  if (c.linear_num_value_heads == 0) return;
  writer.add_i32s(p + "rope.dimension_sections", rope_sections(c));
  writer.add_u32(p + "ssm.conv_kernel", u32(c.linear_conv_kernel_dim));
  writer.add_u32(p + "ssm.state_size", u32(c.linear_key_head_dim));
  writer.add_u32(p + "ssm.group_count", u32(c.linear_num_key_heads));
  writer.add_u32(p + "ssm.time_step_rank", u32(c.linear_num_value_heads));
  writer.add_u32(p + "ssm.inner_size", u32(c.linear_num_value_heads * c.linear_value_head_dim));
  add_bools(writer, p + "attention.recurrent_layers", layers_of(c, model::LayerType::kLinearAttention));
  writer.add_u32(p + "full_attention_interval", u32(model::recurrent_interval(c)));
}

}  // namespace

void add_gguf_architecture(GgufWriter& writer, const ModelConfig& c) {
  const std::string p = std::string(model::find_architecture(c.model_type).gguf_architecture) + ".";
  writer.add_u32(p + "block_count", u32(c.num_hidden_layers));
  writer.add_u32(p + "context_length", u32(c.max_position_embeddings));
  writer.add_u32(p + "embedding_length", u32(c.hidden_size));
  if (c.model_type != "qwen3_5_moe_text")  // all its layers have experts
    writer.add_u32(p + "feed_forward_length", u32(c.intermediate_size));
  add_heads(writer, c, p);
  const bool gpt2 = c.model_type == "gpt2";  // LayerNorm, and no rotary positions
  writer.add_f32(p + (gpt2 ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"),
                 static_cast<float>(c.rms_norm_eps));
  if (!gpt2) add_rope(writer, c, p);
  writer.add_u32(p + "vocab_size", u32(c.vocab_size));
  if (c.model_type != "mistral") add_windows_and_caps(writer, c, p);
  add_experts(writer, c, p);
  add_delta_net(writer, c, p);
}

}  // namespace wring::quantize
