#include "model/gguf_rules.h"

#include <algorithm>

#include "base/portable_math.h"

namespace wring::model {

std::int64_t full_attention_interval(const ModelConfig& c) {
  if (c.model_type == "gemma2" || c.model_type == "gpt_oss") return 2;
  if (c.model_type == "gemma3_text") return 6;
  if (c.model_type.starts_with("exaone")) return 4;
  if (c.model_type == "phi3") return c.num_hidden_layers + 1;  // none does
  return 0;
}

void set_gguf_layers(ModelConfig& c, std::int64_t interval, const std::vector<bool>& slides) {
  c.layer_types.clear();
  c.rotary_layers.clear();
  const bool windows = c.sliding_window > 0 && interval > 0;
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const bool sliding =
        windows && (slides.empty() ? (i + 1) % interval != 0 : slides[static_cast<std::size_t>(i)]);
    c.layer_types.push_back(sliding ? LayerType::kSlidingAttention : LayerType::kFullAttention);
    const bool without = c.model_type == "smollm3" && (i + 1) % 4 == 0;
    const bool only_sliding = c.model_type.starts_with("exaone") && c.sliding_window > 0;
    c.rotary_layers.push_back(!without && (!only_sliding || sliding));
  }
}

void set_gguf_query_scale(ModelConfig& c) {
  c.query_pre_attn_scalar = 0;  // head_dim's
  if (!c.model_type.starts_with("gemma")) return;
  const bool largest = c.num_hidden_layers == (c.model_type == "gemma2" ? 46 : 62);  // the 27 B models
  if (largest) c.query_pre_attn_scalar = static_cast<double>(c.hidden_size / c.num_attention_heads);
}

bool says_routing(const ModelConfig& c) {
  return c.model_type.starts_with("deepseek") || c.model_type == "exaone_moe";
}

std::int64_t leading_dense_layers(const ModelConfig& c) {
  return std::ranges::find(c.sparse_layers, true) - c.sparse_layers.begin();
}

std::int64_t recurrent_interval(const ModelConfig& c) {
  return std::ranges::find(c.layer_types, LayerType::kFullAttention) - c.layer_types.begin() + 1;
}

namespace {

void set_gguf_experts(ModelConfig& c) {
  if (c.num_experts == 0) return;
  const std::int64_t dense = says_routing(c) ? leading_dense_layers(c) : 0;
  c.sparse_layers.clear();
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) c.sparse_layers.push_back(i >= dense);
  // Its groups count as their two best scores do, which are DeepSeek V3's.
  if (!says_routing(c) || c.model_type == "deepseek_v2") c.n_group = c.topk_group = 1;
  if (says_routing(c)) return;
  c.norm_topk_prob = true;
  c.routed_scaling_factor = 1;
}

void set_gguf_yarn(ModelConfig& c) {
  if (c.rope.rope_type != "yarn") return;
  c.rope.truncate = c.model_type != "gpt_oss";         // as published; llama.cpp truncates it too
  if (c.kv_lora_rank == 0) c.rope.mscale_all_dim = 0;  // of other attention it says nothing
  c.rope.attention_factor =
      c.rope.mscale_all_dim > 0 || c.rope.factor <= 1 ? 1 : 0.1 * portable_log(c.rope.factor) + 1;
}

}  // namespace

ModelConfig as_gguf_says(ModelConfig c) {
  if (c.model_type == "mistral") c.model_type = "llama";
  const std::int64_t interval = recurrent_interval(c);
  set_gguf_query_scale(c);
  set_gguf_layers(c, full_attention_interval(c), {});
  if (c.linear_num_value_heads > 0) {
    for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
      if ((i + 1) % interval != 0) c.layer_types[static_cast<std::size_t>(i)] = LayerType::kLinearAttention;
    }
  }
  set_gguf_experts(c);
  if (c.model_type == "gpt_oss") {
    c.swiglu_alpha = kSwigluAlpha;
    c.swiglu_limit = kSwigluLimit;
  }
  set_gguf_yarn(c);
  if (c.kv_lora_rank > 0) c.attention_bias = false;
  return c;
}

}  // namespace wring::model
