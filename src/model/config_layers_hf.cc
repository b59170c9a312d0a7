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

bool has_linear_layers(const ModelConfig& c) {
  return c.model_type.starts_with("qwen3_5") || c.model_type == "qwen3_next";
}

LayerType layer_type(const json& name, const ModelConfig& c, const std::string& where) {
  if (name == "full_attention") return LayerType::kFullAttention;
  if (name == "sliding_attention") return LayerType::kSlidingAttention;
  if (name == "linear_attention" && has_linear_layers(c)) return LayerType::kLinearAttention;
  throw Error(ErrorCode::kNotSupported,
              fmt::format("the layer type {} is not supported", formats::shown(name)),
              where + ", layer_types", "supported: full_attention, sliding_attention");
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
  if (type == "gemma2" || type == "gpt_oss") return layer % 2 == 0;
  if (type == "gemma3_text") return (layer + 1) % pattern_length(config, 6, where) != 0;
  if (type.starts_with("exaone")) return (layer + 1) % pattern_length(config, 4, where) != 0;
  if (type.starts_with("qwen") || type == "smollm3") {
    return layer >= formats::json_int_or(config, "max_window_layers", 28, 0, kMaxLayers, where);
  }
  return false;
}

bool has_windows(const json& config, const ModelConfig& c, const std::string& where) {
  const std::string& type = c.model_type;
  if (has_linear_layers(c)) return false;
  if (type.starts_with("qwen") || type == "smollm3") {
    return formats::json_bool_or(config, "use_sliding_window", false, where);
  }
  return type == "mistral" || type == "mixtral" || type == "phi3" || type == "gpt_oss" ||
         type.starts_with("exaone") || type.starts_with("gemma");
}

bool is_rotary(const json& config, const ModelConfig& c, std::int64_t layer, const std::string& where) {
  if (c.model_type.starts_with("exaone") && c.sliding_window > 0) {
    return c.layer_types[static_cast<std::size_t>(layer)] == LayerType::kSlidingAttention;
  }
  if (c.model_type != "smollm3") return true;
  if (has_value(config, "no_rope_layers")) {  // 1: rotary, in spite of its name
    const json& list = list_of_layers(config, "no_rope_layers", c.num_hidden_layers, where);
    return formats::json_int(json{{"no_rope_layers", list[static_cast<std::size_t>(layer)]}},
                             "no_rope_layers", 0, 1, where) == 1;
  }
  return (layer + 1) % formats::json_int_or(config, "no_rope_layer_interval", 4, 1, kMaxLayers, where) != 0;
}

}  // namespace

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

void require_value(const json& config, const char* key, const std::string& where) {
  require_field(config, key, where);
  if (has_value(config, key)) return;
  throw Error(ErrorCode::kBadInput, fmt::format("{} is null", key), where);
}

void require_field(const json& config, const char* key, const std::string& where) {
  if (config.contains(key)) return;
  throw Error(ErrorCode::kBadInput, fmt::format("{} is missing", key), where,
              "the model computes something else without it");
}

void read_layers(const json& config, ModelConfig& c, const std::string& where) {
  if (has_windows(config, c, where)) {
    require_field(config, "sliding_window", where);
    if (has_value(config, "sliding_window"))
      c.sliding_window = formats::json_int(config, "sliding_window", 1, kMaxContext, where);
  }
  const bool listed = has_value(config, "layer_types");
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    LayerType type = LayerType::kFullAttention;
    if (listed) {
      type = layer_type(
          list_of_layers(config, "layer_types", c.num_hidden_layers, where)[static_cast<std::size_t>(i)], c,
          where);
      if (type == LayerType::kSlidingAttention && c.sliding_window == 0) {
        throw Error(ErrorCode::kBadInput, "layer_types has sliding layers, but no sliding_window is set",
                    where);
      }
    } else if (has_linear_layers(c)) {
      const std::int64_t interval =
          formats::json_int_or(config, "full_attention_interval", 4, 1, kMaxLayers, where);
      if ((i + 1) % interval != 0) type = LayerType::kLinearAttention;
    } else if (c.sliding_window > 0 && slides(config, c, i, where)) {
      type = LayerType::kSlidingAttention;
    }
    c.layer_types.push_back(type);
    c.rotary_layers.push_back(is_rotary(config, c, i, where));
  }
}

}  // namespace wring::model
