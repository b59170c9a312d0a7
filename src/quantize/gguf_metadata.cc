#include "quantize/gguf_metadata.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"
#include "model/arch.h"
#include "model/gguf_rules.h"
#include "model/rope.h"
#include "quantize/gguf_architecture.h"
#include "quantize/gguf_tokenizer.h"
#include "quantize/plan.h"

namespace wring::quantize {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kQuantizationVersion = 2;  // of ggml's block layouts

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

void add_general(formats::GgufWriter& writer, const model::Model& model, const QuantPlan& plan) {
  writer.add_string("general.architecture",
                    model::find_architecture(model.config().model_type).gguf_architecture);
  if (model.gguf() != nullptr) {
    for (const auto& [key, entry] : model.gguf()->metadata()) {
      if (key.starts_with("general.") && !describes_weights(key)) writer.add_entry(key, entry);
    }
  } else {
    writer.add_string("general.name", replace_invalid_utf8(display_name(model)));
  }
  writer.add_u32("general.file_type", gguf_file_type(plan));
  if (!formats::is_plain_float(plan.main_type()))
    writer.add_u32("general.quantization_version", kQuantizationVersion);
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
  if (model::find_architecture(config.model_type).gguf_architecture.empty()) {
    throw Error(ErrorCode::kNotSupported, fmt::format("{} models are not written as GGUF", config.model_type),
                {}, "convert to hf instead");
  }
  if (model::same_computation(model::make_spec(config), model::make_spec(model::as_gguf_says(config))))
    return;
  throw Error(
      ErrorCode::kNotSupported,
      fmt::format("GGUF cannot say what this {} model computes: llama.cpp has other layers, scales, routing "
                  "or rotary positions in its code",
                  config.model_type),
      {}, "convert to hf instead");
}

void add_gguf_metadata(formats::GgufWriter& writer, const model::Model& model, const QuantPlan& plan,
                       const formats::Imatrix* imatrix, std::vector<std::string>& warnings) {
  add_general(writer, model, plan);
  add_gguf_architecture(writer, model.config());
  if (imatrix != nullptr) add_imatrix_source(writer, *imatrix);
  if (model.config().model_type == "mistral" && model.config().sliding_window > 0) {
    warnings.push_back(fmt::format(
        "GGUF has no sliding window for mistral: a text of more than {} tokens is computed otherwise",
        model.config().sliding_window));
  }
  if (model.config().model_type == "gpt_oss" && !model.config().rope.truncate) {
    warnings.emplace_back(
        "llama.cpp rounds the bounds of yarn's ramp, which gpt_oss does not: it rotates some pairs a little "
        "otherwise");
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

std::vector<RopeVector> gguf_rope_vectors(const model::ModelConfig& config) {
  std::vector<RopeVector> vectors = {{"rope_freqs.weight", gguf_rope_divisors(config)},
                                     {"rope_factors_long.weight", config.rope.long_factor},
                                     {"rope_factors_short.weight", config.rope.short_factor}};
  std::erase_if(vectors, [](const RopeVector& v) { return v.divisors.empty(); });
  return vectors;
}

}  // namespace wring::quantize
