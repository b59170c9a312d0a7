// Hugging Face's config.json: sizes and what a model type adds to them. Layers and rotary positions have
// files of their own (config_layers_hf.cc, rope_hf.cc).
#include <fmt/format.h>

#include <algorithm>

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

// One id, a list of ids, or nothing. Whether they are in the vocabulary is checked with the embedding
// (model.cc): vocab_size itself may be wrong.
void add_token_ids(const json& object, const char* key, std::string_view where,
                   std::vector<std::int32_t>& ids) {
  if (!has_value(object, key)) return;
  const json list = object.at(key).is_array() ? object.at(key) : json::array({object.at(key)});
  for (const json& id : list) {
    const json one = {{key, id}};
    const auto value = static_cast<std::int32_t>(json_int(one, key, 0, kMaxSize - 1, where));
    if (std::find(ids.begin(), ids.end(), value) == ids.end()) ids.push_back(value);
  }
}

// Classes of transformers whose embeddings are tied unless config.json says otherwise: it leaves the field
// out then.
bool ties_by_default(std::string_view model_type) {
  return model_type.starts_with("gemma") || model_type == "smollm3";
}

// What config.json may not leave out: the defaults of transformers' classes differ, and a wrong one computes
// something else without a word. Llama's first configurations have less.
void require_fields(const json& config, const ModelConfig& c, const std::string& where) {
  if (c.model_type == "llama") return;
  for (const char* key : {"num_key_value_heads", "rms_norm_eps", "max_position_embeddings"})
    require_value(config, key, where);
  if (c.model_type.starts_with("gemma") || c.model_type.starts_with("qwen3"))
    require_value(config, "head_dim", where);
  if (c.model_type == "gpt_oss") {
    for (const char* key : {"head_dim", "attention_bias"}) require_value(config, key, where);
  }
}

// Gemma's configurations have "hidden_activation" and, beside it, a hidden_act of old that is not used.
std::string read_activation(const json& config, const std::string& model_type, const std::string& where) {
  const bool gemma = model_type.starts_with("gemma");
  const char* key = gemma ? "hidden_activation" : "hidden_act";
  const std::string name = json_string_or(config, key, gemma ? "gelu_pytorch_tanh" : "silu", where);
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

void read_delta_net(const json& config, ModelConfig& c, const std::string& where) {
  if (!c.model_type.starts_with("qwen3_5") && c.model_type != "qwen3_next") return;
  c.linear_conv_kernel_dim = json_int(config, "linear_conv_kernel_dim", 1, 64, where);
  c.linear_num_key_heads = json_int(config, "linear_num_key_heads", 1, kMaxSize, where);
  c.linear_num_value_heads = json_int(config, "linear_num_value_heads", 1, kMaxSize, where);
  c.linear_key_head_dim = json_int(config, "linear_key_head_dim", 1, kMaxHeadDim, where);
  c.linear_value_head_dim = json_int(config, "linear_value_head_dim", 1, kMaxHeadDim, where);
  if (c.linear_num_value_heads % c.linear_num_key_heads != 0) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("linear_num_key_heads {} does not divide linear_num_value_heads {}",
                            c.linear_num_key_heads, c.linear_num_value_heads),
                where);
  }
  if (!json_bool_or(config, "attn_output_gate", true, where)) {
    throw Error(ErrorCode::kNotSupported, "attn_output_gate false is not supported", where,
                "supported: true");
  }
}

void read_gemma(const json& config, ModelConfig& c, const std::string& where) {
  if (!c.model_type.starts_with("gemma")) return;
  if (has_value(config, "use_bidirectional_attention") && config["use_bidirectional_attention"] != false) {
    throw Error(ErrorCode::kNotSupported, "use_bidirectional_attention is not supported", where,
                "a causal text model is expected");
  }
  c.query_pre_attn_scalar = formats::json_number(config, "query_pre_attn_scalar", 1e-3, 1e9, where);
  const auto cap = [&](const char* key) {
    if (c.model_type == "gemma2") require_field(config, key, where);
    return json_number_or(config, key, 0, 1e-3, 1e6, where);  // null switches it off
  };
  c.attn_logit_softcapping = cap("attn_logit_softcapping");
  c.final_logit_softcapping = cap("final_logit_softcapping");
}

