// gpt_oss (arch.h). Source: modeling_gpt_oss.py of transformers.
#include <fmt/format.h>

#include "model/arch.h"

namespace wring::model {
namespace {

/// Rows of gate and up take turns in one tensor.
MlpSpec expert(const std::string& experts, int number, const ModelConfig& c) {
  const std::string p = fmt::format("{}.{}.", experts, number);
  const std::int64_t inner = c.moe_intermediate_size, hidden = c.hidden_size;
  MlpSpec m;
  m.gate = {p + "gate_proj", inner, hidden, true, 0, number, {experts + ".gate_up_proj", 0, 2 * inner, 2}};
  m.up = {p + "up_proj", inner, hidden, true, 0, number, {experts + ".gate_up_proj", 1, 2 * inner, 2}};
  m.down = {p + "down_proj", hidden, inner, true, 0, number, {experts + ".down_proj", 0, hidden, 1}};
  for (LinearSpec* l : {&m.gate, &m.up, &m.down}) l->transposed = true;
  m.activation = Activation::kClampedSwiglu;
  m.alpha = static_cast<float>(c.swiglu_alpha);
  m.limit = static_cast<float>(c.swiglu_limit);
  return m;
}

}  // namespace

ModelSpec make_gpt_oss_spec(const ModelConfig& c) {
  ModelSpec spec = make_llama_spec(c);
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerSpec& layer = spec.layers[i];
    layer.attention.sinks = fmt::format("model.layers.{}.self_attn.sinks", i);
    MoeSpec moe;
    moe.router = {fmt::format("model.layers.{}.mlp.router", i), c.num_experts, c.hidden_size, true};
    moe.per_token = static_cast<int>(c.num_experts_per_tok);
    // A softmax over the chosen logits is the softmax over all, divided by the sum of the chosen.
    moe.normalize = true;
    const std::string experts = fmt::format("model.layers.{}.mlp.experts", i);
    for (int e = 0; e < c.num_experts; ++e) moe.experts.push_back(expert(experts, e, c));
    layer.moe = std::move(moe);
    layer.mlp = {};
  }
  return spec;
}

}  // namespace wring::model
