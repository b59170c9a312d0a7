#include "model/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/hash.h"
#include "model/names.h"

namespace wring::model {
namespace {

namespace fs = std::filesystem;
using formats::QuantType;
using formats::TensorInfo;

std::string shape_text(std::span<const std::uint64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// Buffers that old checkpoints carry along and that follow from the configuration.
bool is_derived_buffer(std::string_view name) {
  return name.ends_with(".rotary_emb.inv_freq");
}

bool is_rope_vector(std::string_view name) {
  return name == "rope_freqs.weight" || name == "rope_factors_long.weight" ||
         name == "rope_factors_short.weight";
}

bool is_readable_weight(QuantType type) {
  const bool integers = (type >= QuantType::kI8 && type <= QuantType::kI64) || type >= QuantType::kU8;
  return !integers && type != QuantType::kQ8_1 && type != QuantType::kQ8_K;  // the last two hold activations
}

}  // namespace

struct Model::State {
  fs::path path;
  ModelConfig config;
  ModelSpec spec;
  std::optional<formats::GgufReader> gguf;
  std::optional<formats::SafetensorsReader> safetensors;
  std::vector<Weight> weights;
  std::unordered_map<std::string_view, std::size_t> by_name;  // into weights; keys are the weights' own names
  std::unordered_set<const TensorInfo*> used;
  std::vector<std::string> warnings;

  const std::vector<TensorInfo>& tensors() const { return gguf ? gguf->tensors() : safetensors->tensors(); }

  void load_weights();
  const TensorInfo& require(const std::string& name) const;
  void add_vector(const std::string& name, std::int64_t n);
  void add_matrix(const std::string& name, std::int64_t rows, std::int64_t columns, int rotary_head_dim = 0,
                  std::int64_t stacked = 0);
  void add_linear(const LinearSpec& linear);
  /// An expert's map out of a tensor that holds all experts'; false: there is no such tensor.
  bool add_from_stack(const LinearSpec& linear);
  /// Rows of a tensor that holds several maps.
  void add_part(const LinearSpec& linear);
  const TensorInfo* find(const std::string& name) const;  // by Hugging Face's name
  void check(const TensorInfo& tensor, const std::vector<std::uint64_t>& shape) const;
  /// Of a checkpoint's tensors those of a head that predicts further tokens, which plain decoding does not
  /// use.
  bool is_left_out(const std::string& name) const;
  void account_for_all();
};

const TensorInfo* Model::State::find(const std::string& name) const {
  if (!gguf) {
    const TensorInfo* tensor = safetensors->find(name);
    if (tensor != nullptr || !config.nested_text || !name.starts_with("model.")) return tensor;
    return safetensors->find("model.language_model." + name.substr(6));
  }
  const std::optional<std::string> stored = gguf_name(spec.model_type, name);
  return stored ? gguf->find(*stored) : nullptr;
}

void Model::State::check(const TensorInfo& tensor, const std::vector<std::uint64_t>& expected) const {
  const std::string where = fmt::format("{}, tensor {}", tensor.file, tensor.name);
  if (!is_readable_weight(tensor.type)) {
    throw Error(
        ErrorCode::kBadInput,
        fmt::format("dtype {} is not a float type that a weight can have", formats::name_of(tensor.type)),
        where);
  }
  if (tensor.shape != expected) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("shape {} found, {} expected from the configuration", shape_text(tensor.shape),
                            shape_text(expected)),
                where);
  }
  if (expected.size() == 1 && !formats::is_plain_float(tensor.type)) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("type {} found, a vector is F32, F16 or BF16", formats::name_of(tensor.type)),
                where);
  }
}

const TensorInfo& Model::State::require(const std::string& name) const {
  const TensorInfo* tensor = find(name);
  if (tensor == nullptr) {
    throw Error(
        ErrorCode::kBadInput,
        fmt::format("tensor {} is missing", gguf ? gguf_name(spec.model_type, name).value_or(name) : name),
        path.string(), "the file is incomplete, or its configuration is another model's");
  }
  return *tensor;
}

void Model::State::add_vector(const std::string& name, std::int64_t n) {
  const TensorInfo& tensor = require(name);
  Weight weight{name, &tensor, tensor.data, 1, n, true};
  check(tensor, weight.shape());
  used.insert(&tensor);
  weights.push_back(std::move(weight));
}

