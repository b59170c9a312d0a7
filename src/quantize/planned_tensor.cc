#include "quantize/planned_tensor.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/error.h"
#include "model/names.h"
#include "model/weights.h"

namespace wring::quantize {
namespace {

using model::LinearSpec;
using model::Site;

std::vector<std::int64_t> identity(std::int64_t n) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < n; ++i) order.push_back(i);
  return order;
}

/// Rotary heads in pairs order, of rows or of a vector's elements.
std::vector<std::int64_t> pairs_order(std::int64_t n, int head_dim) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) order[static_cast<std::size_t>(model::paired_row(i, head_dim))] = i;
  return order;
}

/// GGUF's order of value heads, `size` values each, behind `first` others: head t there is the one that reads
/// key head t mod key_heads.
std::vector<std::int64_t> tiled_order(const model::DeltaNetSpec& d, std::int64_t first, std::int64_t size) {
  std::vector<std::int64_t> order = identity(first);
  const std::int64_t group = d.value_heads / d.key_heads;
  for (std::int64_t t = 0; t < d.value_heads; ++t) {
    const std::int64_t head = (t % d.key_heads) * group + t / d.key_heads;
    for (std::int64_t i = 0; i < size; ++i) order.push_back(first + head * size + i);
  }
  return order;
}

/// Of tensors whose weights' rows take turns: row i is row i / stride of part i mod stride.
std::vector<std::int64_t> turns_order(std::int64_t tensors, const model::StoredRows& stored) {
  std::vector<std::int64_t> order;
  const std::int64_t part = stored.total / stored.stride;
  for (std::int64_t t = 0; t < tensors; ++t) {
    for (std::int64_t i = 0; i < stored.total; ++i)
      order.push_back(t * stored.total + i % stored.stride * part + i / stored.stride);
  }
  return order;
}

/// "….experts.3.gate_proj" without the number.
std::string stack_name(const LinearSpec& linear) {
  const model::ExpertName name = model::expert_name(linear);
  return name.before + name.part;
}

class Planner {
 public:
  explicit Planner(FileForm form) : gguf_(form == FileForm::kGguf) {}

  std::vector<PlannedTensor> take() { return std::move(out_); }

  void add_matrix(const LinearSpec& l, TensorRole role, int layer = -1, Site site = Site::kKept) {
    PlannedTensor& t = add(l.name + ".weight", role, l.rows, l.columns);
    if (l.transposed && !gguf_) transpose(t);
    t.stacked = l.stacked;
    t.layer = layer;
    t.site = site;
    t.expert = l.expert;
    if (gguf_ && l.rotary_head_dim > 0) t.row_order = pairs_order(l.rows, l.rotary_head_dim);
    if (l.bias) add_bias(l);
  }

  void add_norm(const model::NormSpec& norm) {
    add_vector(norm.name + ".weight", norm.size).added = gguf_ ? norm.weight_offset : 0;
    if (norm.layer_norm) add_vector(norm.name + ".bias", norm.size);
  }

  void add_block(const model::LayerSpec& layer, int index) {
    model::for_each_part(
        layer, [&](const model::NormSpec& n) { add_norm(n); },
        [&](const LinearSpec& l, Site site) {
          const model::AttentionSpec& a = layer.attention;
          if (gguf_ && l.expert >= 0) return add_to_stack(l, *layer.moe, index, site);
          if (l.expert >= 0 && !l.stored.name.empty()) return add_to_fused(l, *layer.moe, index, site);
          if (!l.stored.name.empty()) return add_stored(l, index, site);
          if (gguf_ && a.latent && l.name == a.latent->kv_b.name) return add_halves(a, index);
          add_matrix(l, site == Site::kKept ? TensorRole::kKept : TensorRole::kBlockMatrix, index, site);
          if (layer.delta_net) {  // llama.cpp asks for F32 of the other small maps alone
            out_.back().narrow = l.name == layer.delta_net->b.name || l.name == layer.delta_net->a.name;
          }
          if (gguf_ && layer.delta_net && !layer.delta_net->in_gguf_form)
            order_value_heads(out_.back(), *layer.delta_net, l);
        });
    if (!layer.attention.sinks.empty()) add_vector(layer.attention.sinks, layer.attention.num_heads);
    if (layer.delta_net) add_decays(*layer.delta_net);
    if (layer.moe && !layer.moe->selection_bias.empty()) {
      add_vector(layer.moe->selection_bias, static_cast<std::int64_t>(layer.moe->experts.size()))
          .full_precision = true;
    }
  }

