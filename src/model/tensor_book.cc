#include "model/tensor_book.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "model/names.h"

namespace wring::model {
namespace {

using formats::TensorInfo;

std::string shape_text(std::span<const std::uint64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

bool is_rope_vector(std::string_view name) {
  return name == "rope_freqs.weight" || name == "rope_factors_long.weight" ||
         name == "rope_factors_short.weight";
}

/// What a quantized checkpoint holds for activations and caches.
bool is_activation_scale(std::string_view name) {
  for (const std::string_view end :
       {".input_scale", ".input_global_scale", ".input_zero_point", ".output_scale", ".activation_scale",
        ".q_scale", ".k_scale", ".v_scale"}) {
    if (name.ends_with(end)) return true;
  }
  return false;
}

/// AutoGPTQ writes a bias of zeros beside maps that have none.
bool is_zero_bias(const TensorInfo& tensor) {
  return tensor.name.ends_with(".bias") &&
         std::ranges::all_of(tensor.data, [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

std::span<const std::byte> part_of(const TensorInfo& tensor, std::int64_t index, std::int64_t count) {
  const std::size_t size = tensor.data.size() / static_cast<std::size_t>(count);
  return tensor.data.subspan(static_cast<std::size_t>(index) * size, size);
}

std::string place_of(const TensorInfo& tensor) {
  return fmt::format("{}, tensor {}", tensor.file, tensor.name);
}

void require_plain_float(const TensorInfo& tensor) {
  if (formats::is_plain_float(tensor.type) && tensor.type != formats::QuantType::kF64) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("type {} found, F32, F16 or BF16 expected", formats::name_of(tensor.type)),
              place_of(tensor));
}

TensorBook::TensorBook(const ModelConfig& config, std::filesystem::path path, const formats::GgufReader* gguf,
                       const formats::SafetensorsReader* safetensors)
    : config_(&config), path_(std::move(path)), gguf_(gguf), safetensors_(safetensors) {}

const std::vector<TensorInfo>& TensorBook::tensors() const {
  return gguf_ != nullptr ? gguf_->tensors() : safetensors_->tensors();
}

std::string TensorBook::stored_name(const std::string& name) const {
  if (gguf_ != nullptr) return gguf_name(config_->model_type, name).value_or(name);
  return config_->nested_text ? nested_name(name) : name;
}

const TensorInfo* TensorBook::find(const std::string& name) const {
  if (gguf_ != nullptr) {
    const std::optional<std::string> stored = gguf_name(config_->model_type, name);
    return stored ? gguf_->find(*stored) : nullptr;
  }
  if (const TensorInfo* tensor = safetensors_->find(stored_name(name)); tensor != nullptr) return tensor;
  if (const TensorInfo* tensor = safetensors_->find(name); tensor != nullptr) return tensor;
  // GPT-2 as OpenAI published it is the bare model, without a head around it.
  constexpr std::string_view kAround = "transformer.";
  return name.starts_with(kAround) ? safetensors_->find(name.substr(kAround.size())) : nullptr;
}

const TensorInfo& TensorBook::require(const std::string& name) const {
  const TensorInfo* tensor = find(name);
  if (tensor != nullptr) return *tensor;
  throw Error(ErrorCode::kBadInput, fmt::format("tensor {} is missing", stored_name(name)), path_.string(),
              "the file is incomplete, or its configuration is another model's");
}

const TensorInfo& TensorBook::take(const std::string& name, std::span<const std::uint64_t> shape) {
  const TensorInfo& tensor = require(name);
  take(tensor, shape);
  return tensor;
}

void TensorBook::take(const TensorInfo& tensor, std::span<const std::uint64_t> shape) {
  if (!std::ranges::equal(tensor.shape, shape)) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("shape {} found, {} expected from the configuration", shape_text(tensor.shape),
                            shape_text(shape)),
                place_of(tensor));
  }
  used_.insert(&tensor);
}

/// Of a checkpoint's tensors those beside the text model, and of a head that predicts further tokens, which
/// plain decoding does not use.
bool TensorBook::is_left_out(std::string_view name) const {
  if (config_->nested_text && name.starts_with("model.visual.")) return true;
  if (config_->model_type == "exaone_moe" || config_->model_type.starts_with("qwen3_"))
    return name.starts_with("mtp.");
  // DeepSeek's lies behind the last layer.
  for (std::int64_t i = 0; i < config_->num_nextn_predict_layers; ++i) {
    if (name.starts_with(fmt::format("model.layers.{}.", config_->num_hidden_layers + i))) return true;
  }
  return false;
}

/// Buffers that checkpoints carry along and that follow from the configuration.
bool TensorBook::is_derived(const TensorInfo& tensor) const {
  if (config_->quantization.method == "gptq" && is_zero_bias(tensor)) return true;
  const std::string_view name = tensor.name;
  if (gguf_ != nullptr) return is_rope_vector(name);  // read with the configuration
  if (config_->model_type == "gpt2") {                // the causal mask, and what it puts in
    return (name.ends_with(".attn.bias") && tensor.shape.size() == 4) || name.ends_with(".attn.masked_bias");
  }
  return name.ends_with(".rotary_emb.inv_freq");
}

void TensorBook::account_for_all() {
  const TensorInfo* embedding = find("model.embed_tokens.weight");
  if (embedding == nullptr) embedding = find("transformer.wte.weight");
  for (const TensorInfo& tensor : tensors()) {
    if (used_.contains(&tensor) || is_derived(tensor)) continue;
    if (gguf_ == nullptr && is_left_out(tensor.name)) {
      left_out.push_back(&tensor);
      continue;
    }
    if (!config_->quantization.method.empty() && is_activation_scale(tensor.name)) continue;
    if (tensor.name == "lm_head.weight" && config_->tie_word_embeddings && embedding != nullptr) {
      // A copy of the tied embedding, as some exporters write it. Anything else there would be another model.
      if (tensor.type == embedding->type && std::ranges::equal(tensor.data, embedding->data)) continue;
      throw Error(ErrorCode::kBadInput,
                  "lm_head.weight differs from the embedding although tie_word_embeddings is true",
                  place_of(tensor));
    }
    throw Error(ErrorCode::kBadInput,
                fmt::format("tensor {} is not part of a {} model of {} layers", tensor.name,
                            config_->model_type, config_->num_hidden_layers),
                tensor.file, "the configuration may be another model's");
  }
  if (!left_out.empty()) {
    warnings.push_back(
        fmt::format("{} tensors beside the text model (vision, further tokens' prediction) are left out",
                    left_out.size()));
  }
}

}  // namespace wring::model
