// The architectures that can be computed: from hyper-parameters to the declarative list of layers. Those
// after Llama are Llama's list with what differs changed.
#pragma once

#include <string_view>

#include "model/spec.h"

namespace wring::model {

struct Architecture {
  std::string_view model_type;         // of config.json
  std::string_view gguf_architecture;  // general.architecture
  bool pairs_in_gguf;                  // whether GGUF files order the rows of queries and keys in pairs
  ModelSpec (*make_spec)(const ModelConfig& config);
};

/// Errors: kNotSupported naming the model type and those that are supported.
const Architecture& find_architecture(std::string_view model_type);
/// By general.architecture; null: not supported. Where several model types share one, the first.
const Architecture* find_gguf_architecture(std::string_view gguf_architecture);
/// For messages: "llama, mistral, …", as config.json or as GGUF names them.
std::string architecture_names(bool gguf);

/// Llama 1 to 3 (and SmolLM2), Mistral, SmolLM3: pre-norm, rotary, grouped heads, gated SiLU MLP; sliding
/// layers and layers without rotary as the configuration has them.
ModelSpec make_llama_spec(const ModelConfig& config);
/// Biases on queries, keys and values.
ModelSpec make_qwen2_spec(const ModelConfig& config);
/// Queries and keys are normalized head by head.
ModelSpec make_qwen3_spec(const ModelConfig& config);
/// Norms that multiply by 1 + w, before and after each part; scaled embeddings; soft caps.
ModelSpec make_gemma2_spec(const ModelConfig& config);
/// Gemma 2 with normalized queries and keys instead of soft caps.
ModelSpec make_gemma3_spec(const ModelConfig& config);
/// Norms on what a part adds instead of on what it reads; queries and keys normalized whole.
ModelSpec make_olmo2_spec(const ModelConfig& config);
/// OLMo 2's norms, with queries and keys normalized head by head.
ModelSpec make_exaone4_spec(const ModelConfig& config);

/// Queries, keys and values in one tensor, gate and up in another; rotary of a part of the head.
ModelSpec make_phi3_spec(const ModelConfig& config);
/// Llama with a mixture of experts for an MLP.
ModelSpec make_mixtral_spec(const ModelConfig& config);
/// Qwen 3 with a mixture of experts.
ModelSpec make_qwen3_moe_spec(const ModelConfig& config);
/// K-EXAONE: sigmoid scores with a bias for the choice, a shared expert, dense layers first.
ModelSpec make_exaone_moe_spec(const ModelConfig& config);

/// Multi-head latent attention and a mixture of experts: softmax scores, best groups by their best expert.
ModelSpec make_deepseek_v2_spec(const ModelConfig& config);
/// Sigmoid scores with a bias for the choice instead.
ModelSpec make_deepseek_v3_spec(const ModelConfig& config);

/// LayerNorm, learned positions, one map for queries, keys and values, an MLP without a gate.
ModelSpec make_gpt2_spec(const ModelConfig& config);
/// Attention with sinks, and experts of clamped SwiGLU; everything has biases.
ModelSpec make_gpt_oss_spec(const ModelConfig& config);

/// Gated DeltaNet layers between gated attention; mixtures of experts where the configuration has them.
ModelSpec make_qwen3_5_spec(const ModelConfig& config);
/// The same with fused projections.
ModelSpec make_qwen3_next_spec(const ModelConfig& config);

// What the functions above share.

/// Mixtures of experts for the MLPs of sparse layers, under "mlp.experts", "mlp.gate" and
/// "mlp.shared_experts".
void add_experts(ModelSpec& spec, const ModelConfig& config);
/// Experts of the sparse layers are scored by sigmoids and chosen with the vector `bias` of the layer added.
void choose_by_biased_sigmoid(ModelSpec& spec, std::string_view bias);
/// The norms of queries and keys, each over a head.
void add_head_norms(ModelSpec& spec, const ModelConfig& config);
/// Norms on the outputs of both parts, named post_attention_layernorm and post_feedforward_layernorm.
void add_output_norms(ModelSpec& spec, const ModelConfig& config);

}  // namespace wring::model
