#include "model/weight_loader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "model/coded_linear.h"

namespace wring::model {
namespace {

using formats::QuantType;
using formats::TensorInfo;
using Shape = std::vector<std::uint64_t>;

std::uint64_t unsigned_of(std::int64_t n) {
  return static_cast<std::uint64_t>(n);
}

void require_readable(const TensorInfo& tensor) {
  const QuantType type = tensor.type;
  const bool integers = (type >= QuantType::kI8 && type <= QuantType::kI64) || type >= QuantType::kU8;
  const bool activations = type == QuantType::kQ8_1 || type == QuantType::kQ8_K;
  if (!integers && !activations) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("dtype {} is not a float type that a weight can have", formats::name_of(type)),
              place_of(tensor));
}

class Loader {
 public:
  Loader(const ModelSpec& spec, const ModelConfig& config, TensorBook& book)
      : spec_(&spec), config_(&config), book_(&book) {}

  std::vector<Weight> load() {
    const ModelSpec& spec = *spec_;
    add_matrix({spec.embedding, spec.vocab_size, spec.hidden_size});
    if (!spec.positions.empty()) add_matrix({spec.positions, spec.max_positions, spec.hidden_size});
    for (const LayerSpec& layer : spec.layers) {
      for_each_part(
          layer, [&](const NormSpec& n) { add_norm(n); }, [&](const LinearSpec& l, Site) { add_linear(l); });
      if (!layer.attention.sinks.empty()) add_vector(layer.attention.sinks, layer.attention.num_heads);
      if (layer.delta_net) {
        for (const std::string& name : {layer.delta_net->a_log, layer.delta_net->dt_bias})
          add_vector(name, layer.delta_net->value_heads);
      }
      if (layer.moe && !layer.moe->selection_bias.empty())
        add_vector(layer.moe->selection_bias, config_->num_experts);
    }
    add_norm(spec.final_norm);
    if (spec.head.name != spec.embedding) add_linear(spec.head);
    return std::move(weights_);
  }

 private:
  void add_norm(const NormSpec& norm) {
    add_vector(norm.name + ".weight", norm.size);
    if (norm.layer_norm) add_vector(norm.name + ".bias", norm.size);
  }

  void add_vector(const std::string& name, std::int64_t n) {
    const TensorInfo& tensor = book_->take(name, Shape{unsigned_of(n)});
    require_plain_float(tensor);
    weights_.push_back({name, &tensor, tensor.data, 1, n, true});
  }

  /// `n` values of the vector `stored`, one after the other.
  void add_part_of_vector(const std::string& name, std::int64_t n, const StoredRows& stored) {
    const TensorInfo& tensor = book_->take(stored.name + ".bias", Shape{unsigned_of(stored.total)});
    require_plain_float(tensor);
    const std::size_t size = formats::info_of(tensor.type).block_bytes;
    weights_.push_back({name, &tensor,
                        tensor.data.subspan(static_cast<std::size_t>(stored.first) * size,
                                            static_cast<std::size_t>(n) * size),
                        1, n, true});
  }

  void add_linear(const LinearSpec& linear) {
    if (linear.expert >= 0 && add_from_stack(linear)) return;
    const std::string& tensor = linear.stored.name.empty() ? linear.name : linear.stored.name;
    const std::int64_t rows = linear.stored.name.empty() ? linear.rows : linear.stored.total;
    if (auto coded = find_coded_linear(*book_, config_->quantization, tensor, rows, linear.columns)) {
      if (!linear.stored.name.empty())
        cut_rows(*coded, linear.stored.first, linear.stored.stride, linear.rows);
      coded->name = linear.name + ".weight";
      weights_.push_back(std::move(*coded));
    } else if (linear.transposed && !book_->is_gguf()) {
      add_transposed(linear, tensor, rows);
    } else {
      add_matrix(linear);
    }
    if (!linear.bias) return;
    const std::string bias = linear.name + ".bias";
    if (linear.stored.name.empty()) {
      add_vector(bias, linear.rows);
    } else {
      add_part_of_vector(bias, linear.rows, linear.stored);
    }
  }

  void add_matrix(const LinearSpec& linear) {
    const StoredRows& stored = linear.stored;
    const bool part = !stored.name.empty();
    const std::int64_t rows = part ? stored.total : linear.rows;
    Shape shape = {unsigned_of(rows), unsigned_of(linear.columns)};
    if (linear.stacked > 0) {
      shape[0] /= unsigned_of(linear.stacked);
      shape.insert(shape.begin(), unsigned_of(linear.stacked));
    }
    const TensorInfo& tensor = book_->require((part ? stored.name : linear.name) + ".weight");
    require_readable(tensor);
    book_->take(tensor, shape);
    std::span<const std::byte> data = tensor.data;
    if (part) {
      const std::size_t row_bytes = data.size() / static_cast<std::size_t>(rows);
      data = data.subspan(static_cast<std::size_t>(stored.first) * row_bytes,
                          static_cast<std::size_t>(linear.rows) * row_bytes);
    }
    weights_.push_back({linear.name + ".weight", &tensor, data, linear.rows, linear.columns, false,
                        book_->is_gguf() ? linear.rotary_head_dim : 0});
  }

