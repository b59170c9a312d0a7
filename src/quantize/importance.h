// Calibration: which input columns of each matrix matter. Documents run through the model, and for every
// linear map of the blocks the squares of its inputs are summed by column (the diagonal of the Hessian of its
// output error, up to a factor; the "importance matrix" of llama.cpp). Maps that read the same input share
// the sums; experts have sums of their own over the tokens that were sent to them.
//
// Sums are float64, taken over groups of kDocumentsPerGroup documents and merged in order: the result depends
// on the documents and their order, not on the number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "engine/engine.h"
#include "engine/observer.h"
#include "formats/imatrix.h"
#include "quantize/calibration_run.h"
#include "quantize/planned_tensor.h"

namespace wring::quantize {

/// The observer that sums. Between groups call merge(); it is of use alone where a caller steps the engine
/// itself.
class ImportanceCollector final : public engine::ForwardObserver {
 public:
  /// `pool`: the engine's; on_input divides the columns among its threads. Errors: kNotSupported for a model
  /// without a GGUF form, whose names the entries have.
  ImportanceCollector(const model::ModelSpec& spec, ThreadPool& pool);

  void on_input(int layer, model::Site site, int matrix, const engine::Rows& inputs) override;

  /// Adds the group's sums to the totals.
  void merge();

  /// The entries by GGUF weight name, columns in GGUF's order; of stacked tensors by matrix (experts, heads).
  /// Errors: kBadInput naming the matrix whose inputs were not finite.
  formats::Imatrix result() const;

 private:
  struct Sums {
    std::size_t columns = 0;
    std::vector<double> group, total;                       // (matrices, columns): Σ x_j²
    std::vector<std::uint64_t> group_tokens, total_tokens;  // by matrix
  };
  std::size_t index_of(int layer, model::Site site) const {
    return static_cast<std::size_t>(layer) * model::kSites + static_cast<std::size_t>(site);
  }
  formats::ImatrixEntry entry_of(const PlannedTensor& tensor) const;

  std::string model_type_;
  std::vector<PlannedTensor> matrices_;  // the blocks', as GGUF has them
  ThreadPool* pool_;
  std::vector<Sums> sums_;  // by layer and site
};

/// Runs `documents` (token ids, each at most the model's context) and returns the sums, with one chunk a
/// document; `source` names the texts in the file. Errors: kBadInput for fewer than kLeastCalibrationTokens
/// tokens in all, and as above; kCancelled.
formats::Imatrix collect_importance(engine::Engine& engine,
                                    std::span<const std::vector<engine::TokenId>> documents,
                                    const std::string& source, ProgressSink& progress);

}  // namespace wring::quantize
