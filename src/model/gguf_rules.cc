#include "model/gguf_rules.h"

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

ModelConfig as_gguf_says(ModelConfig c) {
  if (c.model_type == "mistral") c.model_type = "llama";
  set_gguf_query_scale(c);
  set_gguf_layers(c, full_attention_interval(c), {});
  return c;
}

}  // namespace wring::model
