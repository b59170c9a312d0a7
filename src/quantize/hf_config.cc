#include "quantize/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "formats/json.h"
#include "quantize/gguf_metadata.h"

namespace wring::quantize {
namespace {

using Json = nlohmann::json;

/// Llama 3.1's and 3.2's published parameters, the only ones known to have been written as divisors into GGUF
/// files.
constexpr double kLlama3Factors[] = {8, 32};

Json llama3_parameters(double factor) {
  return {{"rope_type", "llama3"},
          {"factor", factor},
          {"low_freq_factor", 1.0},
          {"high_freq_factor", 4.0},
          {"original_max_position_embeddings", 8192}};
}

/// rope_scaling of GGUF's divisors: the llama3 parameters that give the same ones.
Json scaling_of_divisors(const model::ModelConfig& config, const std::string& file) {
  for (const double factor : kLlama3Factors) {
    model::ModelConfig candidate = config;
    candidate.rope.freq_divisors.clear();
    candidate.rope.rope_type = "llama3";
    candidate.rope.factor = factor;
    candidate.rope.low_freq_factor = 1;
    candidate.rope.high_freq_factor = 4;
    candidate.rope.original_max_position_embeddings = 8192;
    const std::vector<float> divisors = gguf_rope_divisors(candidate);
    const bool same = std::ranges::equal(divisors, config.rope.freq_divisors,
                                         [](float a, float b) { return std::abs(a - b) <= 1e-4F * a; });
    if (same) return llama3_parameters(factor);
  }
  throw Error(ErrorCode::kNotSupported, "these rotary divisors have no rope_type in config.json",
              fmt::format("{}, tensor rope_freqs.weight", file), "convert to gguf instead");
}

Json config_of_gguf(const model::Model& model) {
  const model::ModelConfig& c = model.config();
  if (c.model_type != "llama" || c.rope.rope_type == "yarn") {
    throw Error(ErrorCode::kNotSupported,
                fmt::format("a config.json of {} is not written from GGUF yet", c.model_type),
                model.gguf()->file(), "convert to gguf instead");
  }
  Json out = {{"architectures", {"LlamaForCausalLM"}},
              {"model_type", c.model_type},
              {"vocab_size", c.vocab_size},
              {"hidden_size", c.hidden_size},
              {"intermediate_size", c.intermediate_size},
              {"num_hidden_layers", c.num_hidden_layers},
              {"num_attention_heads", c.num_attention_heads},
              {"num_key_value_heads", c.num_key_value_heads},
              {"head_dim", c.head_dim},
              {"hidden_act", c.hidden_act},
              {"max_position_embeddings", c.max_position_embeddings},
              {"rms_norm_eps", c.rms_norm_eps},
              {"rope_theta", c.rope.rope_theta},
              {"tie_word_embeddings", c.tie_word_embeddings},
              {"attention_bias", c.attention_bias},
              {"mlp_bias", c.mlp_bias}};
  if (!c.rope.freq_divisors.empty()) {
    out["rope_scaling"] = scaling_of_divisors(c, model.gguf()->file());
  } else if (c.rope.rope_type == "linear") {
    out["rope_scaling"] = {{"rope_type", "linear"}, {"factor", c.rope.factor}};
  }
  if (model.gguf()->has("tokenizer.ggml.bos_token_id")) {
    out["bos_token_id"] = model.gguf()->integer("tokenizer.ggml.bos_token_id", 0, c.vocab_size - 1);
  }
  if (c.eos_token_ids.size() == 1) out["eos_token_id"] = c.eos_token_ids[0];
  if (c.eos_token_ids.size() > 1) out["eos_token_id"] = c.eos_token_ids;
  return out;
}

/// Of a vision-language checkpoint its text model's, which is what is written.
Json config_of_folder(const model::Model& model) {
  Json whole = formats::read_json_file(model.path() / "config.json");
  if (!model.config().nested_text) return whole;
  Json text = whole["text_config"];
  if (text.contains("architectures") || !whole.contains("architectures")) return text;
  for (const Json& name : whole["architectures"]) {
    std::string architecture = name.is_string() ? name.get<std::string>() : "";
    const std::size_t at = architecture.find("ForConditionalGeneration");
    if (at != std::string::npos)
      text["architectures"] = {architecture.replace(at, std::string::npos, "ForCausalLM")};
  }
  return text;
}

}  // namespace

std::string_view torch_dtype(formats::QuantType type) {
  switch (type) {
    case formats::QuantType::kF32:
      return "float32";
    case formats::QuantType::kF16:
      return "float16";
    case formats::QuantType::kBF16:
      return "bfloat16";
    default:
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("{} cannot be written in Hugging Face layout", formats::name_of(type)), {},
                  "types: bf16, f16, f32; convert to gguf for the others");
  }
}

Json hf_config(const model::Model& model, formats::QuantType type) {
  Json config = model.gguf() != nullptr ? config_of_gguf(model) : config_of_folder(model);
  config.erase("dtype");  // the newer name of torch_dtype
  for (const char* key : {"quantization_config", "compression_config"})
    config.erase(key);  // what is written is plain
  config["torch_dtype"] = torch_dtype(type);
  return config;
}

}  // namespace wring::quantize
