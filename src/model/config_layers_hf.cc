// Which layers see all positions, which a window of them, and which have no positions at all. Source: the
// configuration classes of transformers, whose rules are used where a file does not list its layers.
#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/json.h"
#include "model/config_checks.h"
#include "model/config_parts_hf.h"

namespace wring::model {
namespace {

using nlohmann::json;

LayerType layer_type(const json& name, const std::string& where) {
  if (name == "full_attention") return LayerType::kFullAttention;
  if (name == "sliding_attention") return LayerType::kSlidingAttention;
  throw Error(ErrorCode::kNotSupported,
              fmt::format("the layer type {} is not supported", formats::shown(name)),
              where + ", layer_types", "supported: full_attention, sliding_attention");
}

const json& list_of_layers(const json& config, const char* key, std::int64_t layers,
                           const std::string& where) {
  const json& list = config.at(key);
  if (!list.is_array() || static_cast<std::int64_t>(list.size()) != layers) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} is {}, a list of num_hidden_layers = {} entries is expected", key,
                            formats::shown(list), layers),
                where);
  }
  return list;
}

/// Every how many layers one is not sliding: 4, or the length of "LLLG".
std::int64_t pattern_length(const json& config, std::int64_t fallback, const std::string& where) {
  for (const char* key : {"sliding_window_pattern", "_sliding_window_pattern"}) {
    if (!has_value(config, key)) continue;
    if (!config.at(key).is_string()) return formats::json_int(config, key, 1, kMaxLayers, where);
    const auto& letters = config.at(key).get_ref<const std::string&>();
    if (!letters.empty() && letters.find_first_not_of('L') + 1 == letters.size() && letters.back() == 'G') {
      return static_cast<std::int64_t>(letters.size());
    }
    throw Error(ErrorCode::kNotSupported, fmt::format("{} \"{}\" is not supported", key, printable(letters)),
                where, "supported: a number, or letters L with a G at the end");
  }
  return fallback;
}

/// Without layer_types. Precondition: there is a window.
bool slides(const json& config, const ModelConfig& c, std::int64_t layer, const std::string& where) {
  const std::string& type = c.model_type;
  if (type == "mistral" || type == "mixtral" || type == "phi3") return true;
  if (type == "gemma2") return layer % 2 == 0;
  if (type == "gemma3_text") return (layer + 1) % pattern_length(config, 6, where) != 0;
  if (type.starts_with("exaone")) return (layer + 1) % pattern_length(config, 4, where) != 0;
  if (type.starts_with("qwen") || type == "smollm3") {
    return layer >= formats::json_int_or(config, "max_window_layers", 28, 0, kMaxLayers, where);
  }
  return false;
}

bool has_windows(const json& config, const ModelConfig& c, const std::string& where) {
  const std::string& type = c.model_type;
  if (type.starts_with("qwen") || type == "smollm3") {
    return formats::json_bool_or(config, "use_sliding_window", false, where);
  }
  return type == "mistral" || type == "mixtral" || type == "phi3" || type.starts_with("exaone") ||
         type.starts_with("gemma");
}

bool is_rotary(const json& config, const ModelConfig& c, std::int64_t layer, const std::string& where) {
  if (c.model_type.starts_with("exaone") && c.sliding_window > 0) {
    return c.layer_types[static_cast<std::size_t>(layer)] == LayerType::kSlidingAttention;
  }
  if (c.model_type != "smollm3") return true;
  if (has_value(config, "no_rope_layers")) {  // 1: rotary, in spite of its name
    const json& list = list_of_layers(config, "no_rope_layers", c.num_hidden_layers, where);
    return list[static_cast<std::size_t>(layer)] != 0;
  }
  return (layer + 1) % formats::json_int_or(config, "no_rope_layer_interval", 4, 1, kMaxLayers, where) != 0;
}

