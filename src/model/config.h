// Hyper-parameters under the names of Hugging Face's config.json, wherever they were read from. A field that
// would change the computation and is not implemented is an error at load (kNotSupported), never ignored.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/quantization.h"

namespace wring::formats {
class GgufReader;
}

namespace wring::model {

/// Rotary position embedding, as `rope_parameters` (older: rope_theta and rope_scaling) define it.
struct RopeParameters {
  std::string rope_type = "default";  // default, linear, llama3, yarn, longrope
  double rope_theta = 10000.0;
  double factor = 1.0;                                // linear, llama3, yarn
  double low_freq_factor = 1.0;                       // llama3
  double high_freq_factor = 4.0;                      // llama3
  std::int64_t original_max_position_embeddings = 0;  // llama3, yarn, longrope
  double beta_fast = 32.0, beta_slow = 1.0;           // yarn
  double mscale_all_dim = 0;                          // yarn of latent attention: sharpens scores
  double attention_factor = 1.0;                      // yarn, longrope: multiplies cosine and sine
  std::vector<float> short_factor, long_factor;       // longrope: one divisor a rotated pair
  double partial_rotary_factor = 1.0;                 // of a head, from its front: what is rotated
  std::vector<std::int64_t> mrope_section;            // pairs of time, height and width: of text all the same
  bool truncate = true;                               // yarn: whole-numbered bounds of the ramp
  std::vector<float> freq_divisors;  // GGUF's rope_freqs.weight: one divisor a rotated pair; else empty
};

/// What a layer's attention sees: all positions before, the last sliding_window of them, or a recurrent
/// state.
enum class LayerType : std::uint8_t { kFullAttention, kSlidingAttention, kLinearAttention };

struct ModelConfig {
  std::string model_type;  // "llama"; text models out of a larger one: "gemma3_text"
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t max_position_embeddings = 0;
  double rms_norm_eps = 0;
  std::string hidden_act = "silu";  // silu, gelu_pytorch_tanh
  bool tie_word_embeddings = false;
  bool attention_bias = false;  // q, k, v and o
  bool mlp_bias = false;
  std::vector<LayerType> layer_types;  // by layer; empty: all see all positions
  std::vector<bool>
      rotary_layers;  // by layer: false where attention has no positions (NoPE); empty: all have
  std::int64_t sliding_window = 0;            // positions, the token's own included; 0: none
  double query_pre_attn_scalar = 0;           // scores are divided by its root; 0: head_dim's
  double attn_logit_softcapping = 0;          // 0: none
  double final_logit_softcapping = 0;         // 0: none
  double swiglu_alpha = 0, swiglu_limit = 0;  // of gpt_oss' experts
  bool norms_hold_one = false;  // GGUF's form of norms that multiply by 1 + w: the 1 is in the file
  // Mixtures of experts; num_experts 0: none.
  std::int64_t num_experts = 0, num_experts_per_tok = 0, moe_intermediate_size = 0;
  std::int64_t num_shared_experts = 0;
  std::int64_t n_group = 1, topk_group = 1;
  bool norm_topk_prob = true;
  double routed_scaling_factor = 1.0;
  std::vector<bool> sparse_layers;  // by layer: which have experts; empty: all
  // Gated DeltaNet, in layers of kLinearAttention.
  std::int64_t linear_conv_kernel_dim = 0, linear_num_key_heads = 0, linear_num_value_heads = 0;
  std::int64_t linear_key_head_dim = 0, linear_value_head_dim = 0;
  std::int64_t shared_expert_intermediate_size = 0;  // where shared experts have a size of their own
  // Multi-head latent attention; kv_lora_rank 0: none. q_lora_rank 0: queries are not compressed.
  std::int64_t q_lora_rank = 0, kv_lora_rank = 0, qk_nope_head_dim = 0, qk_rope_head_dim = 0, v_head_dim = 0;
  bool splits_kv_b = false;  // GGUF's form of kv_b_proj: keys and values apart
  RopeParameters rope;
  std::optional<RopeParameters> local_rope;   // of sliding layers, where they have their own
  std::int64_t num_nextn_predict_layers = 0;  // behind the last layer: predict further tokens, not used
  /// The text model of a vision-language checkpoint: names begin with model.language_model.
  bool nested_text = false;
  QuantizationConfig quantization;
  std::vector<std::int32_t>
      eos_token_ids;  // what ends a reply: config.json and generation_config.json together
};

/// Reads folder/config.json (and generation_config.json if there). Errors: kBadInput naming the field, its
/// value and limit; kNotSupported for an architecture, activation, rope type or quantization_config that is
/// not implemented.
ModelConfig read_hf_config(const std::filesystem::path& folder);

/// Reads the same from GGUF metadata. Errors: as above, naming the key.
ModelConfig read_gguf_config(const formats::GgufReader& file);

}  // namespace wring::model
