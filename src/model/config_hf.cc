// Hugging Face's config.json, in today's form (rope_parameters) and in the older one (rope_theta,
// rope_scaling).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "formats/json.h"
#include "model/config_checks.h"

namespace wring::model {
namespace {

using formats::json_bool_or;
using formats::json_int;
using formats::json_int_or;
using formats::json_number;
using formats::json_number_or;
using formats::json_string_or;
using nlohmann::json;

bool has_value(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && !found->is_null();
}

[[noreturn]] void not_supported(std::string_view field, const json& value, std::string_view where,
                                std::string_view known) {
  throw Error(ErrorCode::kNotSupported,
              fmt::format("{} {} is not supported", field, value.dump().substr(0, 80)), std::string(where),
              fmt::format("supported: {}", known));
}

RopeParameters read_rope(const json& config, std::string_view where) {
  RopeParameters rope;
  const char* key = has_value(config, "rope_parameters") ? "rope_parameters"
                    : has_value(config, "rope_scaling")  ? "rope_scaling"
                                                         : nullptr;
  rope.rope_theta = json_number_or(config, "rope_theta", 10000.0, 1e-3, 1e12, where);
  if (key == nullptr) return rope;
  const json& fields = config.at(key);
  const std::string place = fmt::format("{}, {}", where, key);
  if (!fields.is_object()) throw Error(ErrorCode::kBadInput, "an object is expected", place);
  rope.rope_theta = json_number_or(fields, "rope_theta", rope.rope_theta, 1e-3, 1e12, place);
  // "type" is what configurations before 2024 call it.
  rope.rope_type =
      json_string_or(fields, "rope_type", json_string_or(fields, "type", "default", place), place);
  if (json_number_or(fields, "partial_rotary_factor", 1.0, 0, 1, place) != 1.0) {
    not_supported("partial_rotary_factor", fields.at("partial_rotary_factor"), place, "1");
  }
  if (rope.rope_type == "default") return rope;
  if (rope.rope_type != "linear" && rope.rope_type != "llama3") {
    not_supported("rope_type", rope.rope_type, place, "default, linear, llama3");
  }
  rope.factor = json_number(fields, "factor", 1e-3, 1e6, place);
  if (rope.rope_type == "llama3") {
    rope.low_freq_factor = json_number(fields, "low_freq_factor", 1e-6, 1e6, place);
    rope.high_freq_factor = json_number(fields, "high_freq_factor", 1e-6, 1e6, place);
    rope.original_max_position_embeddings =
        json_int(fields, "original_max_position_embeddings", 1, kMaxContext, place);
    if (rope.high_freq_factor <= rope.low_freq_factor) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("high_freq_factor {} must be above low_freq_factor {}", rope.high_freq_factor,
                              rope.low_freq_factor),
                  place);
    }
  }
  return rope;
}

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

}  // namespace

ModelConfig read_hf_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  const std::string where = path.string();
  const json config = formats::read_json_file(path, std::size_t{16} << 20);
  if (!config.is_object()) throw Error(ErrorCode::kBadInput, "an object is expected", where);

  ModelConfig c;
  c.model_type = json_string_or(config, "model_type", "", where);
  if (c.model_type != "llama") not_supported("model_type", c.model_type, where, "llama");
  if (has_value(config, "quantization_config")) {
    throw Error(ErrorCode::kNotSupported, "checkpoints with a quantization_config cannot be read yet",
                where + ", quantization_config", "use the unquantized checkpoint, or a GGUF file");
  }
  c.hidden_act = json_string_or(config, "hidden_act", "silu", where);
  if (c.hidden_act != "silu") not_supported("hidden_act", c.hidden_act, where, "silu");

  c.vocab_size = json_int(config, "vocab_size", 1, kMaxSize, where);
  c.hidden_size = json_int(config, "hidden_size", 1, kMaxSize, where);
  c.intermediate_size = json_int(config, "intermediate_size", 1, kMaxSize, where);
  c.num_hidden_layers = json_int(config, "num_hidden_layers", 1, kMaxLayers, where);
  c.num_attention_heads = json_int(config, "num_attention_heads", 1, kMaxSize, where);
  c.num_key_value_heads =
      json_int_or(config, "num_key_value_heads", c.num_attention_heads, 1, c.num_attention_heads, where);
  const HeadNames names = {"hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim"};
  const std::int64_t head_dim = default_head_dim(c, has_value(config, "head_dim"), names, where);
  c.head_dim = json_int_or(config, "head_dim", head_dim, 1, kMaxHeadDim, where);
  check_heads(c, names, where);
  c.max_position_embeddings = json_int_or(config, "max_position_embeddings", 2048, 1, kMaxContext, where);
  c.rms_norm_eps = json_number_or(config, "rms_norm_eps", 1e-6, 0, 1, where);
  c.tie_word_embeddings = json_bool_or(config, "tie_word_embeddings", false, where);
  c.attention_bias = json_bool_or(config, "attention_bias", false, where);
  c.mlp_bias = json_bool_or(config, "mlp_bias", false, where);
  c.rope = read_rope(config, where);

  add_token_ids(config, "eos_token_id", c.vocab_size, where, c.eos_token_ids);
  const std::filesystem::path generation = folder / "generation_config.json";
  if (std::filesystem::exists(generation)) {
    add_token_ids(formats::read_json_file(generation, std::size_t{1} << 20), "eos_token_id", c.vocab_size,
                  generation.string(), c.eos_token_ids);
  }
  return c;
}

}  // namespace wring::model
