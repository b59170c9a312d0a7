// Calibration: which input columns of each matrix matter. Documents run through the model, and for every
// linear map of the blocks the squares of its inputs are summed by column (the diagonal of the Hessian of its
// output error, up to a factor; the "importance matrix" of llama.cpp). Maps that read the same input share
// the sums.
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

namespace wring::quantize {

inline constexpr std::size_t kDocumentsPerGroup = 8;
/// Below this, columns that matter may look as if they did not.
inline constexpr std::size_t kLeastCalibrationTokens = 16;

/// The observer that sums. Between groups call merge(); it is of use alone where a caller steps the engine
/// itself.
class ImportanceCollector final : public engine::ForwardObserver {
 public:
  /// `pool`: the engine's; on_input divides the columns among its threads.
  ImportanceCollector(const model::ModelSpec& spec, ThreadPool& pool);

  void on_input(int layer, model::Site site, const engine::Rows& inputs) override;

  /// Adds the group's sums to the totals.
  void merge();

  /// The entries by GGUF weight name. Errors: kBadInput naming the matrix whose inputs were not finite.
  formats::Imatrix result() const;

 private:
  struct Sums {
    std::vector<double> group, total;  // Σ x_j²
    std::uint64_t group_tokens = 0, total_tokens = 0;
  };
  Sums& sums_of(int layer, model::Site site);

  const model::ModelSpec* spec_;
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