bool is_sparse(const json& config, const ModelConfig& c, std::int64_t layer, const std::string& where) {
  if (has_value(config, "mlp_layer_types")) {
    const json& type = list_of_layers(config, "mlp_layer_types", c.num_hidden_layers,
                                      where)[static_cast<std::size_t>(layer)];
    if (type == "sparse" || type == "dense") return type == "sparse";
    throw Error(ErrorCode::kNotSupported,
                fmt::format("the MLP type {} is not supported", formats::shown(type)),
                where + ", mlp_layer_types", "supported: dense, sparse");
  }
  if (layer < formats::json_int_or(config, "first_k_dense_replace", 0, 0, kMaxLayers, where)) return false;
  if (has_value(config, "mlp_only_layers")) {
    const json& list = config.at("mlp_only_layers");
    if (!list.is_array()) throw Error(ErrorCode::kBadInput, "mlp_only_layers is not a list", where);
    for (const json& dense : list) {
      if (dense == layer) return false;
    }
  }
  if (layer % formats::json_int_or(config, "moe_layer_freq", 1, 1, kMaxLayers, where) != 0) return false;
  return (layer + 1) % formats::json_int_or(config, "decoder_sparse_step", 1, 1, kMaxLayers, where) == 0;
}

}  // namespace

void read_experts(const json& config, ModelConfig& c, const std::string& where) {
  const bool deepseek = c.model_type.starts_with("deepseek");
  if (c.model_type != "mixtral" && !c.model_type.ends_with("_moe") && !deepseek) return;
  const char* count = deepseek                                 ? "n_routed_experts"
                      : has_value(config, "num_local_experts") ? "num_local_experts"
                                                               : "num_experts";
  c.num_experts = formats::json_int(config, count, 1, kMaxExperts, where);
  c.num_experts_per_tok = formats::json_int(config, "num_experts_per_tok", 1, c.num_experts, where);
  c.moe_intermediate_size =
      formats::json_int_or(config, "moe_intermediate_size", c.intermediate_size, 1, kMaxSize, where);
  c.num_shared_experts = formats::json_int_or(config, deepseek ? "n_shared_experts" : "num_shared_experts", 0,
                                              0, kMaxExperts, where);
  c.norm_topk_prob = formats::json_bool_or(config, "norm_topk_prob", c.model_type != "qwen3_moe", where);
  c.routed_scaling_factor = formats::json_number_or(config, "routed_scaling_factor", 1, 1e-6, 1e6, where);
  c.n_group = formats::json_int_or(config, "n_group", 1, 1, c.num_experts, where);
  c.topk_group = formats::json_int_or(config, "topk_group", c.n_group, 1, c.n_group, where);
  const std::string scores = deepseek || c.model_type == "exaone_moe" ? "sigmoid" : "softmax";
  const std::string method = formats::json_string_or(config, "topk_method", "noaux_tc", where);
  if (scores == "sigmoid" && method != "noaux_tc") {
    throw Error(ErrorCode::kNotSupported, fmt::format("topk_method {} is not supported", printable(method)),
                where, "supported: noaux_tc");
  }
  if (formats::json_string_or(config, "scoring_func", scores, where) != scores) {
    throw Error(ErrorCode::kNotSupported, fmt::format("scoring_func is not {}", scores), where);
  }
  check_experts(c, where);
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i)
    c.sparse_layers.push_back(is_sparse(config, c, i, where));
}

void read_layers(const json& config, ModelConfig& c, const std::string& where) {
  constexpr std::int64_t kDefaultWindow = 4096;  // of all classes that have one
  const bool off = config.contains("sliding_window") && config.at("sliding_window").is_null();
  if (has_windows(config, c, where) && !off) {
    c.sliding_window = formats::json_int_or(config, "sliding_window", kDefaultWindow, 1, kMaxContext, where);
  }
  const bool listed = has_value(config, "layer_types");
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    LayerType type = LayerType::kFullAttention;
    if (listed) {
      type = layer_type(
          list_of_layers(config, "layer_types", c.num_hidden_layers, where)[static_cast<std::size_t>(i)],
          where);
      if (type == LayerType::kSlidingAttention && c.sliding_window == 0) {
        throw Error(ErrorCode::kBadInput, "layer_types has sliding layers, but no sliding_window is set",
                    where);
      }
    } else if (c.sliding_window > 0 && slides(config, c, i, where)) {
      type = LayerType::kSlidingAttention;
    }
    c.layer_types.push_back(type);
    c.rotary_layers.push_back(is_rotary(config, c, i, where));
  }
}

}  // namespace wring::model
