// The same hyper-parameters from GGUF metadata: "<architecture>.<key>", in the names that llama.cpp writes.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/portable_math.h"
#include "base/utf8.h"
#include "formats/gguf.h"
#include "model/arch.h"
#include "model/config_checks.h"
#include "model/gguf_rules.h"

namespace wring::model {
namespace {

double number_in(const formats::GgufReader& file, const std::string& key, double value, double low,
                 double high) {
  if (value >= low && value <= high) return value;
  throw Error(ErrorCode::kBadInput, fmt::format("{} is {}, outside [{}, {}]", key, value, low, high),
              file.file());
}

// llama.cpp sharpens attention by the factor itself; attn_factor is what stands beside that.
void read_yarn(const formats::GgufReader& file, const std::string& prefix, RopeParameters& rope) {
  const std::string scaling = prefix + "rope.scaling.";
  const auto number = [&](const char* name, double fallback, double low, double high) {
    return number_in(file, scaling + name, file.number_or(scaling + name, fallback), low, high);
  };
  rope.rope_type = "yarn";
  rope.factor = number_in(file, scaling + "factor", file.number(scaling + "factor"), 1e-3, 1e6);
  rope.original_max_position_embeddings =
      file.integer_or(scaling + "original_context_length",
                      file.integer(prefix + "context_length", 1, kMaxContext), 1, kMaxContext);
  rope.beta_fast = number("yarn_beta_fast", 32, 1e-3, 1e6);
  rope.beta_slow = number("yarn_beta_slow", 1, 1e-3, 1e6);
  if (file.has(scaling + "yarn_log_multiplier")) {  // latent attention sharpens scores instead of positions
    rope.mscale_all_dim = number("yarn_log_multiplier", 0.1, 0, 1e3) * 10;
    return;
  }
  const double sharpening = rope.factor > 1 ? 0.1 * portable_log(rope.factor) + 1 : 1.0;
  rope.attention_factor = number("attn_factor", 1, 1e-3, 1e3) * sharpening;
}

// A vector of divisors, one a rotated pair; empty: the file has none.
std::vector<float> read_divisors(const formats::GgufReader& file, const char* name, std::int64_t pairs) {
  const formats::TensorInfo* tensor = file.find(name);
  if (tensor == nullptr) return {};
  if (tensor->type != formats::QuantType::kF32 || tensor->elements() != static_cast<std::uint64_t>(pairs)) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} has {} values of type {}, {} of type F32 are expected", name,
                            tensor->elements(), formats::name_of(tensor->type), pairs),
                file.file());
  }
  std::vector<float> divisors(tensor->elements());
  std::copy_n(tensor->data.data(), tensor->data.size(), reinterpret_cast<std::byte*>(divisors.data()));
  for (const float d : divisors) number_in(file, fmt::format("a value of {}", name), d, 1e-6, 1e9);
  return divisors;
}

RopeParameters read_rope(const formats::GgufReader& file, const std::string& prefix, std::int64_t head_dim,
                         bool rotates_parts) {
  RopeParameters rope;
  const std::string theta = prefix + "rope.freq_base";
  rope.rope_theta = number_in(file, theta, file.number_or(theta, 10000.0), 1e-3, 1e12);
  const std::string type = file.string_or(prefix + "rope.scaling.type", "none");
  if (type == "linear") {
    rope.rope_type = "linear";
    const std::string factor = prefix + "rope.scaling.factor";
    rope.factor = number_in(file, factor, file.number(factor), 1e-3, 1e6);
  } else if (type == "yarn") {
    read_yarn(file, prefix, rope);
  } else if (type != "none") {
    throw Error(ErrorCode::kNotSupported,
                fmt::format("{}rope.scaling.type {} is not supported", prefix, printable(type)), file.file(),
                "supported: none, linear, yarn, and rope_freqs.weight");
  }
  const std::int64_t rotated = file.integer_or(prefix + "rope.dimension_count", head_dim, 2, head_dim);
  rope.partial_rotary_factor = static_cast<double>(rotated) / static_cast<double>(head_dim);
  if (rotated != head_dim && !rotates_parts) {
    throw Error(
        ErrorCode::kNotSupported,
        fmt::format("{}rope.dimension_count {} differs from the head size {}", prefix, rotated, head_dim),
        file.file());
  }
  rope.freq_divisors = read_divisors(file, "rope_freqs.weight", rotated / 2);
  rope.short_factor = read_divisors(file, "rope_factors_short.weight", rotated / 2);
  rope.long_factor = read_divisors(file, "rope_factors_long.weight", rotated / 2);
  if (rope.short_factor.empty() != rope.long_factor.empty()) {
    throw Error(ErrorCode::kBadInput, "rope_factors_short.weight and rope_factors_long.weight go together",
                file.file());
  }
  if (!rope.long_factor.empty()) {
    rope.rope_type = "longrope";
    rope.original_max_position_embeddings =
        file.integer(prefix + "rope.scaling.original_context_length", 2, kMaxContext);
    const std::string factor = prefix + "rope.scaling.attn_factor";
    rope.attention_factor = number_in(file, factor, file.number_or(factor, 1), 1e-3, 1e3);
  }
  return rope;
}

