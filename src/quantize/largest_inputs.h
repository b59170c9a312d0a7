// Calibration for formats that round inputs too: the largest magnitude of each map's inputs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "engine/engine.h"
#include "engine/observer.h"

namespace wring::quantize {

/// The observer. Maps that read the same input share the number; so do all experts of a layer, each of which
/// may have seen too little of what it will.
class LargestInputs final : public engine::ForwardObserver {
 public:
  explicit LargestInputs(const model::ModelSpec& spec) : largest_(spec.layers.size() * model::kSites) {}

  void on_input(int layer, model::Site site, int matrix, const engine::Rows& inputs) override;

  /// 0: nothing came there.
  float of(int layer, model::Site site) const { return largest_[index_of(layer, site)]; }

 private:
  static std::size_t index_of(int layer, model::Site site) {
    return static_cast<std::size_t>(layer) * model::kSites + static_cast<std::size_t>(site);
  }

  std::vector<float> largest_;  // by layer and site
};

/// Runs `documents`. Errors: kNotSupported for latent attention, whose kv_b reads what no observer sees;
/// kBadInput for too few tokens (kLeastCalibrationTokens) and for inputs that are not finite; kCancelled.
LargestInputs find_largest_inputs(engine::Engine& engine,
                                  std::span<const std::vector<engine::TokenId>> documents,
                                  const std::string& source, ProgressSink& progress);

}  // namespace wring::quantize
