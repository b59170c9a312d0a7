#include "model/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "model/arch.h"

namespace wring::model {

Activation activation_named(std::string_view hidden_act) {
  return hidden_act == "silu" ? Activation::kSilu : Activation::kGeluTanh;
}

StateSpec state_of(const LayerSpec& layer) {
  const AttentionSpec& a = layer.attention;
  StateSpec state;
  if (layer.delta_net) {
    const DeltaNetSpec& d = *layer.delta_net;
    state.fixed_bytes = sizeof(float) * (static_cast<std::uint64_t>(d.value_heads) *
                                             static_cast<std::uint64_t>(d.key_dim * d.value_dim) +
                                         static_cast<std::uint64_t>(d.conv.rows * (d.conv.columns - 1)));
    return state;
  }
  state.page_bytes_per_token = sizeof(float) * static_cast<std::uint64_t>(a.num_kv_heads) *
                               static_cast<std::uint64_t>(a.head_dim + a.values());
  return state;
}

ModelSpec make_spec(const ModelConfig& config) {
  const Architecture& architecture = find_architecture(config.model_type);
  ModelSpec spec = architecture.make_spec(config);
  spec.model_type = config.model_type;
  if (!architecture.pairs_in_gguf) {
    for (LayerSpec& layer : spec.layers)
      layer.attention.q.rotary_head_dim = layer.attention.k.rotary_head_dim = 0;
  }
  return spec;
}

std::string describe(const ModelSpec& spec) {
  std::string out = fmt::format("{} embedding {} scale {} cap {}\n", spec.model_type, spec.embedding,
                                spec.embedding_scale, spec.logit_softcap);
  const auto norm = [&](const NormSpec& n) {
    out += fmt::format("norm {} {} eps {} offset {}{}\n", n.name, n.size, n.eps, n.weight_offset,
                       n.layer_norm ? " layer norm" : "");
  };
  const auto map = [&](const LinearSpec& l) {
    out += fmt::format("map {} {}x{} bias {}\n", l.name, l.rows, l.columns, l.bias);
  };
  for (const LayerSpec& layer : spec.layers) {
    for_each_part(layer, norm, [&](const LinearSpec& l, Site) { map(l); });
    const AttentionSpec& a = layer.attention;
    out +=
        fmt::format("heads {}/{} of {}/{} scale {} cap {} window {} rope {} from {} pairs {} activation {}\n",
                    a.num_heads, a.num_kv_heads, a.head_dim, a.values(), a.scale, a.softcap, a.window, a.rope,
                    a.rotary_begin, a.rotary_pairs, static_cast<int>(layer.mlp.activation));
    if (layer.delta_net) {
      const DeltaNetSpec& d = *layer.delta_net;
      out += fmt::format("delta net {}x{} keys {}x{} values fused {} {}\n", d.key_heads, d.key_dim,
                         d.value_heads, d.value_dim, d.fused, d.in_gguf_form);
    }
    out += fmt::format("gated {}\n", a.gated);
    if (!a.sinks.empty()) out += fmt::format("sinks {}\n", a.sinks);
    if (!layer.moe) continue;
    const MoeSpec& m = *layer.moe;
    out += fmt::format("experts {} of {} scores {} bias {} groups {}/{} normalize {} scale {}\n", m.per_token,
                       m.experts.size(), static_cast<int>(m.scores), m.selection_bias, m.groups_per_token,
                       m.groups, m.normalize, m.scale);
    if (m.group_best != 2) out += fmt::format("best of a group {}\n", m.group_best);
    out += fmt::format("activations {} shared {}\n", static_cast<int>(m.experts.front().activation),
                       m.shared ? static_cast<int>(m.shared->activation) : -1);
    if (const MlpSpec& e = m.experts.front(); e.limit > 0)
      out += fmt::format("alpha {} limit {}\n", e.alpha, e.limit);
  }
  if (!spec.positions.empty()) out += fmt::format("positions {}\n", spec.max_positions);
  norm(spec.final_norm);
  map(spec.head);
  for (const RopeSpec& rope : spec.ropes) {
    out +=
        fmt::format("rope {} [{}] from {} [{}]\n", rope.magnitude, fmt::join(rope.inverse_frequencies, " "),
                    rope.long_from, fmt::join(rope.long_inverse_frequencies, " "));
  }
  return out;
}

namespace {

bool close(float a, float b) {
  return std::abs(a - b) <= 1e-4F * std::max(std::abs(a), std::abs(b));
}

bool same_norm(const std::optional<NormSpec>& a, const std::optional<NormSpec>& b) {
  if (!a || !b) return !a && !b;
  return a->name == b->name && a->size == b->size && close(a->eps, b->eps);
}

bool same_map(const LinearSpec& a, const LinearSpec& b) {
  return a.name == b.name && a.rows == b.rows && a.columns == b.columns && a.bias == b.bias;
}

bool same_rope(const ModelSpec& a, int index_a, const ModelSpec& b, int index_b) {
  if (index_a < 0 || index_b < 0) return index_a == index_b;
  const RopeSpec &ra = a.ropes[static_cast<std::size_t>(index_a)],
                 &rb = b.ropes[static_cast<std::size_t>(index_b)];
  return close(ra.magnitude, rb.magnitude) &&
         std::ranges::equal(ra.inverse_frequencies, rb.inverse_frequencies, close) &&
         std::ranges::equal(ra.long_inverse_frequencies, rb.long_inverse_frequencies, close) &&
         ra.long_from == rb.long_from;
}

bool same_layer(const ModelSpec& model_a, const LayerSpec& a, const ModelSpec& model_b, const LayerSpec& b) {
  const AttentionSpec &x = a.attention, &y = b.attention;
  const bool windows = model_a.model_type != model_b.model_type || x.window == y.window;
  return same_norm(a.mixer_norm, b.mixer_norm) && same_norm(a.mixer_output_norm, b.mixer_output_norm) &&
         same_norm(a.mlp_norm, b.mlp_norm) && same_norm(a.mlp_output_norm, b.mlp_output_norm) &&
         same_map(x.q, y.q) && same_map(x.k, y.k) && same_map(x.v, y.v) && same_map(x.o, y.o) &&
         same_norm(x.q_norm, y.q_norm) && same_norm(x.k_norm, y.k_norm) && x.num_heads == y.num_heads &&
         x.num_kv_heads == y.num_kv_heads && x.head_dim == y.head_dim && close(x.scale, y.scale) &&
         close(x.softcap, y.softcap) && windows && same_rope(model_a, x.rope, model_b, y.rope) &&
         same_map(a.mlp.gate, b.mlp.gate) && same_map(a.mlp.up, b.mlp.up) &&
         same_map(a.mlp.down, b.mlp.down) && a.mlp.activation == b.mlp.activation;
}

}  // namespace

bool same_computation(const ModelSpec& a, const ModelSpec& b) {
  return close(a.embedding_scale, b.embedding_scale) && close(a.logit_softcap, b.logit_softcap) &&
         same_norm(a.final_norm, b.final_norm) && same_map(a.head, b.head) &&
         std::ranges::equal(a.layers, b.layers,
                            [&](const LayerSpec& x, const LayerSpec& y) { return same_layer(a, x, b, y); });
}

std::vector<LinearUse> block_linears(const ModelSpec& spec) {
  std::vector<LinearUse> uses;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    for_each_part(
        spec.layers[i], [](const NormSpec&) {},
        [&](const LinearSpec& l, Site site) {
          uses.push_back({&l, static_cast<int>(i), site});
        });
  }
  return uses;
}

double block_macs(const ModelSpec& spec) {
  double macs = 0;
  for (const LinearUse& use : block_linears(spec)) {
    const auto& moe = spec.layers[static_cast<std::size_t>(use.layer)].moe;
    const double share = use.linear->expert < 0
                             ? 1.0
                             : static_cast<double>(moe->per_token) / static_cast<double>(moe->experts.size());
    macs += share * static_cast<double>(use.linear->rows * use.linear->columns);
  }
  return macs;
}

bool is_recurrent(const ModelSpec& spec) {
  return std::ranges::any_of(spec.layers, [](const LayerSpec& l) { return l.delta_net.has_value(); });
}

void require_plain(const ModelSpec& spec, std::string message) {
  const bool plain = std::ranges::all_of(spec.layers, [](const LayerSpec& l) {
    const bool shared = !l.attention.q.stored.name.empty() || !l.mlp.gate.stored.name.empty();
    return !l.moe && !l.delta_net && !l.attention.latent && !shared;
  });
  if (plain) return;
  throw Error(ErrorCode::kNotSupported, std::move(message), {},
              "mixtures of experts, latent attention, recurrent layers, and tensors that hold several maps, "
              "are read and run only");
}

}  // namespace wring::model