void Model::State::add_matrix(const std::string& name, std::int64_t rows, std::int64_t columns,
                              int rotary_head_dim, std::int64_t stacked) {
  const TensorInfo& tensor = require(name);
  Weight weight{name, &tensor, tensor.data, rows, columns, false, gguf ? rotary_head_dim : 0};
  std::vector<std::uint64_t> shape = weight.shape();
  if (stacked > 0) {
    shape[0] /= static_cast<std::uint64_t>(stacked);
    shape.insert(shape.begin(), static_cast<std::uint64_t>(stacked));
  }
  check(tensor, shape);
  used.insert(&tensor);
  weights.push_back(std::move(weight));
}

bool Model::State::add_from_stack(const LinearSpec& linear) {
  // "….experts.3.gate_proj" lies in "….experts.gate_proj" (GGUF), or below the other half of
  // "….experts.gate_up_proj" (Hugging Face's fused form).
  const std::string number = fmt::format(".experts.{}.", linear.expert);
  const std::size_t at = linear.name.find(number);
  const std::string before = linear.name.substr(0, at) + ".experts.",
                    part = linear.name.substr(at + number.size());
  std::string name = before + part + ".weight";
  std::int64_t stacked_rows = linear.rows, first_row = 0;
  const TensorInfo* tensor = find(name);
  if (tensor == nullptr && !gguf) {
    const bool fused = part == "gate_proj" || part == "up_proj";
    name = before + (fused ? "gate_up_proj" : part);
    tensor = find(name);
    if (fused) stacked_rows *= 2;
    if (part == "up_proj") first_row = linear.rows;
  }
  if (tensor == nullptr) return false;
  check(*tensor, {static_cast<std::uint64_t>(config.num_experts), static_cast<std::uint64_t>(stacked_rows),
                  static_cast<std::uint64_t>(linear.columns)});
  used.insert(tensor);
  const std::size_t row_bytes =
      tensor->data.size() / static_cast<std::size_t>(config.num_experts * stacked_rows);
  const auto begin = static_cast<std::size_t>(linear.expert * stacked_rows + first_row) * row_bytes;
  weights.push_back({linear.name + ".weight", tensor,
                     tensor->data.subspan(begin, static_cast<std::size_t>(linear.rows) * row_bytes),
                     linear.rows, linear.columns});
  return true;
}

void Model::State::add_part(const LinearSpec& linear) {
  const std::size_t last = weights.size();
  add_matrix(linear.stored.name + ".weight", linear.stored.total, linear.columns);  // checked whole, then cut
  Weight& weight = weights[last];
  const std::size_t row_bytes = weight.row_bytes();
  weight.name = linear.name + ".weight";
  weight.data = weight.data.subspan(static_cast<std::size_t>(linear.stored.first) * row_bytes,
                                    static_cast<std::size_t>(linear.rows) * row_bytes);
  weight.rows = linear.rows;
}

void Model::State::add_linear(const LinearSpec& linear) {
  if (linear.expert >= 0 && add_from_stack(linear)) return;
  if (!linear.stored.name.empty()) return add_part(linear);
  add_matrix(linear.name + ".weight", linear.rows, linear.columns, linear.rotary_head_dim, linear.stacked);
  if (linear.bias) add_vector(linear.name + ".bias", linear.rows);
}

void Model::State::load_weights() {
  add_matrix(spec.embedding + ".weight", spec.vocab_size, spec.hidden_size);
  for (const LayerSpec& layer : spec.layers) {
    for_each_part(
        layer, [&](const NormSpec& n) { add_vector(n.name + ".weight", n.size); },
        [&](const LinearSpec& l, Site) { add_linear(l); });
    if (layer.delta_net) {
      for (const std::string& name : {layer.delta_net->a_log, layer.delta_net->dt_bias})
        add_vector(name, layer.delta_net->value_heads);
    }
    if (layer.moe && !layer.moe->selection_bias.empty())
      add_vector(layer.moe->selection_bias, config.num_experts);
  }
  add_vector(spec.final_norm.name + ".weight", spec.final_norm.size);
  if (spec.head.name != spec.embedding) add_linear(spec.head);
  for (std::size_t i = 0; i < weights.size(); ++i) by_name.emplace(weights[i].name, i);
}

bool Model::State::is_left_out(const std::string& name) const {
  if (config.nested_text && name.starts_with("model.visual.")) return true;
  if (config.model_type == "exaone_moe" || config.model_type.starts_with("qwen3_"))
    return name.starts_with("mtp.");
  // DeepSeek's lies behind the last layer.
  for (std::int64_t i = 0; i < config.num_nextn_predict_layers; ++i) {
    if (name.starts_with(fmt::format("model.layers.{}.", config.num_hidden_layers + i))) return true;
  }
  return false;
}

