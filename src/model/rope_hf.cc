// Rotary parameters of config.json, in today's form (rope_parameters, of each type of layer where they
// differ) and in the older one (rope_theta, rope_scaling). Source: modeling_rope_utils.py of transformers.
#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/portable_math.h"
#include "base/utf8.h"
#include "formats/json.h"
#include "model/config_checks.h"
#include "model/config_parts_hf.h"
#include "model/rope.h"

namespace wring::model {
namespace {

using formats::json_int;
using formats::json_int_or;
using formats::json_number;
using formats::json_number_or;
using formats::json_string_or;
using nlohmann::json;

/// YaRN's "mscale": how much attention is sharpened for a context stretched by `factor`.
double sharpening(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * portable_log(factor) + 1.0;
}

void read_llama3(const json& fields, RopeParameters& rope, const std::string& place) {
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

void read_yarn(const json& fields, std::int64_t context, RopeParameters& rope, const std::string& place) {
  rope.original_max_position_embeddings =
      json_int_or(fields, "original_max_position_embeddings", context, 1, kMaxContext, place);
  if (rope.rope_theta <= 1) {
    throw Error(ErrorCode::kBadInput, fmt::format("rope_theta {} must be above 1", rope.rope_theta), place);
  }
  rope.beta_fast = json_number_or(fields, "beta_fast", 32, 1e-3, 1e6, place);
  rope.beta_slow = json_number_or(fields, "beta_slow", 1, 1e-3, 1e6, place);
  rope.truncate = formats::json_bool_or(fields, "truncate", true, place);
  const double mscale = json_number_or(fields, "mscale", 0, 0, 1e3, place);
  const double all_dims = json_number_or(fields, "mscale_all_dim", 0, 0, 1e3, place);
  rope.mscale_all_dim = all_dims;
  const double factor = mscale > 0 && all_dims > 0
                            ? sharpening(rope.factor, mscale) / sharpening(rope.factor, all_dims)
                            : sharpening(rope.factor, 1);
  rope.attention_factor = json_number_or(fields, "attention_factor", factor, 1e-3, 1e3, place);
}

/// Most model types rotate whole heads.
double read_partial_rotary(const json& fields, double fallback, const ModelConfig& c,
                           const std::string& place) {
  const double part = json_number_or(fields, "partial_rotary_factor", fallback, 1e-3, 1, place);
  if (part == 1 || c.model_type == "phi3" || c.model_type.starts_with("qwen3_")) return part;
  throw Error(ErrorCode::kNotSupported, fmt::format("partial_rotary_factor {} is not supported", part), place,
              "supported: 1");
}

/// What multi-axis positions share the rotated pairs among; text has one position for all.
std::vector<std::int64_t> read_sections(const json& fields, const std::string& place) {
  const char* key = "mrope_section";
  if (!has_value(fields, key)) return {};
  const json& list = fields.at(key);
  if (!list.is_array() || list.size() > 4) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} is {}, a list of at most 4 numbers is expected", key, formats::shown(list)),
                place);
  }
  std::vector<std::int64_t> sections;
  for (const json& n : list) sections.push_back(json_int(json{{key, n}}, key, 0, kMaxHeadDim, place));
  return sections;
}

std::vector<float> read_factors(const json& fields, const char* key, std::int64_t pairs,
                                const std::string& place) {
  const json& list = fields.contains(key) ? fields.at(key) : json();
  if (!list.is_array() || static_cast<std::int64_t>(list.size()) != pairs) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} is {}, a list of {} numbers is expected", key, formats::shown(list), pairs),
                place);
  }
  std::vector<float> factors;
  for (const json& f : list) {
    factors.push_back(static_cast<float>(json_number(json{{key, f}}, key, 1e-6, 1e9, place)));
  }
  return factors;
}

