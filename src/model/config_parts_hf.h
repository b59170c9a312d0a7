// The parts that read_hf_config is made of.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "model/config.h"

namespace wring::model {

/// Whether a field is there and not null.
inline bool has_value(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && !found->is_null();
}

/// Errors: kBadInput naming a field that is not there (null is).
void require_field(const nlohmann::json& object, const char* key, const std::string& where);
/// The same of one that is not there or null.
void require_value(const nlohmann::json& object, const char* key, const std::string& where);

/// A list with an entry for each layer. Errors: kBadInput for anything else, naming the number of layers.
const nlohmann::json& list_of_layers(const nlohmann::json& json, const char* key, std::int64_t layers,
                                     const std::string& where);

/// Fills the sizes of a GPT-2. Errors: kBadInput and kNotSupported naming a field and its value.
void read_gpt2(const nlohmann::json& json, ModelConfig& config, const std::string& where);

/// Fills layer_types, rotary_layers and sliding_window for config.num_hidden_layers layers: from the lists of
/// today's files, or by the rules of the model type where a file has none. Errors: kBadInput for a list of
/// another length; kNotSupported naming a type of layer.
void read_layers(const nlohmann::json& json, ModelConfig& config, const std::string& where);

/// Fills the fields of mixtures of experts where the model type has them. Errors: kBadInput naming a field
/// that is missing or out of range; kNotSupported naming a way to choose experts that is not implemented.
void read_experts(const nlohmann::json& json, ModelConfig& config, const std::string& where);

/// Fills rope and local_rope: from rope_parameters, or from rope_theta and rope_scaling of files before 2026.
/// Needs max_position_embeddings and head_dim. Errors: kBadInput and kNotSupported naming field and value.
void read_ropes(const nlohmann::json& json, ModelConfig& config, const std::string& where);

}  // namespace wring::model