// What llama.cpp knows of Gemma without being told: activation, query scale, and the local rotary base.
void read_gemma(const formats::GgufReader& file, const std::string& p, ModelConfig& c) {
  if (!c.model_type.starts_with("gemma")) return;
  c.hidden_act = "gelu_pytorch_tanh";
  c.norms_hold_one = true;
  set_gguf_query_scale(c);
  if (c.model_type == "gemma2") {
    const auto cap = [&](const std::string& key, double fallback) {
      return number_in(file, key, file.number_or(key, fallback), 1e-3, 1e6);
    };
    c.attn_logit_softcapping = cap(p + "attn_logit_softcapping", 50);
    c.final_logit_softcapping = cap(p + "final_logit_softcapping", 30);
    return;
  }
  RopeParameters local;
  const std::string theta = p + "rope.freq_base_swa";
  local.rope_theta = number_in(file, theta, file.number_or(theta, 10000.0), 1e-3, 1e12);
  c.local_rope = local;
}

void read_latent(const formats::GgufReader& file, const std::string& p, ModelConfig& c) {
  if (!file.has(p + "attention.key_length_mla")) {
    throw Error(ErrorCode::kNotSupported, fmt::format("{}attention.key_length_mla is missing", p),
                file.file(), "convert the model again with a converter of 2025 or later");
  }
  if (file.has(p + "attention.q_lora_rank"))
    c.q_lora_rank = file.integer(p + "attention.q_lora_rank", 1, kMaxSize);
  c.kv_lora_rank = file.integer(p + "attention.kv_lora_rank", 1, kMaxSize);
  c.qk_rope_head_dim = file.integer(p + "rope.dimension_count", 2, kMaxHeadDim);
  c.qk_nope_head_dim =
      file.integer(p + "attention.key_length_mla", c.qk_rope_head_dim + 1, kMaxHeadDim) - c.qk_rope_head_dim;
  c.v_head_dim = file.integer(p + "attention.value_length_mla", 1, kMaxHeadDim);
  c.head_dim = c.qk_rope_head_dim;
  c.splits_kv_b = true;
}

// A key head's size is the state's; a value head's follows from the inner size.
void read_delta_net(const formats::GgufReader& file, const std::string& p, ModelConfig& c) {
  if (!c.model_type.starts_with("qwen3_5")) return;
  c.norms_hold_one = true;
  c.linear_conv_kernel_dim = file.integer(p + "ssm.conv_kernel", 1, 64);
  c.linear_key_head_dim = file.integer(p + "ssm.state_size", 1, kMaxHeadDim);
  c.linear_num_key_heads = file.integer(p + "ssm.group_count", 1, kMaxSize);
  c.linear_num_value_heads = file.integer(p + "ssm.time_step_rank", 1, kMaxSize);
  const std::int64_t inner = file.integer(p + "ssm.inner_size", 1, kMaxSize);
  if (inner % c.linear_num_value_heads != 0 || c.linear_num_value_heads % c.linear_num_key_heads != 0) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{}ssm.inner_size {}, time_step_rank {} and group_count {} do not divide", p,
                            inner, c.linear_num_value_heads, c.linear_num_key_heads),
                file.file());
  }
  c.linear_value_head_dim = inner / c.linear_num_value_heads;
  const std::string sections = p + "rope.dimension_sections";
  if (file.has(sections)) c.rope.mrope_section = file.integers(sections);
  if (c.rope.mrope_section.size() > 4) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} has {} entries, at most 4", sections, c.rope.mrope_section.size()),
                file.file());
  }
  c.shared_expert_intermediate_size =
      file.integer_or(p + "expert_shared_feed_forward_length", 0, 0, kMaxSize);
}

