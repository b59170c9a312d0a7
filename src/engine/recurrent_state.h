// What a sequence keeps of its recurrent layers: one state, as of `position`, and the inputs of the positions
// computed after it that may still be rolled back. Those that are committed are replayed by the next step; so
// rolling back costs nothing, and no state is kept a position.
#pragma once

#include <cstdint>
#include <vector>

#include "model/spec.h"

namespace wring::engine {

struct RecurrentState {
  struct Layer {
    std::vector<float> state;   // (value_heads, key_dim, value_dim)
    std::vector<float> tail;    // (conv width − 1, channels): the convolution's last inputs
    std::vector<float> inputs;  // (positions, channels): its inputs since
    std::vector<float> gates;   // (positions, 2, value_heads): decay and beta since
  };
  std::int64_t position = 0;  // positions that the states have seen
  std::vector<Layer> layers;  // of the recurrent ones, in order

  std::uint64_t bytes() const {
    std::uint64_t n = 0;
    for (const Layer& l : layers) n += l.state.size() + l.tail.size() + l.inputs.size() + l.gates.size();
    return n * sizeof(float);
  }

  RecurrentState() = default;
  explicit RecurrentState(const model::ModelSpec& spec) {
    for (const model::LayerSpec& layer : spec.layers) {
      if (!layer.delta_net) continue;
      const model::DeltaNetSpec& d = *layer.delta_net;
      Layer l;
      l.state.resize(static_cast<std::size_t>(d.value_heads) *
                     static_cast<std::size_t>(d.key_dim * d.value_dim));
      l.tail.resize(static_cast<std::size_t>(d.conv.rows * (d.conv.columns - 1)));
      layers.push_back(std::move(l));
    }
  }
  /// Room for `positions` that may be rolled back.
  void reserve(const model::ModelSpec& spec, std::int64_t positions) {
    std::size_t i = 0;
    for (const model::LayerSpec& layer : spec.layers) {
      if (!layer.delta_net) continue;
      Layer& l = layers[i++];
      const auto n = static_cast<std::size_t>(positions);
      const std::size_t inputs = n * static_cast<std::size_t>(layer.delta_net->conv.rows),
                        gates = n * 2 * static_cast<std::size_t>(layer.delta_net->value_heads);
      if (l.inputs.size() < inputs) l.inputs.resize(inputs);
      if (l.gates.size() < gates) l.gates.resize(gates);
    }
  }
};

}  // namespace wring::engine
