// The table of architectures, and the pieces that several of them add to Llama's list.
#include "model/arch.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "base/utf8.h"

namespace wring::model {
namespace {

// By family. Of those that share a general.architecture the first is what a GGUF means, unless its metadata
// says more.
constexpr std::array kArchitectures = {
    Architecture{"llama", "llama", true, make_llama_spec},
    Architecture{"mistral", "llama", true, make_llama_spec},
    Architecture{"mixtral", "llama", true, make_mixtral_spec},
    Architecture{"qwen2", "qwen2", false, make_qwen2_spec},
    Architecture{"qwen3", "qwen3", false, make_qwen3_spec},
    Architecture{"qwen3_moe", "qwen3moe", false, make_qwen3_moe_spec},
    Architecture{"qwen3_5_text", "qwen35", false, make_qwen3_5_spec},
    Architecture{"qwen3_5_moe_text", "qwen35moe", false, make_qwen3_5_spec},
    Architecture{"qwen3_next", "", false, make_qwen3_next_spec},
    Architecture{"gemma2", "gemma2", false, make_gemma2_spec},
    Architecture{"gemma3_text", "gemma3", false, make_gemma3_spec},
    Architecture{"phi3", "phi3", false, make_phi3_spec},
    Architecture{"smollm3", "smollm3", true, make_llama_spec},
    Architecture{"olmo2", "olmo2", false, make_olmo2_spec},
    Architecture{"exaone4", "exaone4", false, make_exaone4_spec},
    Architecture{"exaone_moe", "exaone-moe", false, make_exaone_moe_spec},
    Architecture{"deepseek_v3", "deepseek2", false, make_deepseek_v3_spec},
    Architecture{"deepseek_v2", "deepseek2", false, make_deepseek_v2_spec},
    Architecture{"gpt2", "gpt2", false, make_gpt2_spec},
    Architecture{"gpt_oss", "gpt-oss", false, make_gpt_oss_spec},
};

NormSpec norm(std::string name, std::int64_t size, const ModelConfig& c) {
  return {std::move(name), size, static_cast<float>(c.rms_norm_eps), 0};
}

}  // namespace

std::string architecture_names(bool gguf) {
  std::string names;
  for (const Architecture& a : kArchitectures) {
    const std::string_view name = gguf ? a.gguf_architecture : a.model_type;
    if (name.empty() || (gguf && find_gguf_architecture(name) != &a)) continue;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

const Architecture& find_architecture(std::string_view model_type) {
  for (const Architecture& a : kArchitectures) {
    if (a.model_type == model_type) return a;
  }
  throw Error(ErrorCode::kNotSupported, fmt::format("model_type {} is not supported", printable(model_type)),
              {}, fmt::format("supported: {}", architecture_names(false)));
}

const Architecture* find_gguf_architecture(std::string_view gguf_architecture) {
  for (const Architecture& a : kArchitectures) {
    if (!gguf_architecture.empty() && a.gguf_architecture == gguf_architecture) return &a;
  }
  return nullptr;
}

void add_head_norms(ModelSpec& spec, const ModelConfig& c) {
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    AttentionSpec& a = spec.layers[i].attention;
    a.q_norm = norm(fmt::format("model.layers.{}.self_attn.q_norm", i), c.head_dim, c);
    a.k_norm = norm(fmt::format("model.layers.{}.self_attn.k_norm", i), c.head_dim, c);
  }
}

void add_output_norms(ModelSpec& spec, const ModelConfig& c) {
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerSpec& layer = spec.layers[i];
    layer.mixer_output_norm =
        norm(fmt::format("model.layers.{}.post_attention_layernorm", i), c.hidden_size, c);
    layer.mlp_output_norm =
        norm(fmt::format("model.layers.{}.post_feedforward_layernorm", i), c.hidden_size, c);
  }
}

}  // namespace wring::model
