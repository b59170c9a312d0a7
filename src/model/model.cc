#include "model/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "base/hash.h"
#include "model/tensor_book.h"
#include "model/weight_loader.h"

namespace wring::model {
namespace {

namespace fs = std::filesystem;
void hash_spans(Sha256& hash, const formats::CodedMatrix& m) {
  for (const auto& span : {m.codes.data, m.zeros.data, m.scales.data, m.group_of}) hash.update(span);
  hash.update(fmt::format("rows {} + {} by {} x {} scale {} / {} zero {} {}\n", m.first_row, m.row_stride,
                          m.rows_per_scale, m.columns_per_scale, m.scale_factor, m.scale_divisor, m.zero,
                          m.zeros_less_one));
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
  std::vector<const formats::TensorInfo*> left_out;           // into safetensors
  std::vector<std::string> warnings;
  struct Replaced {
    Weight stored;
    formats::TensorInfo tensor;
    std::vector<float> values;
  };
  std::map<std::size_t, Replaced> replaced;  // by index into weights

  std::size_t index_of(std::string_view name) const {
    const auto found = by_name.find(name);
    if (found == by_name.end())
      throw Error(ErrorCode::kInternal, fmt::format("no weight {} in the spec", name));
    return found->second;
  }
};

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
  TensorBook book(state->config, path, state->gguf ? &*state->gguf : nullptr,
                  state->safetensors ? &*state->safetensors : nullptr);
  state->weights = load_weights(state->spec, state->config, book);
  book.account_for_all();
  state->left_out = book.left_out;
  if (const std::string activations = state->config.quantization.activations(); !activations.empty()) {
    state->warnings.push_back(fmt::format(
        "the checkpoint is meant for {} activations; here they are not rounded as its engine would",
        activations));
  }
  state->warnings.insert(state->warnings.end(), book.warnings.begin(), book.warnings.end());
  for (std::size_t i = 0; i < state->weights.size(); ++i) state->by_name.emplace(state->weights[i].name, i);
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
const std::vector<const formats::TensorInfo*>& Model::left_out() const {
  return state_->left_out;
}
const std::vector<std::string>& Model::warnings() const {
  return state_->warnings;
}

const Weight& Model::weight(std::string_view name) const {
  return state_->weights[state_->index_of(name)];
}

void Model::replace(std::string_view name, std::vector<float> values) {
  const std::size_t index = state_->index_of(name);
  Weight& weight = state_->weights[index];
  if (values.size() != weight.elements())
    throw Error(ErrorCode::kInternal, fmt::format("{} values for {}", values.size(), name));
  const auto [entry, is_new] = state_->replaced.try_emplace(index);
  State::Replaced& r = entry->second;
  if (is_new) r.stored = weight;
  r.values = std::move(values);
  r.tensor = *r.stored.tensor;
  r.tensor.type = formats::QuantType::kF32;
  r.tensor.data = std::as_bytes(std::span(r.values));
  // The name stays where it is: by_name's keys point to it.
  weight.tensor = &r.tensor;
  weight.data = r.tensor.data;
  weight.paired_head_dim = 0;
  weight.coded.reset();
}

void Model::restore(std::string_view name) {
  const auto found = state_->replaced.find(state_->index_of(name));
  if (found == state_->replaced.end()) return;
  Weight& weight = state_->weights[found->first];
  const Weight& stored = found->second.stored;
  weight.tensor = stored.tensor;
  weight.data = stored.data;
  weight.paired_head_dim = stored.paired_head_dim;
  weight.coded = stored.coded;
  state_->replaced.erase(found);
}

std::uint64_t Model::parameters() const {
  std::uint64_t n = 0;
  for (const Weight& w : state_->weights) n += w.elements();
  return n;
}

std::uint64_t Model::payload_bytes() const {
  std::uint64_t n = 0;
  for (const Weight& w : state_->weights) n += w.bytes();
  return n;
}

std::uint64_t Model::file_bytes() const {
  return state_->gguf ? state_->gguf->file_bytes() : state_->safetensors->file_bytes();
}

bool Model::is_quantized() const {
  return std::ranges::any_of(state_->weights, [](const Weight& w) { return w.is_quantized(); });
}

std::string Model::revision() const {
  const fs::path full = fs::absolute(state_->path).lexically_normal();
  const fs::path folder = full.has_filename() ? full : full.parent_path();
  return folder.parent_path().filename() == "snapshots" ? folder.filename().string() : std::string();
}

std::string Model::content_hash() const {
  Sha256 hash;
  for (const Weight& w : state_->weights) {
    hash.update(fmt::format("{} {} {}x{} {}\n", w.name, w.type_name(), w.rows, w.columns, w.paired_head_dim));
    hash.update(w.data);
    if (w.coded) hash_spans(hash, *w.coded);
  }
  hash.update(describe(state_->spec));
  return hash.finish_hex();
}

}  // namespace wring::model
