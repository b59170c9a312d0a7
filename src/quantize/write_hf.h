// `wring convert --to hf`: a model as a Hugging Face folder with one model.safetensors.
#pragma once

#include <filesystem>

#include "base/progress.h"
#include "base/thread_pool.h"
#include "model/model.h"
#include "quantize/plan.h"
#include "quantize/tensor_stream.h"

namespace wring::quantize {

/// Writes the folder `out` (new or empty) atomically: config.json, model.safetensors, and the tokenizer,
/// template and generation files of a folder, or those made from a GGUF's metadata. `plan`: settled,
/// make_convert_plan() with F32, F16 or BF16. Errors: kNotSupported for another type, kUsage for a folder
/// that is not empty, kIo, kCancelled; nothing is left behind then.
QuantizeReport write_hf(const model::Model& model, const QuantPlan& plan, formats::QuantType type,
                        const std::filesystem::path& out, ThreadPool& pool, ProgressSink& progress);

}  // namespace wring::quantize