// All model types but GPT-2.
void read_transformer(const json& config, ModelConfig& c, const std::string& where) {
  require_fields(config, c, where);
  c.hidden_act = read_activation(config, c.model_type, where);

  c.vocab_size = json_int(config, "vocab_size", 1, kMaxSize, where);
  c.hidden_size = json_int(config, "hidden_size", 1, kMaxSize, where);
  // Where all layers have experts there is no dense size.
  const bool all_experts = c.model_type == "qwen3_5_moe_text";
  c.intermediate_size = all_experts ? json_int_or(config, "intermediate_size", 1, 1, kMaxSize, where)
                                    : json_int(config, "intermediate_size", 1, kMaxSize, where);
  c.num_hidden_layers = json_int(config, "num_hidden_layers", 1, kMaxLayers, where);
  c.num_attention_heads = json_int(config, "num_attention_heads", 1, kMaxSize, where);
  c.num_key_value_heads =
      json_int_or(config, "num_key_value_heads", c.num_attention_heads, 1, c.num_attention_heads, where);
  const HeadNames names = {"hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim"};
  const std::int64_t head_dim = default_head_dim(c, has_value(config, "head_dim"), names, where);
  c.head_dim = json_int_or(config, "head_dim", head_dim, 1, kMaxHeadDim, where);
  read_latent(config, c, where);
  check_heads(c, names, where);
  c.max_position_embeddings = json_int_or(config, "max_position_embeddings", 2048, 1, kMaxContext, where);
  c.rms_norm_eps = json_number_or(config, "rms_norm_eps", 1e-6, 0, 1, where);
  c.tie_word_embeddings = json_bool_or(config, "tie_word_embeddings", ties_by_default(c.model_type), where);
  c.attention_bias = json_bool_or(config, "attention_bias", false, where);
  c.mlp_bias = json_bool_or(config, "mlp_bias", false, where);
  read_gemma(config, c, where);
  read_delta_net(config, c, where);
  c.num_nextn_predict_layers = json_int_or(config, "num_nextn_predict_layers", 0, 0, kMaxLayers, where);
  read_experts(config, c, where);
  read_layers(config, c, where);
  read_ropes(config, c, where);
}

}  // namespace

ModelConfig read_hf_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  const std::string where = path.string();
  const json whole = formats::read_json_file(path, std::size_t{16} << 20);
  if (!whole.is_object()) throw Error(ErrorCode::kBadInput, "an object is expected", where);
  // A vision-language checkpoint keeps its text model's configuration apart.
  const bool nested = has_value(whole, "text_config");
  const json& config = nested ? whole.at("text_config") : whole;
  if (!config.is_object()) throw Error(ErrorCode::kBadInput, "text_config is not an object", where);

  ModelConfig c;
  c.model_type = json_string_or(config, "model_type", "", where);
  with_context(where, [&] { return &find_architecture(c.model_type); });
  c.nested_text = nested;
  for (const char* key :
       {"compression_config", "quantization_config"}) {  // the first: compressed-tensors' older name
    for (const json* holder : {&whole, &config}) {
      if (has_value(*holder, key)) c.quantization = read_quantization(holder->at(key), where + ", " + key);
    }
  }
  const std::filesystem::path beside = folder / "hf_quant_config.json";
  std::error_code unreadable;
  if (c.quantization.method.empty() && std::filesystem::exists(beside, unreadable))
    c.quantization = read_hf_quant_config(beside);
  if (c.model_type == "gpt2") {
    read_gpt2(config, c, where);
  } else {
    read_transformer(config, c, where);
  }

  add_token_ids(config, "eos_token_id", where, c.eos_token_ids);
  const std::filesystem::path generation = folder / "generation_config.json";
  if (std::filesystem::exists(generation, unreadable)) {
    add_token_ids(formats::read_json_file(generation, std::size_t{1} << 20), "eos_token_id",
                  generation.string(), c.eos_token_ids);
  }
  return c;
}

}  // namespace wring::model
