#include "model/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/arch.h"

namespace wring::model {

Activation activation_named(std::string_view hidden_act) {
  return hidden_act == "silu" ? Activation::kSilu : Activation::kGeluTanh;
}

ExpertName expert_name(const LinearSpec& linear) {
  const std::string number = fmt::format(".experts.{}.", linear.expert);
  const std::size_t at = linear.name.find(number);
  return {linear.name.substr(0, at) + ".experts.", linear.name.substr(at + number.size())};
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
  return a->name == b->name && a->size == b->size && close(a->eps, b->eps) && a->layer_norm == b->layer_norm;
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

bool same_mlp(const MlpSpec& a, const MlpSpec& b) {
  return same_map(a.gate, b.gate) && same_map(a.up, b.up) && same_map(a.down, b.down) &&
         a.activation == b.activation && close(a.alpha, b.alpha) && close(a.limit, b.limit);
}

/// Both there and the same, or both not there.
template <class T, class Same>
bool same_optional(const std::optional<T>& a, const std::optional<T>& b, Same&& same) {
  return a && b ? same(*a, *b) : !a && !b;
}

bool same_moe(const MoeSpec& a, const MoeSpec& b) {
  return same_map(a.router, b.router) && a.scores == b.scores && a.selection_bias == b.selection_bias &&
         a.groups == b.groups && a.groups_per_token == b.groups_per_token && a.group_best == b.group_best &&
         a.per_token == b.per_token && a.normalize == b.normalize && close(a.scale, b.scale) &&
         std::ranges::equal(a.experts, b.experts, same_mlp) && same_optional(a.shared, b.shared, same_mlp) &&
         same_optional(a.shared_gate, b.shared_gate, same_map);
}

bool same_latent(const LatentSpec& a, const LatentSpec& b) {
  return same_optional(a.q_a, b.q_a, same_map) && same_norm(a.q_a_norm, b.q_a_norm) &&
         same_map(a.q_b, b.q_b) && same_map(a.kv_a, b.kv_a) && same_norm(a.kv_a_norm, b.kv_a_norm) &&
         a.nope_dim == b.nope_dim && a.value_dim == b.value_dim;
}

bool same_delta_net(const DeltaNetSpec& a, const DeltaNetSpec& b) {
  return same_map(a.qkv, b.qkv) && same_map(a.z, b.z) && same_map(a.b, b.b) && same_map(a.a, b.a) &&
         same_map(a.out, b.out) && same_map(a.conv, b.conv) && same_norm(a.norm, b.norm) &&
         a.norm.weight_offset == b.norm.weight_offset && a.fused == b.fused && a.a_log == b.a_log &&
         a.dt_bias == b.dt_bias && a.key_heads == b.key_heads && a.value_heads == b.value_heads &&
         a.key_dim == b.key_dim && a.value_dim == b.value_dim;
}

bool same_attention(const ModelSpec& model_a, const AttentionSpec& a, const ModelSpec& model_b,
                    const AttentionSpec& b) {
  const bool windows = model_a.model_type != model_b.model_type || a.window == b.window;
  return same_map(a.q, b.q) && same_map(a.k, b.k) && same_map(a.v, b.v) && same_map(a.o, b.o) &&
         same_norm(a.q_norm, b.q_norm) && same_norm(a.k_norm, b.k_norm) && a.num_heads == b.num_heads &&
         a.num_kv_heads == b.num_kv_heads && a.head_dim == b.head_dim && a.values() == b.values() &&
         close(a.scale, b.scale) && close(a.softcap, b.softcap) && windows &&
         same_rope(model_a, a.rope, model_b, b.rope) && a.rotary_begin == b.rotary_begin &&
         a.rotary_pairs == b.rotary_pairs && a.gated == b.gated && a.sinks == b.sinks &&
         same_optional(a.latent, b.latent, same_latent);
}

bool same_layer(const ModelSpec& model_a, const LayerSpec& a, const ModelSpec& model_b, const LayerSpec& b) {
  const bool mixers = a.delta_net
                          ? same_optional(a.delta_net, b.delta_net, same_delta_net)
                          : !b.delta_net && same_attention(model_a, a.attention, model_b, b.attention);
  return mixers && same_norm(a.mixer_norm, b.mixer_norm) &&
         same_norm(a.mixer_output_norm, b.mixer_output_norm) && same_norm(a.mlp_norm, b.mlp_norm) &&
         same_norm(a.mlp_output_norm, b.mlp_output_norm) && same_optional(a.moe, b.moe, same_moe) &&
         (a.moe || same_mlp(a.mlp, b.mlp));
}

}  // namespace

bool same_computation(const ModelSpec& a, const ModelSpec& b) {
  return close(a.embedding_scale, b.embedding_scale) && a.positions == b.positions &&
         a.max_positions == b.max_positions && close(a.logit_softcap, b.logit_softcap) &&
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
    if (use.site == Site::kKept) continue;
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

}  // namespace wring::model
