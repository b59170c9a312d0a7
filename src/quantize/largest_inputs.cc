#include "quantize/largest_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "quantize/calibration_run.h"

namespace wring::quantize {

void LargestInputs::on_input(int layer, model::Site site, int, const engine::Rows& inputs) {
  float& largest = largest_[index_of(layer, site)];
  const auto columns = static_cast<std::size_t>(inputs.columns);
  for (std::int64_t r = 0; r < inputs.count; ++r) {
    for (const float x : std::span(inputs.data + static_cast<std::size_t>(r) * inputs.stride, columns)) {
      if (!(std::abs(x) <= largest) && !std::isnan(largest)) largest = std::abs(x);  // NaN stays
    }
  }
}

LargestInputs find_largest_inputs(engine::Engine& engine,
                                  std::span<const std::vector<engine::TokenId>> documents,
                                  const std::string& source, ProgressSink& progress) {
  const model::ModelSpec& spec = engine.model().spec();
  for (const model::LayerSpec& layer : spec.layers) {
    if (layer.attention.latent && !layer.delta_net) {
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("the inputs of {} are not calibrated", layer.attention.latent->kv_b.name), {},
                  "leave out --calibration: weights alone are rounded then");
    }
  }
  LargestInputs inputs(spec);
  run_calibration(engine, documents, source, inputs, progress, [] {});
  for (std::size_t layer = 0; layer < spec.layers.size(); ++layer) {
    for (std::size_t site = 0; site < model::kSites; ++site) {
      const float x = inputs.of(static_cast<int>(layer), static_cast<model::Site>(site));
      if (std::isfinite(x)) continue;
      throw Error(ErrorCode::kBadInput, fmt::format("an input of block {} is {}", layer, x), source,
                  "the model overflows on the calibration texts");
    }
  }
  return inputs;
}

}  // namespace wring::quantize