// Shared by Llama's architecture, where it says Mixtral, and those of their own.
void read_experts(const formats::GgufReader& file, const std::string& p, ModelConfig& c) {
  c.num_experts = file.integer_or(p + "expert_count", 0, 0, kMaxExperts);
  if (c.model_type == "llama" && c.num_experts > 0) c.model_type = "mixtral";
  if (c.num_experts == 0) {
    if (c.model_type.find("_moe") == std::string::npos) return;
    throw Error(ErrorCode::kBadInput, fmt::format("{}expert_count is missing or 0", p), file.file());
  }
  const bool deepseek = c.model_type.starts_with("deepseek");
  const bool gpt_oss = c.model_type == "gpt_oss";
  if (gpt_oss) {
    c.swiglu_alpha = kSwigluAlpha;
    c.swiglu_limit = kSwigluLimit;
  }
  if (c.model_type != "mixtral" && !gpt_oss && c.model_type.find("_moe") == std::string::npos && !deepseek) {
    throw Error(
        ErrorCode::kNotSupported,
        fmt::format("{}expert_count is {}: experts of this architecture are not supported", p, c.num_experts),
        file.file());
  }
  c.num_experts_per_tok = file.integer(p + "expert_used_count", 1, c.num_experts);
  c.moe_intermediate_size =
      file.integer_or(p + "expert_feed_forward_length", c.intermediate_size, 1, kMaxSize);
  c.num_shared_experts = file.integer_or(p + "expert_shared_count", 0, 0, kMaxExperts);
  // DeepSeek's loader reads a missing key as false; the others' code normalizes whatever it says.
  c.norm_topk_prob = file.boolean_or(p + "expert_weights_norm", !deepseek);
  const std::string scale = p + "expert_weights_scale";
  c.routed_scaling_factor = number_in(file, scale, file.number_or(scale, 1), 1e-6, 1e6);
  c.n_group = file.integer_or(p + "expert_group_count", 1, 1, c.num_experts);
  c.topk_group = file.integer_or(p + "expert_group_used_count", c.n_group, 1, c.n_group);
  // llama.cpp's softmax is 1, its sigmoid 2, and 3 a softmax over the chosen. DeepSeek V2 says nothing, or 1.
  std::int64_t gating = deepseek ? 1 : c.model_type == "exaone_moe" ? 2 : gpt_oss ? 3 : 1;
  const std::int64_t found = file.integer_or(p + "expert_gating_func", gating, 0, 100);
  if (deepseek && found == 1) c.model_type = "deepseek_v2";
  if (deepseek && found == 2) gating = 2;
  if (found != gating) {
    throw Error(ErrorCode::kNotSupported, fmt::format("{}expert_gating_func {} is not supported", p, found),
                file.file(), fmt::format("supported for {}: {}", c.model_type, gating));
  }
  check_experts(c, file.file());
  const std::int64_t dense = file.integer_or(p + "leading_dense_block_count", 0, 0, c.num_hidden_layers);
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) c.sparse_layers.push_back(i >= dense);
}

// A list by layer; empty: it is a number, or not there.
std::vector<bool> listed_layers(const formats::GgufReader& file, const std::string& key,
                                std::int64_t layers) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) return {};
  const auto* list = std::get_if<std::vector<bool>>(&found->second.value);
  if (list == nullptr) return {};
  if (static_cast<std::int64_t>(list->size()) < layers) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} has {} entries for {} layers", key, list->size(), layers), file.file());
  }
  return *list;
}

void set_linear_layers(const formats::GgufReader& file, const std::string& p, ModelConfig& c) {
  const std::vector<bool> recurrent =
      listed_layers(file, p + "attention.recurrent_layers", c.num_hidden_layers);
  const std::int64_t interval = file.integer_or(p + "full_attention_interval", 4, 1, kMaxLayers);
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const auto layer = static_cast<std::size_t>(i);
    if (recurrent.empty() ? (i + 1) % interval != 0 : recurrent[layer])
      c.layer_types[layer] = LayerType::kLinearAttention;
  }
}

void read_layers(const formats::GgufReader& file, const std::string& p, ModelConfig& c) {
  const std::string window = p + "attention.sliding_window", pattern = window + "_pattern";
  std::int64_t interval = full_attention_interval(c);
  const std::int64_t unsaid = c.model_type == "gemma2" ? 4096 : 0;  // llama.cpp's defaults
  if (interval > 0) c.sliding_window = file.integer_or(window, unsaid, 0, kMaxContext);
  const std::vector<bool> listed = listed_layers(file, pattern, c.num_hidden_layers);
  if (listed.empty() && interval > 0) interval = file.integer_or(pattern, interval, 1, kMaxLayers + 1);
  set_gguf_layers(c, interval, listed);
  if (c.model_type.starts_with("qwen3_5")) set_linear_layers(file, p, c);
}

}  // namespace

