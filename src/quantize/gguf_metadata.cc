#include "quantize/gguf_metadata.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"
#include "model/arch.h"
#include "model/gguf_rules.h"
#include "model/rope.h"
#include "quantize/gguf_tokenizer.h"
#include "quantize/plan.h"

namespace wring::quantize {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kQuantizationVersion = 2;  // of ggml's block layouts

std::uint32_t u32(std::int64_t n) {
  return static_cast<std::uint32_t>(n);
}

/// The folder's name; of a hub-cache snapshot ("models--org--name/snapshots/<revision>") the model's.
std::string display_name(const model::Model& model) {
  fs::path folder = fs::absolute(model.path()).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  if (model.revision().empty()) return folder.filename().string();
  const std::string name = folder.parent_path().parent_path().filename().string();
  const std::size_t dashes = name.rfind("--");
  return dashes == std::string::npos ? name : name.substr(dashes + 2);
}

bool describes_weights(std::string_view key) {
  return key == "general.architecture" || key == "general.file_type" || key == "general.quantization_version";
}

void add_general(formats::GgufWriter& writer, const model::Model& model, formats::QuantType type) {
  writer.add_string("general.architecture",
                    model::find_architecture(model.config().model_type).gguf_architecture);
  if (model.gguf() != nullptr) {
    for (const auto& [key, entry] : model.gguf()->metadata()) {
      if (key.starts_with("general.") && !describes_weights(key)) writer.add_entry(key, entry);
    }
  } else {
    writer.add_string("general.name", replace_invalid_utf8(display_name(model)));
  }
  writer.add_u32("general.file_type", gguf_file_type(type));
  if (!formats::is_plain_float(type)) writer.add_u32("general.quantization_version", kQuantizationVersion);
}

void add_windows_and_caps(formats::GgufWriter& writer, const model::ModelConfig& c, const std::string& p) {
  if (c.sliding_window > 0) {
    writer.add_u32(p + "attention.sliding_window", u32(c.sliding_window));  // the pattern is llama.cpp's own
  }
  if (c.attn_logit_softcapping > 0)
    writer.add_f32(p + "attn_logit_softcapping", static_cast<float>(c.attn_logit_softcapping));
  if (c.final_logit_softcapping > 0)
    writer.add_f32(p + "final_logit_softcapping", static_cast<float>(c.final_logit_softcapping));
  if (c.local_rope) writer.add_f32(p + "rope.freq_base_swa", static_cast<float>(c.local_rope->rope_theta));
}

void add_architecture(formats::GgufWriter& writer, const model::ModelConfig& c) {
  const std::string p = std::string(model::find_architecture(c.model_type).gguf_architecture) + ".";
  writer.add_u32(p + "block_count", u32(c.num_hidden_layers));
  writer.add_u32(p + "context_length", u32(c.max_position_embeddings));
  writer.add_u32(p + "embedding_length", u32(c.hidden_size));
  writer.add_u32(p + "feed_forward_length", u32(c.intermediate_size));
  writer.add_u32(p + "attention.head_count", u32(c.num_attention_heads));
  writer.add_u32(p + "attention.head_count_kv", u32(c.num_key_value_heads));
  writer.add_u32(p + "attention.key_length", u32(c.head_dim));
  writer.add_u32(p + "attention.value_length", u32(c.head_dim));
  writer.add_f32(p + "attention.layer_norm_rms_epsilon", static_cast<float>(c.rms_norm_eps));
  writer.add_u32(p + "rope.dimension_count", u32(model::rotated_values(c.rope, c.head_dim)));
  writer.add_f32(p + "rope.freq_base", static_cast<float>(c.rope.rope_theta));
  if (c.rope.rope_type == "linear") {
    writer.add_string(p + "rope.scaling.type", "linear");
    writer.add_f32(p + "rope.scaling.factor", static_cast<float>(c.rope.factor));
  }
  if (c.rope.rope_type == "yarn") {
    writer.add_string(p + "rope.scaling.type", "yarn");
    writer.add_f32(p + "rope.scaling.factor", static_cast<float>(c.rope.factor));
    writer.add_u32(p + "rope.scaling.original_context_length", u32(c.rope.original_max_position_embeddings));
    writer.add_f32(p + "rope.scaling.yarn_beta_fast", static_cast<float>(c.rope.beta_fast));
    writer.add_f32(p + "rope.scaling.yarn_beta_slow", static_cast<float>(c.rope.beta_slow));
  }
  writer.add_u32(p + "vocab_size", u32(c.vocab_size));
  if (c.model_type != "mistral") add_windows_and_caps(writer, c, p);
}

void add_imatrix_source(formats::GgufWriter& writer, const formats::Imatrix& imatrix) {
  if (!imatrix.datasets.empty()) {
    writer.add_string("quantize.imatrix.dataset",
                      replace_invalid_utf8(fmt::format("{}", fmt::join(imatrix.datasets, ", "))));
  }
  writer.add_u32("quantize.imatrix.entries_count", static_cast<std::uint32_t>(imatrix.entries.size()));
  writer.add_u32("quantize.imatrix.chunks_count", imatrix.chunk_count);
}

}  // namespace

void refuse_another_computation(const model::ModelConfig& config) {
  if (model::same_computation(model::make_spec(config), model::make_spec(model::as_gguf_says(config))))
    return;
  throw Error(
      ErrorCode::kNotSupported,
      fmt::format("GGUF cannot say what this {} model computes: llama.cpp has other layers, scales or rotary "
                  "positions in its code",
                  config.model_type),
      {}, "convert to hf instead");
}

void add_gguf_metadata(formats::GgufWriter& writer, const model::Model& model, formats::QuantType type,
                       const formats::Imatrix* imatrix, std::vector<std::string>& warnings) {
  add_general(writer, model, type);
  add_architecture(writer, model.config());
  if (imatrix != nullptr) add_imatrix_source(writer, *imatrix);
  if (model.config().model_type == "mistral" && model.config().sliding_window > 0) {
    warnings.push_back(fmt::format(
        "GGUF has no sliding window for mistral: a text of more than {} tokens is computed otherwise",
        model.config().sliding_window));
  }
  if (model.gguf() == nullptr) return add_tokenizer_from_hf(writer, model.path(), model.config(), warnings);
  for (const auto& [key, entry] : model.gguf()->metadata()) {
    if (key.starts_with("tokenizer.")) writer.add_entry(key, entry);
  }
}

std::vector<float> gguf_rope_divisors(const model::ModelConfig& config) {
  if (!config.rope.freq_divisors.empty()) return config.rope.freq_divisors;
  if (config.rope.rope_type != "llama3") return {};
  model::RopeParameters plain = config.rope;
  plain.rope_type = "default";
  std::vector<float> divisors = model::rope_inverse_frequencies(plain, config.head_dim);
  const std::vector<float> scaled = model::rope_inverse_frequencies(config.rope, config.head_dim);
  for (std::size_t i = 0; i < divisors.size(); ++i) divisors[i] /= scaled[i];
  return divisors;
}

}  // namespace wring::quantize
