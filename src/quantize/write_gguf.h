// The writing end of `wring quantize` and `wring convert --to gguf`: a planned model streamed into a GGUF
// file that llama.cpp reads.
#pragma once

#include <filesystem>
#include <vector>

#include "base/progress.h"
#include "base/thread_pool.h"
#include "formats/imatrix.h"
#include "model/model.h"
#include "quantize/plan.h"
#include "quantize/tensor_stream.h"

namespace wring::quantize {

/// Writes `out` (which must end in .gguf) atomically. The plan must be settled. `imatrix`: needed if the plan
/// has importance, and must hold an entry of the right length for each of the blocks' quantized matrices.
/// Errors: kUsage and kBadInput for these, kIo, kCancelled; nothing is left behind then.
QuantizeReport write_gguf(const model::Model& model, const QuantPlan& plan, const formats::Imatrix* imatrix,
                          const std::filesystem::path& out, ThreadPool& pool, ProgressSink& progress);

}  // namespace wring::quantize