void read_longrope(const json& fields, const json& config, const ModelConfig& c, RopeParameters& rope,
                   const std::string& place) {
  const std::int64_t pairs = rotated_values(rope, c.head_dim) / 2;
  rope.short_factor = read_factors(fields, "short_factor", pairs, place);
  rope.long_factor = read_factors(fields, "long_factor", pairs, place);
  const char* key = "original_max_position_embeddings";
  rope.original_max_position_embeddings = has_value(config, key)
                                              ? json_int(config, key, 2, kMaxContext, place)
                                              : json_int(fields, key, 2, kMaxContext, place);
  const auto original = static_cast<double>(rope.original_max_position_embeddings);
  rope.factor = has_value(config, key) ? static_cast<double>(c.max_position_embeddings) / original
                                       : json_number_or(fields, "factor", 1, 1e-3, 1e6, place);
  const double sharpened =
      rope.factor > 1 ? std::sqrt(1 + portable_log(rope.factor) / portable_log(original)) : 1.0;
  rope.attention_factor = json_number_or(fields, "attention_factor", sharpened, 1e-3, 1e3, place);
}

/// `fields`: rope_parameters or rope_scaling; `rope`: what the configuration itself says.
RopeParameters read_rope(const json& fields, const json& config, RopeParameters rope, const ModelConfig& c,
                         const std::string& place) {
  if (!fields.is_object()) throw Error(ErrorCode::kBadInput, "an object is expected", place);
  if (c.model_type != "llama" && !has_value(config, "rope_theta")) require_value(fields, "rope_theta", place);
  rope.rope_theta = json_number_or(fields, "rope_theta", rope.rope_theta, 1e-3, 1e12, place);
  rope.partial_rotary_factor = read_partial_rotary(fields, rope.partial_rotary_factor, c, place);
  rope.mrope_section = read_sections(fields, place);
  // "type" is what configurations before 2024 call it.
  rope.rope_type =
      json_string_or(fields, "rope_type", json_string_or(fields, "type", "default", place), place);
  if (rope.rope_type == "default") return rope;
  // Phi 3's first configurations have other names for it.
  const bool renamed = c.model_type == "phi3" && (rope.rope_type == "su" || rope.rope_type == "yarn");
  if (rope.rope_type == "longrope" || renamed) {
    rope.rope_type = "longrope";
    read_longrope(fields, config, c, rope, place);
    return rope;
  }
  if (rope.rope_type != "linear" && rope.rope_type != "llama3" && rope.rope_type != "yarn") {
    throw Error(ErrorCode::kNotSupported,
                fmt::format("rope_type {} is not supported", printable(rope.rope_type)), place,
                "supported: default, linear, llama3, yarn, longrope");
  }
  rope.factor = json_number(fields, "factor", 1e-3, 1e6, place);
  if (rope.rope_type == "llama3") read_llama3(fields, rope, place);
  if (rope.rope_type == "yarn") read_yarn(fields, c.max_position_embeddings, rope, place);
  return rope;
}

}  // namespace

void read_ropes(const json& config, ModelConfig& c, const std::string& where) {
  RopeParameters base;
  const bool elsewhere = c.model_type == "llama" || has_value(config, "rope_parameters");
  if (!elsewhere) require_value(config, "rope_theta", where);
  base.rope_theta = json_number_or(config, "rope_theta", 10000, 1e-3, 1e12, where);
  base.partial_rotary_factor = read_partial_rotary(config, 1, c, where);
  const char* key = has_value(config, "rope_parameters") ? "rope_parameters"
                    : has_value(config, "rope_scaling")  ? "rope_scaling"
                                                         : nullptr;
  const std::string place = fmt::format("{}, {}", where, key == nullptr ? "" : key);
  const bool by_layer_type =
      key != nullptr && config.at(key).is_object() &&
      (config.at(key).contains("full_attention") || config.at(key).contains("sliding_attention"));
  if (by_layer_type) {
    c.rope =
        read_rope(config.at(key).value("full_attention", json()), config, base, c, place + ".full_attention");
    c.local_rope = read_rope(config.at(key).value("sliding_attention", json()), config, base, c,
                             place + ".sliding_attention");
    return;
  }
  c.rope = key == nullptr ? base : read_rope(config.at(key), config, base, c, place);
  if (c.model_type == "gemma3_text") {
    c.local_rope = base;
    c.local_rope->rope_theta = json_number_or(config, "rope_local_base_freq", 10000, 1e-3, 1e12, where);
  }
}

}  // namespace wring::model