 private:
  PlannedTensor& add(std::string name, TensorRole role, std::int64_t rows, std::int64_t columns) {
    PlannedTensor t;
    t.weights = {name};
    t.name = std::move(name);
    t.role = role;
    t.rows = rows;
    t.columns = columns;
    return out_.emplace_back(std::move(t));
  }

  PlannedTensor& add_vector(std::string name, std::int64_t size) {
    return add(std::move(name), TensorRole::kVector, 1, size);
  }

  void add_bias(const LinearSpec& l) {
    PlannedTensor& t = add_vector(l.name + ".bias", l.rows);
    t.rotary_head_dim = l.rotary_head_dim;
    if (gguf_ && l.rotary_head_dim > 0) t.column_order = pairs_order(l.rows, l.rotary_head_dim);
  }

  /// As Conv1D maps are stored: (columns, rows).
  static void transpose(PlannedTensor& t) {
    std::swap(t.rows, t.columns);
    t.transposed_rows = t.columns;
  }

  /// One of the block's tensors, of those that were added last.
  PlannedTensor& last_named(const std::string& name) {
    std::size_t at = out_.size() - 1;
    while (out_[at].name != name) --at;
    return out_[at];
  }

  /// A tensor that maps will be added to.
  PlannedTensor& add_empty(const std::string& name, TensorRole role, std::int64_t rows,
                           std::int64_t columns) {
    PlannedTensor& t = add(name, role, rows, columns);
    t.weights.clear();
    return t;
  }

  /// An expert's matrix below those of the experts before it; the first one makes the stack. A block's three
  /// stacks stand behind each other.
  void add_to_stack(const LinearSpec& l, const model::MoeSpec& moe, int layer, Site site) {
    const std::string name = stack_name(l);
    const auto experts = static_cast<std::int64_t>(moe.experts.size());
    if (l.expert == 0) {
      PlannedTensor& t = add_empty(name + ".weight", TensorRole::kBlockMatrix, experts * l.rows, l.columns);
      t.stacked = experts;
      t.layer = layer;
      t.site = site;
      if (l.bias) add_empty(name + ".bias", TensorRole::kVector, experts, l.rows).vectors = true;
    }
    last_named(name + ".weight").weights.push_back(l.name + ".weight");
    if (l.bias) last_named(name + ".bias").weights.push_back(l.name + ".bias");
  }

  /// gpt_oss' own form: all experts' maps in one tensor (experts, columns, rows), rows of gate and up taking
  /// turns; biases the same.
  void add_to_fused(const LinearSpec& l, const model::MoeSpec& moe, int layer, Site site) {
    const model::StoredRows& stored = l.stored;
    const auto experts = static_cast<std::int64_t>(moe.experts.size());
    if (l.expert == 0 && stored.first == 0) {
      PlannedTensor& t = add_empty(stored.name, TensorRole::kBlockMatrix, experts * l.columns, stored.total);
      t.stacked = experts;
      t.layer = layer;
      t.site = site;
      t.transposed_rows = stored.total;
      if (stored.stride > 1) t.row_order = turns_order(experts, stored);
      PlannedTensor& bias = add_empty(stored.name + "_bias", TensorRole::kVector, experts, stored.total);
      bias.vectors = true;
      bias.side_by_side = static_cast<int>(stored.stride);
      if (stored.stride > 1) bias.column_order = turns_order(1, stored);
    }
    last_named(stored.name).weights.push_back(l.name + ".weight");
    last_named(stored.name + "_bias").weights.push_back(l.name + ".bias");
  }

  /// A tensor that holds several maps, as it was: its maps come in the order of their rows.
  void add_stored(const LinearSpec& l, int layer, Site site) {
    const std::string& name = l.stored.name;
    if (l.stored.first == 0) {
      PlannedTensor& t = add_empty(name + ".weight", TensorRole::kBlockMatrix, l.stored.total, l.columns);
      if (l.transposed && !gguf_) transpose(t);
      t.layer = layer;
      t.site = site;
      if (l.bias) add_empty(name + ".bias", TensorRole::kVector, 1, l.stored.total).side_by_side = 0;
    }
    last_named(name + ".weight").weights.push_back(l.name + ".weight");
    if (!l.bias) return;
    PlannedTensor& bias = last_named(name + ".bias");
    bias.weights.push_back(l.name + ".bias");
    ++bias.side_by_side;
  }

