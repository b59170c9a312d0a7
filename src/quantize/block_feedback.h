// Error feedback through a whole model, block by block: the inputs of each block come from the blocks before
// it as they were rounded, so that later blocks make up for what earlier ones lost. One block's Hessians are
// alive at a time.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/progress.h"
#include "engine/engine.h"
#include "quantize/error_feedback.h"
#include "quantize/plan.h"
#include "quantize/tensor_stream.h"

namespace wring::quantize {

struct FeedbackOptions {
  double damping = 0.01;
  ColumnOrder order = ColumnOrder::kFalling;
  bool search = false;  // INT4's scales are those of least error under the diagonal of H
};

class BlockFeedback {
 public:
  /// Opens `source` once more, for a copy whose matrices are replaced. What is passed must outlive this;
  /// documents are token ids. Errors: kBadInput for fewer than kLeastCalibrationTokens tokens in all.
  BlockFeedback(const model::Model& source, const QuantPlan& plan,
                std::span<const std::vector<engine::TokenId>> documents, const FeedbackOptions& options,
                int threads);

  /// Whether the tensor is rounded here: a matrix of a block, of a type that has a grid.
  bool covers(const PlannedTensor& planned) const;

  struct Rounded {
    std::vector<std::byte> bytes;     // GGUF: the tensor's blocks, in the form of the file
    std::vector<std::uint8_t> codes;  // folders: (rows, columns)
    CodedScales scales;               // theirs
    TensorReport report;
  };
  /// Tensor number `index` of the plan. Tensors are asked for in the plan's order; the first of a block
  /// computes the block. Errors: kCancelled.
  Rounded take(std::size_t index, ProgressSink& progress);

  /// The same by name, for folders.
  Rounded take(const PlannedTensor& planned, ProgressSink& progress);

  /// What the user should know, a line each.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  void compute_block(int layer, ProgressSink& progress);
  void run_block(int layer, engine::ForwardObserver* observer, ProgressSink& progress);
  /// `values` (rows, columns): what is stored, widened.
  Rounded round(const PlannedTensor& planned, const class HessianCollector& hessians,
                std::vector<float>& values);
  std::vector<float> round_blocks(const PlannedTensor& planned, std::span<const float> weights,
                                  const struct Hessian* hessian, std::span<std::byte> blocks);
  std::vector<float> round_codes(const PlannedTensor& planned, std::span<const float> weights,
                                 const Hessian* hessian, Rounded& rounded);
  /// The factor of a matrix' Hessian, with a warning where it needed more damping or there is none.
  std::optional<InverseFactor> factor_of(const PlannedTensor& planned, const Hessian& hessian);
  void replace_weights(const PlannedTensor& planned, std::span<const float> values);

  model::Model model_;
  engine::Engine engine_;
  const QuantPlan* plan_;
  FeedbackOptions options_;
  std::vector<std::span<const engine::TokenId>> documents_;
  std::vector<float> residual_;  // (tokens of all documents, hidden_size)
  int next_layer_ = 0;
  std::map<std::size_t, Rounded> rounded_;  // by index into the plan: of the block computed last
  std::vector<std::string> replaced_;       // weights
  std::vector<std::string> warnings_;
};

}  // namespace wring::quantize
