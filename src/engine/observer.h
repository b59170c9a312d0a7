// How calibration and block diagnostics see the inside of a step without the forward pass knowing them.
#pragma once

#include "engine/batch.h"
#include "model/spec.h"

namespace wring::engine {

/// Called in the middle of a step, which cannot be undone there: implementations must not throw.
class ForwardObserver {
 public:
  virtual ~ForwardObserver() = default;

  /// The input of the linear maps at `site` of block `layer`: one row a position, in batch order. `matrix`:
  /// the number of the expert (rows of the positions that it was chosen for alone; not called without any)
  /// or, in latent attention's space, of the head; else 0. Called on the stepping thread.
  virtual void on_input(int layer, model::Site site, int matrix, const Rows& inputs) {
    (void)layer, (void)site, (void)matrix, (void)inputs;
  }

  /// The residual stream (positions, hidden_size): layer −1 after the embedding, layer i after block i,
  /// before the final norm.
  virtual void on_residual(int layer, const Rows& residual) { (void)layer, (void)residual; }

  /// False skips on_input's work for steps that only need residuals.
  virtual bool wants_inputs() const { return true; }
};

}  // namespace wring::engine