  void add_transposed(const LinearSpec& linear, const std::string& name, std::int64_t rows) {
    const TensorInfo& tensor =
        book_->take(name + ".weight", Shape{unsigned_of(linear.columns), unsigned_of(rows)});
    require_plain_float(tensor);
    Weight weight = {linear.name + ".weight", &tensor, {}, rows, linear.columns};
    weight.coded = plain_layout(tensor.type, tensor.data, 1, rows);
    weight.coded_bytes = tensor.data.size();
    if (!linear.stored.name.empty()) cut_rows(weight, linear.stored.first, linear.stored.stride, linear.rows);
    weights_.push_back(std::move(weight));
  }

  /// An expert's map out of a tensor that holds all experts'; false: there is no such tensor.
  bool add_from_stack(const LinearSpec& linear) {
    const ExpertName name = expert_name(linear);
    // GGUF has "….experts.gate_proj"; Hugging Face's fused form has it as the first half of the rows of
    // "….experts.gate_up_proj". gpt_oss' own forms are in LinearSpec::stored.
    if (!linear.stored.name.empty() && !book_->is_gguf()) {
      add_gpt_oss_expert(linear);
      return true;
    }
    const bool fused = name.part == "gate_proj" || name.part == "up_proj";
    const TensorInfo* tensor = book_->find(name.before + name.part + ".weight");
    std::int64_t stacked_rows = linear.rows, first_row = 0;
    if (tensor == nullptr && !book_->is_gguf()) {
      tensor = book_->find(name.before + (fused ? "gate_up_proj" : name.part));
      if (fused) stacked_rows *= 2;
      if (name.part == "up_proj") first_row = linear.rows;
    }
    if (tensor == nullptr) return false;
    book_->take(*tensor, Shape{unsigned_of(config_->num_experts), unsigned_of(stacked_rows),
                               unsigned_of(linear.columns)});
    require_readable(*tensor);
    const std::span<const std::byte> data = part_of(*tensor, linear.expert, config_->num_experts);
    const std::size_t row_bytes = data.size() / static_cast<std::size_t>(stacked_rows);
    weights_.push_back({linear.name + ".weight", tensor,
                        data.subspan(static_cast<std::size_t>(first_row) * row_bytes,
                                     static_cast<std::size_t>(linear.rows) * row_bytes),
                        linear.rows, linear.columns});
    if (linear.bias) add_bias_from_stack(linear, name.before + name.part + ".bias", linear.rows, 0, 1);
    return true;
  }

  /// Gate and up interleaved in one tensor, floats (experts, columns, rows) or blocks of MXFP4.
  void add_gpt_oss_expert(const LinearSpec& linear) {
    const StoredRows& stored = linear.stored;
    const std::int64_t experts = config_->num_experts;
    Weight weight;
    if (const TensorInfo* blocks = book_->find(stored.name + "_blocks")) {
      weight = mxfp4_expert(*book_, *blocks, stored.name + "_scales", linear.expert, experts, stored.total,
                            linear.columns);
    } else {
      const TensorInfo& tensor = book_->take(
          stored.name, Shape{unsigned_of(experts), unsigned_of(linear.columns), unsigned_of(stored.total)});
      require_plain_float(tensor);
      const std::span<const std::byte> data = part_of(tensor, linear.expert, experts);
      weight = {{}, &tensor, {}, stored.total, linear.columns};
      weight.coded = plain_layout(tensor.type, data, 1, stored.total);
      weight.coded_bytes = data.size();
    }
    cut_rows(weight, stored.first, stored.stride, linear.rows);
    weight.name = linear.name + ".weight";
    weights_.push_back(std::move(weight));
    if (linear.bias)
      add_bias_from_stack(linear, stored.name + "_bias", stored.total, stored.first, stored.stride);
  }

  /// Values first, first + stride, … of the expert's row of (experts, total).
  void add_bias_from_stack(const LinearSpec& linear, const std::string& name, std::int64_t total,
                           std::int64_t first, std::int64_t stride) {
    const TensorInfo& tensor =
        book_->take(name, Shape{unsigned_of(config_->num_experts), unsigned_of(total)});
    require_plain_float(tensor);
    const std::span<const std::byte> row = part_of(tensor, linear.expert, config_->num_experts);
    Weight weight = {linear.name + ".bias", &tensor, row, 1, linear.rows, true};
    if (stride > 1) {
      const std::size_t size = row.size() / static_cast<std::size_t>(total);
      weight.coded =
          plain_layout(tensor.type, row.subspan(static_cast<std::size_t>(first) * size), 0, stride);
      weight.coded_bytes = static_cast<std::uint64_t>(linear.rows) * size;
      weight.data = {};
    }
    weights_.push_back(std::move(weight));
  }

  const ModelSpec* spec_;
  const ModelConfig* config_;
  TensorBook* book_;
  std::vector<Weight> weights_;
};

}  // namespace

std::vector<Weight> load_weights(const ModelSpec& spec, const ModelConfig& config, TensorBook& book) {
  return Loader(spec, config, book).load();
}

}  // namespace wring::model