void Model::State::account_for_all() {
  std::size_t left_out = 0;
  for (const TensorInfo& tensor : tensors()) {
    if (used.contains(&tensor) || is_derived_buffer(tensor.name)) continue;
    if (gguf && is_rope_vector(tensor.name)) continue;  // read with the configuration
    if (!gguf && is_left_out(tensor.name)) {
      ++left_out;
      continue;
    }
    if (tensor.name == "lm_head.weight" && config.tie_word_embeddings) {
      // A copy of the tied embedding, as some exporters write it. Anything else there would be another model.
      const TensorInfo& embedding = *weights.front().tensor;
      if (tensor.type == embedding.type && std::ranges::equal(tensor.data, embedding.data)) continue;
      throw Error(ErrorCode::kBadInput,
                  "lm_head.weight differs from the embedding although tie_word_embeddings is true",
                  fmt::format("{}, tensor {}", tensor.file, tensor.name));
    }
    throw Error(ErrorCode::kBadInput,
                fmt::format("tensor {} is not part of a {} model of {} layers", tensor.name,
                            config.model_type, config.num_hidden_layers),
                tensor.file, "the configuration may be another model's");
  }
  if (left_out > 0) {
    warnings.push_back(fmt::format(
        "{} tensors beside the text model (vision, further tokens' prediction) are left out", left_out));
  }
}

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

Model Model::open(const fs::path& path) {
  auto state = std::make_unique<State>();
  state->path = path;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    state->config = read_hf_config(path);
    state->safetensors = formats::SafetensorsReader::open(path);
    state->warnings = state->safetensors->warnings();
  } else {
    state->gguf = formats::GgufReader::open(path);
    state->config = read_gguf_config(*state->gguf);
  }
  state->spec = make_spec(state->config);
  state->load_weights();
  state->account_for_all();
  for (const std::int32_t id : state->config.eos_token_ids) {
    if (id < state->config.vocab_size) continue;
    throw Error(ErrorCode::kBadInput,
                fmt::format("eos_token_id {} is outside [0, {}]", id, state->config.vocab_size - 1),
                path.string());
  }
  return Model(std::move(state));
}

const fs::path& Model::path() const {
  return state_->path;
}
const ModelConfig& Model::config() const {
  return state_->config;
}
const ModelSpec& Model::spec() const {
  return state_->spec;
}
const std::vector<Weight>& Model::weights() const {
  return state_->weights;
}
const formats::GgufReader* Model::gguf() const {
  return state_->gguf ? &*state_->gguf : nullptr;
}
const std::vector<std::string>& Model::warnings() const {
  return state_->warnings;
}

const Weight& Model::weight(std::string_view name) const {
  const auto found = state_->by_name.find(name);
  if (found == state_->by_name.end())
    throw Error(ErrorCode::kInternal, fmt::format("no weight {} in the spec", name));
  return state_->weights[found->second];
}

std::uint64_t Model::parameters() const {
  std::uint64_t n = 0;
  for (const Weight& w : state_->weights) n += w.elements();
  return n;
}

std::uint64_t Model::payload_bytes() const {
  std::uint64_t n = 0;
  for (const Weight& w : state_->weights) n += w.data.size();
  return n;
}

std::uint64_t Model::file_bytes() const {
  return state_->gguf ? state_->gguf->file_bytes() : state_->safetensors->file_bytes();
}

bool Model::is_quantized() const {
  return std::ranges::any_of(state_->weights,
                             [](const Weight& w) { return !formats::is_plain_float(w.type()); });
}

std::string Model::revision() const {
  const fs::path full = fs::absolute(state_->path).lexically_normal();
  const fs::path folder = full.has_filename() ? full : full.parent_path();
  return folder.parent_path().filename() == "snapshots" ? folder.filename().string() : std::string();
}

std::string Model::content_hash() const {
  Sha256 hash;
  for (const Weight& w : state_->weights) {
    hash.update(fmt::format("{} {} {}x{} {}\n", w.name, formats::name_of(w.type()), w.rows, w.columns,
                            w.paired_head_dim));
    hash.update(w.data);
  }
  hash.update(describe(state_->spec));
  return hash.finish_hex();
}

}  // namespace wring::model
