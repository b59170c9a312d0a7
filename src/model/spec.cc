#include "model/spec.h"

#include <fmt/format.h>

#include "base/error.h"
#include "model/arch.h"

namespace wring::model {

StateSpec state_of(const LayerSpec& layer) {
  const AttentionSpec& a = layer.attention;
  StateSpec state;
  state.page_bytes_per_token =
      sizeof(float) * 2 * static_cast<std::uint64_t>(a.num_kv_heads) * static_cast<std::uint64_t>(a.head_dim);
  return state;
}

ModelSpec make_spec(const ModelConfig& config) {
  if (config.model_type == "llama") return make_llama_spec(config);
  throw Error(ErrorCode::kNotSupported, fmt::format("model_type {} is not supported", config.model_type));
}

std::vector<LinearUse> block_linears(const ModelSpec& spec) {
  std::vector<LinearUse> uses;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const LayerSpec& layer = spec.layers[i];
    const int n = static_cast<int>(i);
    for (const LinearSpec* l : {&layer.attention.q, &layer.attention.k, &layer.attention.v})
      uses.push_back({l, n, Site::kQkv});
    uses.push_back({&layer.attention.o, n, Site::kO});
    for (const LinearSpec* l : {&layer.mlp.gate, &layer.mlp.up}) uses.push_back({l, n, Site::kGateUp});
    uses.push_back({&layer.mlp.down, n, Site::kDown});
  }
  return uses;
}

double block_macs(const ModelSpec& spec) {
  double macs = 0;
  for (const LinearUse& use : block_linears(spec))
    macs += static_cast<double>(use.linear->rows * use.linear->columns);
  return macs;
}

}  // namespace wring::model
