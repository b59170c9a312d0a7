// The writing end of `wring quantize` and `wring convert --to gguf`: a planned model streamed into a GGUF
// file that llama.cpp reads.
#pragma once

#include <filesystem>
#include <vector>

#include "base/progress.h"
#include "base/thread_pool.h"
#include "formats/imatrix.h"
#include "model/model.h"
#include "quantize/block_feedback.h"
#include "quantize/plan.h"
#include "quantize/tensor_stream.h"

namespace wring::quantize {

/// What calibration gave, as a plan needs it: importance alone, or rounding with error feedback, whose own
/// calibration then takes importance's place.
struct Calibration {
  const formats::Imatrix* imatrix = nullptr;
  BlockFeedback* feedback = nullptr;

  Calibration(const formats::Imatrix* i = nullptr, BlockFeedback* f = nullptr) : imatrix(i), feedback(f) {}
};

/// Writes `out` (which must end in .gguf) atomically. The plan must be settled. An importance matrix must
/// hold an entry of the right length for each of the blocks' quantized matrices. Errors: kUsage and kBadInput
/// for these, kIo, kCancelled; nothing is left behind then.
QuantizeReport write_gguf(const model::Model& model, const QuantPlan& plan, const Calibration& calibration,
                          const std::filesystem::path& out, ThreadPool& pool, ProgressSink& progress);

}  // namespace wring::quantize
