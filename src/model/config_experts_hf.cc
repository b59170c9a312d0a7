// Mixtures of experts in config.json: how many, how they are chosen, and in which layers. Source: the
// configuration classes of transformers.
#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/json.h"
#include "model/config_checks.h"
#include "model/config_parts_hf.h"
#include "model/gguf_rules.h"

namespace wring::model {
namespace {

using nlohmann::json;

// By layer: listed, or by the rules of files before 2026.
std::vector<bool> read_sparse_layers(const json& config, const ModelConfig& c, const std::string& where) {
  std::vector<bool> sparse;
  if (has_value(config, "mlp_layer_types")) {
    for (const json& type : list_of_layers(config, "mlp_layer_types", c.num_hidden_layers, where)) {
      if (type != "sparse" && type != "dense") {
        throw Error(ErrorCode::kNotSupported,
                    fmt::format("the MLP type {} is not supported", formats::shown(type)),
                    where + ", mlp_layer_types", "supported: dense, sparse");
      }
      sparse.push_back(type == "sparse");
    }
    return sparse;
  }
  const std::int64_t dense = formats::json_int_or(config, "first_k_dense_replace", 0, 0, kMaxLayers, where);
  const std::int64_t step = formats::json_int_or(config, "decoder_sparse_step", 1, 1, kMaxLayers, where);
  const std::int64_t frequency = formats::json_int_or(config, "moe_layer_freq", 1, 1, kMaxLayers, where);
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i)
    sparse.push_back(i >= dense && i % frequency == 0 && (i + 1) % step == 0);
  if (!has_value(config, "mlp_only_layers")) return sparse;
  const json& list = config.at("mlp_only_layers");
  if (!list.is_array()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("mlp_only_layers is {}, a list of layers is expected", formats::shown(list)),
                where);
  }
  for (const json& layer : list) {
    const std::int64_t i = formats::json_int(json{{"mlp_only_layers", layer}}, "mlp_only_layers", 0,
                                             c.num_hidden_layers - 1, where);
    sparse[static_cast<std::size_t>(i)] = false;
  }
  return sparse;
}

void read_gpt_oss_experts(const json& config, ModelConfig& c, const std::string& where) {
  c.num_experts = formats::json_int(config, "num_local_experts", 1, kMaxExperts, where);
  const char* chosen = has_value(config, "num_experts_per_tok") ? "num_experts_per_tok" : "experts_per_token";
  c.num_experts_per_tok = formats::json_int(config, chosen, 1, c.num_experts, where);
  c.moe_intermediate_size = c.intermediate_size;
  c.swiglu_alpha = formats::json_number_or(config, "swiglu_alpha", kSwigluAlpha, 1e-6, 1e6, where);
  c.swiglu_limit = formats::json_number_or(config, "swiglu_limit", kSwigluLimit, 1e-6, 1e6, where);
  check_experts(c, where);
}

/// "greedy" passes over the groups. Whether normalized weights are scaled too, its versions disagree.
void read_deepseek_v2_method(const json& config, ModelConfig& c, const std::string& where) {
  require_value(config, "topk_method", where);
  const std::string method = formats::json_string_or(config, "topk_method", "", where);
  if (method == "greedy") {
    c.n_group = c.topk_group = 1;
  } else if (method != "group_limited_greedy") {
    throw Error(ErrorCode::kNotSupported, fmt::format("topk_method {} is not supported", printable(method)),
                where, "supported for deepseek_v2: greedy, group_limited_greedy");
  }
  if (!c.norm_topk_prob) return;
  throw Error(ErrorCode::kNotSupported, "norm_topk_prob true is not supported for deepseek_v2", where,
              "supported: false");
}

}  // namespace

void read_experts(const json& config, ModelConfig& c, const std::string& where) {
  if (c.model_type == "gpt_oss") return read_gpt_oss_experts(config, c, where);
  const bool deepseek = c.model_type.starts_with("deepseek");
  if (c.model_type != "mixtral" && c.model_type.find("_moe") == std::string::npos &&
      c.model_type != "qwen3_next" && !deepseek)
    return;
  const char* count = deepseek                                 ? "n_routed_experts"
                      : has_value(config, "num_local_experts") ? "num_local_experts"
                                                               : "num_experts";
  c.num_experts = formats::json_int(config, count, 1, kMaxExperts, where);
  c.num_experts_per_tok = formats::json_int(config, "num_experts_per_tok", 1, c.num_experts, where);
  const bool sigmoid = c.model_type == "deepseek_v3" || c.model_type == "exaone_moe";
  const char* shared = deepseek ? "n_shared_experts" : "num_shared_experts";
  if (c.model_type == "mixtral") {
    c.moe_intermediate_size = c.intermediate_size;
  } else {
    c.moe_intermediate_size = formats::json_int(config, "moe_intermediate_size", 1, kMaxSize, where);
    if (!c.model_type.starts_with("qwen3_5")) require_value(config, "norm_topk_prob", where);  // always
  }
  if (c.model_type.starts_with("qwen3_5") || c.model_type == "qwen3_next") {
    c.shared_expert_intermediate_size =
        formats::json_int(config, "shared_expert_intermediate_size", 1, kMaxSize, where);
  }
  if (sigmoid || deepseek) {
    for (const char* key : {shared, "routed_scaling_factor"}) require_value(config, key, where);
    if (sigmoid) {
      for (const char* key : {"n_group", "topk_group"}) require_value(config, key, where);
    }
    if (!has_value(config, "mlp_layer_types")) require_value(config, "first_k_dense_replace", where);
  }
  c.num_shared_experts = formats::json_int_or(config, shared, 0, 0, kMaxExperts, where);
  c.norm_topk_prob = formats::json_bool_or(config, "norm_topk_prob", true, where);
  c.routed_scaling_factor = formats::json_number_or(config, "routed_scaling_factor", 1, 1e-6, 1e6, where);
  c.n_group = formats::json_int_or(config, "n_group", 1, 1, c.num_experts, where);
  c.topk_group = formats::json_int_or(config, "topk_group", c.n_group, 1, c.n_group, where);
  const std::string expected = sigmoid ? "sigmoid" : "softmax";
  if (c.model_type == "deepseek_v2") read_deepseek_v2_method(config, c, where);
  const std::string method = formats::json_string_or(config, "topk_method", "noaux_tc", where);
  if (sigmoid && method != "noaux_tc") {
    throw Error(ErrorCode::kNotSupported, fmt::format("topk_method {} is not supported", printable(method)),
                where, "supported: noaux_tc");
  }
  const std::string scores = formats::json_string_or(config, "scoring_func", expected, where);
  if (scores != expected) {
    throw Error(ErrorCode::kNotSupported, fmt::format("scoring_func {} is not supported", printable(scores)),
                where, fmt::format("supported for {}: {}", c.model_type, expected));
  }
  check_experts(c, where);
  c.sparse_layers = read_sparse_layers(config, c, where);
}

}  // namespace wring::model
