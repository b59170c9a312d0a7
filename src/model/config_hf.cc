// Hugging Face's config.json: sizes and what a model type adds to them. Layers and rotary positions have
// files of their own (config_layers_hf.cc, rope_hf.cc).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/json.h"
#include "model/arch.h"
#include "model/config_checks.h"
#include "model/config_parts_hf.h"

namespace wring::model {
namespace {

using formats::json_bool_or;
using formats::json_int;
using formats::json_int_or;
using formats::json_number_or;
using formats::json_string_or;
using nlohmann::json;

// One id, a list of ids, or nothing.
void add_token_ids(const json& object, const char* key, std::int64_t vocab_size, std::string_view where,
                   std::vector<std::int32_t>& ids) {
  if (!has_value(object, key)) return;
  const json list = object.at(key).is_array() ? object.at(key) : json::array({object.at(key)});
  for (const json& id : list) {
    const json one = {{key, id}};
    const auto value = static_cast<std::int32_t>(json_int(one, key, 0, vocab_size - 1, where));
    if (std::find(ids.begin(), ids.end(), value) == ids.end()) ids.push_back(value);
  }
}

// What a class of transformers takes where config.json leaves a field out.
struct Defaults {
  bool tie_word_embeddings = false;
  std::int64_t head_dim = 0;  // 0: hidden_size / num_attention_heads
  double rms_norm_eps = 1e-6;
  double rope_theta = 10000.0;
};

Defaults defaults_of(std::string_view model_type) {
  if (model_type == "qwen3" || model_type == "qwen3_moe") return {.head_dim = 128};
  if (model_type == "gemma2") return {.tie_word_embeddings = true, .head_dim = 256};
  if (model_type == "gemma3_text") return {.tie_word_embeddings = true, .head_dim = 256, .rope_theta = 1e6};
  if (model_type == "smollm3") return {.tie_word_embeddings = true, .rope_theta = 2e6};
  if (model_type == "olmo2" || model_type == "mixtral" || model_type.starts_with("exaone"))
    return {.rms_norm_eps = 1e-5};
  return {};
}

// Gemma's configurations have "hidden_activation" and, beside it, a hidden_act of old that is not used.
std::string read_activation(const json& config, const std::string& where) {
  const char* key = has_value(config, "hidden_activation") ? "hidden_activation" : "hidden_act";
  const std::string name = json_string_or(config, key, "silu", where);
  if (name == "silu" || name == "gelu_pytorch_tanh") return name;
  throw Error(ErrorCode::kNotSupported, fmt::format("{} {} is not supported", key, printable(name)), where,
              "supported: silu, gelu_pytorch_tanh");
}

void read_latent(const json& config, ModelConfig& c, const std::string& where) {
  if (!c.model_type.starts_with("deepseek")) return;
  if (has_value(config, "q_lora_rank")) c.q_lora_rank = json_int(config, "q_lora_rank", 1, kMaxSize, where);
  c.kv_lora_rank = json_int(config, "kv_lora_rank", 1, kMaxSize, where);
  c.qk_nope_head_dim = json_int(config, "qk_nope_head_dim", 1, kMaxHeadDim, where);
  c.qk_rope_head_dim = json_int(config, "qk_rope_head_dim", 2, kMaxHeadDim, where);
  c.v_head_dim = json_int(config, "v_head_dim", 1, kMaxHeadDim, where);
  c.head_dim = c.qk_rope_head_dim;  // what rotary positions are made for
  if (!json_bool_or(config, "rope_interleave", true, where)) {
    throw Error(ErrorCode::kNotSupported, "rope_interleave false is not supported", where, "supported: true");
  }
}

void read_gemma(const json& config, ModelConfig& c, const std::string& where) {
  if (!c.model_type.starts_with("gemma")) return;
  if (has_value(config, "use_bidirectional_attention") && config["use_bidirectional_attention"] != false) {
    throw Error(ErrorCode::kNotSupported, "use_bidirectional_attention is not supported", where,
                "a causal text model is expected");
  }
  const bool caps = c.model_type == "gemma2";
  c.query_pre_attn_scalar = json_number_or(config, "query_pre_attn_scalar", 256, 1e-3, 1e9, where);
  const auto cap = [&](const char* key, double fallback) {
    const bool off = config.contains(key) && config.at(key).is_null();  // null switches it off
    return off ? 0.0 : json_number_or(config, key, fallback, 1e-3, 1e6, where);
  };
  c.attn_logit_softcapping = cap("attn_logit_softcapping", caps ? 50 : 0);
  c.final_logit_softcapping = cap("final_logit_softcapping", caps ? 30 : 0);
}

}  // namespace

ModelConfig read_hf_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  const std::string where = path.string();
  const json config = formats::read_json_file(path, std::size_t{16} << 20);
  if (!config.is_object()) throw Error(ErrorCode::kBadInput, "an object is expected", where);

  ModelConfig c;
  c.model_type = json_string_or(config, "model_type", "", where);
  with_context(where, [&] { return &find_architecture(c.model_type); });
  const Defaults defaults = defaults_of(c.model_type);
  if (has_value(config, "quantization_config")) {
    throw Error(ErrorCode::kNotSupported, "checkpoints with a quantization_config cannot be read yet",
                where + ", quantization_config", "use the unquantized checkpoint, or a GGUF file");
  }
  c.hidden_act = read_activation(config, where);

  c.vocab_size = json_int(config, "vocab_size", 1, kMaxSize, where);
  c.hidden_size = json_int(config, "hidden_size", 1, kMaxSize, where);
  c.intermediate_size = json_int(config, "intermediate_size", 1, kMaxSize, where);
  c.num_hidden_layers = json_int(config, "num_hidden_layers", 1, kMaxLayers, where);
  c.num_attention_heads = json_int(config, "num_attention_heads", 1, kMaxSize, where);
  c.num_key_value_heads =
      json_int_or(config, "num_key_value_heads", c.num_attention_heads, 1, c.num_attention_heads, where);
  const HeadNames names = {"hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim"};
  const bool sized = has_value(config, "head_dim") || defaults.head_dim > 0;
  const std::int64_t head_dim = default_head_dim(c, sized, names, where);
  c.head_dim = json_int_or(config, "head_dim", defaults.head_dim > 0 ? defaults.head_dim : head_dim, 1,
                           kMaxHeadDim, where);
  read_latent(config, c, where);
  check_heads(c, names, where);
  c.max_position_embeddings = json_int_or(config, "max_position_embeddings", 2048, 1, kMaxContext, where);
  c.rms_norm_eps = json_number_or(config, "rms_norm_eps", defaults.rms_norm_eps, 0, 1, where);
  c.tie_word_embeddings = json_bool_or(config, "tie_word_embeddings", defaults.tie_word_embeddings, where);
  c.attention_bias = json_bool_or(config, "attention_bias", false, where);
  c.mlp_bias = json_bool_or(config, "mlp_bias", false, where);
  read_gemma(config, c, where);
  read_experts(config, c, where);
  read_layers(config, c, where);
  read_ropes(config, defaults.rope_theta, c, where);

  add_token_ids(config, "eos_token_id", c.vocab_size, where, c.eos_token_ids);
  const std::filesystem::path generation = folder / "generation_config.json";
  if (std::filesystem::exists(generation)) {
    add_token_ids(formats::read_json_file(generation, std::size_t{1} << 20), "eos_token_id", c.vocab_size,
                  generation.string(), c.eos_token_ids);
  }
  return c;
}

}  // namespace wring::model