ModelConfig read_gguf_config(const formats::GgufReader& file) {
  ModelConfig c;
  const std::string& name = file.string("general.architecture");
  const Architecture* architecture = find_gguf_architecture(name);
  if (architecture == nullptr) {
    throw Error(ErrorCode::kNotSupported,
                fmt::format("general.architecture {} is not supported", printable(name)), file.file(),
                fmt::format("supported: {}", architecture_names(true)));
  }
  c.model_type = architecture->model_type;
  const std::string p = name + ".";
  c.hidden_size = file.integer(p + "embedding_length", 1, kMaxSize);
  const formats::TensorInfo* embedding = file.find("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) {
    throw Error(ErrorCode::kBadInput, "tensor token_embd.weight is missing or not a matrix", file.file());
  }
  c.vocab_size = static_cast<std::int64_t>(embedding->shape[0]);
  if (c.vocab_size > kMaxSize) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("token_embd.weight has {} rows, at most {}", c.vocab_size, kMaxSize),
                file.file());
  }
  if (static_cast<std::int64_t>(embedding->shape[1]) != c.hidden_size) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("token_embd.weight has shape [{}, {}], [{}, {}] expected from {}embedding_length",
                            c.vocab_size, embedding->shape[1], c.vocab_size, c.hidden_size, p),
                file.file());
  }
  // Where all layers have experts there is no dense size.
  const bool all_experts = c.model_type == "qwen3_5_moe_text";
  c.intermediate_size = all_experts ? 1 : file.integer(p + "feed_forward_length", 1, kMaxSize);
  c.num_hidden_layers = file.integer(p + "block_count", 1, kMaxLayers);
  c.num_attention_heads = file.integer(p + "attention.head_count", 1, kMaxSize);
  c.num_key_value_heads =
      file.integer_or(p + "attention.head_count_kv", c.num_attention_heads, 1, c.num_attention_heads);
  const HeadNames names = {p + "embedding_length", p + "attention.head_count", p + "attention.head_count_kv",
                           p + "attention.key_length"};
  const std::int64_t head_dim = default_head_dim(c, file.has(names.head_dim), names, file.file());
  c.head_dim = file.integer_or(names.head_dim, head_dim, 1, kMaxHeadDim);
  if (c.model_type.starts_with("deepseek")) {
    read_latent(file, p, c);
  } else if (file.integer_or(p + "attention.value_length", c.head_dim, 1, kMaxHeadDim) != c.head_dim) {
    throw Error(ErrorCode::kNotSupported, fmt::format("{}attention.value_length differs from key_length", p),
                file.file());
  }
  c.model_type == "gpt2" ? check_whole_heads(c, names, file.file()) : check_heads(c, names, file.file());
  read_experts(file, p, c);
  c.max_position_embeddings = file.integer(p + "context_length", 1, kMaxContext);
  const bool gpt2 = c.model_type == "gpt2";
  const std::string eps = p + (gpt2 ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon");
  c.rms_norm_eps = number_in(file, eps, file.number(eps), 0, 1);
  if (gpt2) c.hidden_act = "gelu_pytorch_tanh";
  if (!gpt2)
    c.rope = read_rope(file, p, c.head_dim, c.model_type == "phi3" || c.model_type.starts_with("qwen3_5"));
  if (c.model_type == "gpt_oss") c.rope.truncate = false;  // as published; GGUF does not say it
  read_gemma(file, p, c);
  read_delta_net(file, p, c);
  read_layers(file, p, c);

  c.tie_word_embeddings = file.find("output.weight") == nullptr;
  c.attention_bias = file.find("blk.0.attn_q.bias") != nullptr;
  c.mlp_bias = file.find("blk.0.ffn_down.bias") != nullptr;
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}) {
    if (!file.has(key)) continue;
    const auto id = static_cast<std::int32_t>(file.integer(key, 0, c.vocab_size - 1));
    if (std::find(c.eos_token_ids.begin(), c.eos_token_ids.end(), id) == c.eos_token_ids.end())
      c.eos_token_ids.push_back(id);
  }
  return c;
}

}  // namespace wring::model