  /// kv_b's rows of a head are [nope_dim of keys | value_dim]; keys are transposed.
  void add_halves(const model::AttentionSpec& a, int layer) {
    const model::LatentSpec& latent = *a.latent;
    const std::int64_t heads = a.num_heads, rank = a.values(), nope = latent.nope_dim,
                       values = latent.value_dim;
    const std::string whole = latent.kv_b.name + ".weight";
    const std::string stem = latent.kv_b.name.substr(0, latent.kv_b.name.rfind('.'));
    PlannedTensor& k = add(stem + ".k_b_proj.weight", TensorRole::kBlockMatrix, heads * rank, nope);
    k.weights = {whole};
    k.stacked = heads;
    k.layer = layer;
    k.site = Site::kLatentKeys;
    k.transposed_rows = nope + values;
    PlannedTensor& v = add(stem + ".v_b_proj.weight", TensorRole::kBlockMatrix, heads * values, rank);
    v.weights = {whole};
    v.stacked = heads;
    v.layer = layer;
    v.site = Site::kLatentValues;
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t i = 0; i < values; ++i) v.row_order.push_back(h * (nope + values) + nope + i);
    }
  }

  static void order_value_heads(PlannedTensor& t, const model::DeltaNetSpec& d, const LinearSpec& l) {
    const std::int64_t keys = 2 * std::int64_t{d.key_heads} * d.key_dim;
    if (l.name == d.qkv.name || l.name == d.conv.name) t.row_order = tiled_order(d, keys, d.value_dim);
    if (l.name == d.z.name) t.row_order = tiled_order(d, 0, d.value_dim);
    if (l.name == d.b.name || l.name == d.a.name) t.row_order = tiled_order(d, 0, 1);
    if (l.name == d.out.name) t.column_order = tiled_order(d, 0, d.value_dim);
    if (l.name == d.conv.name) t.stacked = 0;  // (channels, width) without the 1 between
  }

  void add_decays(const model::DeltaNetSpec& d) {
    for (const std::string& name : {d.a_log, d.dt_bias}) {
      PlannedTensor& t = add_vector(name, d.value_heads);
      t.full_precision = true;
      if (!gguf_ || d.in_gguf_form) continue;
      t.column_order = tiled_order(d, 0, 1);
      t.negative_exponential = name == d.a_log;
    }
  }

  bool gguf_;
  std::vector<PlannedTensor> out_;
};

}  // namespace

std::vector<std::uint64_t> PlannedTensor::shape() const {
  const auto n = static_cast<std::uint64_t>(columns);
  if (role == TensorRole::kVector && !vectors) return {n};
  if (stacked > 0)
    return {static_cast<std::uint64_t>(stacked), static_cast<std::uint64_t>(rows / stacked), n};
  return {static_cast<std::uint64_t>(rows), n};
}

std::uint64_t PlannedTensor::bytes() const {
  if (codes) {
    std::uint64_t n = 0;
    for (const CodedPart& part : parts_of(*codes, rows, columns)) n += part.bytes();
    return n;
  }
  return formats::bytes_of(used, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns));
}

std::string PlannedTensor::asked_name() const {
  return asked_codes ? asked_codes->name() : std::string(formats::name_of(asked));
}

std::string PlannedTensor::used_name() const {
  return codes ? codes->name() : std::string(formats::name_of(used));
}

std::vector<PlannedTensor> planned_tensors(const model::ModelSpec& spec, FileForm form) {
  Planner planner(form);
  planner.add_matrix({spec.embedding, spec.vocab_size, spec.hidden_size}, TensorRole::kEmbedding);
  if (!spec.positions.empty())
    planner.add_matrix({spec.positions, spec.max_positions, spec.hidden_size}, TensorRole::kKept);
  for (std::size_t i = 0; i < spec.layers.size(); ++i) planner.add_block(spec.layers[i], static_cast<int>(i));
  planner.add_norm(spec.final_norm);
  if (spec.head.name != spec.embedding) planner.add_matrix(spec.head, TensorRole::kHead);
  return planner.take();
}

std::string gguf_name_of(std::string_view model_type, const PlannedTensor& tensor) {
  std::optional<std::string> name = model::gguf_name(model_type, tensor.name);
  if (name) return *std::move(name);
  throw Error(ErrorCode::kNotSupported,
              fmt::format("{} of {} models has no name in GGUF", tensor.name, model_type), {},
              "convert to hf instead");
}

}  // namespace wring::quantize
