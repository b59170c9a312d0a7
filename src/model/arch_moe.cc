// Mixtures of experts on Llama's and Qwen 3's lists (arch.h). Sources: modeling_mixtral.py,
// modeling_qwen3_moe.py and modeling_exaone_moe.py of transformers.
#include <fmt/format.h>

#include "model/arch.h"

namespace wring::model {
namespace {

/// The names of a mixture's parts below "model.layers.<i>.".
struct MoeNames {
  std::string_view block, gate, up, down;  // "mlp", "gate_proj", …
};
constexpr MoeNames kUsualNames = {"mlp", "gate_proj", "up_proj", "down_proj"};
constexpr MoeNames kMixtralNames = {"block_sparse_moe", "w1", "w3", "w2"};

MlpSpec mlp(const std::string& prefix, const MoeNames& names, std::int64_t inner, const ModelConfig& c,
            int expert) {
  MlpSpec m;
  m.gate = {fmt::format("{}.{}", prefix, names.gate), inner, c.hidden_size, false, 0, expert};
  m.up = {fmt::format("{}.{}", prefix, names.up), inner, c.hidden_size, false, 0, expert};
  m.down = {fmt::format("{}.{}", prefix, names.down), c.hidden_size, inner, false, 0, expert};
  m.activation = activation_named(c.hidden_act);
  return m;
}

bool is_sparse(const ModelConfig& c, std::size_t layer) {
  return c.sparse_layers.empty() || c.sparse_layers[layer];
}

void add_named_experts(ModelSpec& spec, const ModelConfig& c, const MoeNames& names) {
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    if (!is_sparse(c, i)) continue;
    const std::string block = fmt::format("model.layers.{}.{}", i, names.block);
    MoeSpec moe;
    moe.router = {block + ".gate", c.num_experts, c.hidden_size};
    moe.per_token = static_cast<int>(c.num_experts_per_tok);
    moe.normalize = c.norm_topk_prob;
    moe.scale = static_cast<float>(c.routed_scaling_factor);
    moe.groups = static_cast<int>(c.n_group);
    moe.groups_per_token = static_cast<int>(c.topk_group);
    for (int e = 0; e < c.num_experts; ++e) {
      moe.experts.push_back(
          mlp(fmt::format("{}.experts.{}", block, e), names, c.moe_intermediate_size, c, e));
    }
    if (c.shared_expert_intermediate_size > 0) {
      moe.shared = mlp(block + ".shared_expert", names, c.shared_expert_intermediate_size, c, -1);
    } else if (c.num_shared_experts > 0) {
      moe.shared =
          mlp(block + ".shared_experts", names, c.num_shared_experts * c.moe_intermediate_size, c, -1);
    }
    spec.layers[i].moe = std::move(moe);
    spec.layers[i].mlp = {};
  }
}

}  // namespace

void add_experts(ModelSpec& spec, const ModelConfig& c) {
  add_named_experts(spec, c, kUsualNames);
}

ModelSpec make_mixtral_spec(const ModelConfig& c) {
  ModelSpec spec = make_llama_spec(c);
  add_named_experts(spec, c, kMixtralNames);
  return spec;
}

void choose_by_biased_sigmoid(ModelSpec& spec, std::string_view bias) {
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    if (!spec.layers[i].moe) continue;
    spec.layers[i].moe->scores = RouterScores::kSigmoid;
    spec.layers[i].moe->selection_bias = fmt::format("model.layers.{}.{}", i, bias);
  }
}

ModelSpec make_qwen3_moe_spec(const ModelConfig& c) {
  ModelSpec spec = make_qwen3_spec(c);
  add_experts(spec, c);
  return spec;
}

ModelSpec make_exaone_moe_spec(const ModelConfig& c) {
  ModelSpec spec = make_qwen3_spec(c);
  add_experts(spec, c);
  choose_by_biased_sigmoid(spec, "mlp.e_score_correction_bias");
  return spec;
}

}  // namespace wring::model
