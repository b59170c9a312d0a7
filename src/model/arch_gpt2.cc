// GPT-2 (arch.h). Source: modeling_gpt2.py of transformers, whose Conv1D maps are stored (in, out).
#include <fmt/format.h>

#include <cmath>

#include "model/arch.h"

namespace wring::model {
namespace {

LinearSpec conv1d(std::string name, std::int64_t rows, std::int64_t columns) {
  LinearSpec l{std::move(name), rows, columns, true};
  l.transposed = true;
  return l;
}

LayerSpec make_layer(const ModelConfig& c, std::size_t index) {
  const std::string p = fmt::format("transformer.h.{}.", index);
  const std::int64_t hidden = c.hidden_size;
  const auto norm = [&](const char* name) {
    return NormSpec{p + name, hidden, static_cast<float>(c.rms_norm_eps), 0, true};
  };
  LayerSpec layer;
  layer.mixer_norm = norm("ln_1");
  AttentionSpec& a = layer.attention;
  a.num_heads = a.num_kv_heads = static_cast<int>(c.num_attention_heads);
  a.head_dim = static_cast<int>(c.head_dim);
  a.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.head_dim)));
  a.rope = -1;
  std::int64_t row = 0;
  for (auto [map, part] : {std::pair{&a.q, "q"}, std::pair{&a.k, "k"}, std::pair{&a.v, "v"}}) {
    *map = conv1d(fmt::format("{}attn.{}", p, part), hidden, hidden);
    map->stored = {p + "attn.c_attn", row, 3 * hidden};
    row += hidden;
  }
  a.o = conv1d(p + "attn.c_proj", hidden, hidden);
  layer.mlp_norm = norm("ln_2");
  layer.mlp.up = conv1d(p + "mlp.c_fc", c.intermediate_size, hidden);
  layer.mlp.down = conv1d(p + "mlp.c_proj", hidden, c.intermediate_size);
  layer.mlp.activation = activation_named(c.hidden_act);
  return layer;
}

}  // namespace

ModelSpec make_gpt2_spec(const ModelConfig& c) {
  ModelSpec spec;
  spec.embedding = "transformer.wte";
  spec.positions = "transformer.wpe";
  spec.max_positions = c.max_position_embeddings;
  spec.vocab_size = c.vocab_size;
  spec.hidden_size = c.hidden_size;
  for (std::size_t i = 0; i < static_cast<std::size_t>(c.num_hidden_layers); ++i)
    spec.layers.push_back(make_layer(c, i));
  spec.final_norm = {"transformer.ln_f", c.hidden_size, static_cast<float>(c.rms_norm_eps), 0, true};
  spec.head = {c.tie_word_embeddings ? spec.embedding : "lm_head", c.vocab_size, c.hidden_size};
  return spec;
}

}  // namespace wring::model
