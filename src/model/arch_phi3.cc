// Phi 3 (arch.h). Source: modeling_phi3.py of transformers.
#include <fmt/format.h>

#include "base/error.h"
#include "model/arch.h"

namespace wring::model {

ModelSpec make_phi3_spec(const ModelConfig& c) {
  if (c.attention_bias || c.mlp_bias) {
    throw Error(ErrorCode::kNotSupported,
                "attention_bias or mlp_bias is true, which phi3 is not supported with");
  }
  ModelSpec spec = make_llama_spec(c);
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    AttentionSpec& a = spec.layers[i].attention;
    MlpSpec& m = spec.layers[i].mlp;
    const std::string p = fmt::format("model.layers.{}.", i);
    std::int64_t row = 0;
    for (LinearSpec* l : {&a.q, &a.k, &a.v}) {
      l->stored = {p + "self_attn.qkv_proj", row, a.q.rows + a.k.rows + a.v.rows};
      row += l->rows;
    }
    m.gate.stored = {p + "mlp.gate_up_proj", 0, 2 * c.intermediate_size};
    m.up.stored = {p + "mlp.gate_up_proj", c.intermediate_size, 2 * c.intermediate_size};
  }
  return spec;
}

}  // namespace wring::model
