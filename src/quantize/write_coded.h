// `wring quantize` into a folder: a Hugging Face folder whose matrices are codes with scales
// (compressed-tensors), which vLLM, transformers and Wring read.
#pragma once

#include <filesystem>
#include <functional>

#include "base/progress.h"
#include "base/thread_pool.h"
#include "model/model.h"
#include "quantize/largest_inputs.h"
#include "quantize/plan.h"
#include "quantize/tensor_stream.h"

namespace wring::quantize {

/// Chooses the codes of a matrix (rows · columns weights, rows one after the other) given its scales, which
/// it may change.
using CodeChooser = std::function<std::vector<std::uint8_t>(
    const PlannedTensor& planned, std::span<const float> weights, CodedScales& scales)>;

/// Writes the folder `out` (new or empty) atomically: config.json, model.safetensors, tokenizer, template,
/// generation and preprocessor files, README.md (a model card) and SHA256SUMS. Tensors of the source beside
/// its text model are copied unchanged, unless the source is quantized. One matrix at a time is in memory;
/// the folder is opened and each coded matrix read again before it takes its name. `plan`: settled, of a
/// recipe of codes; `inputs`: needed if the plan's inputs are coded; `choose`: empty for round_to_nearest().
/// Errors: kUsage for a folder that is not empty, kNotSupported for a configuration that cannot be written,
/// kIo, kCancelled; nothing is left behind then.
QuantizeReport write_coded(const model::Model& model, const QuantPlan& plan, const LargestInputs* inputs,
                           const std::filesystem::path& out, ThreadPool& pool, ProgressSink& progress,
                           const CodeChooser& choose = {});

}  // namespace wring::quantize
