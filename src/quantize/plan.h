// The plan of a quantization, settled and shown before anything is computed: for each tensor the type that
// was asked for, the type that will be used and why they differ, sizes, and what the work will take. It needs
// the configuration only, so that a plan can be had without weights (`--dry-run`).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/quant_type.h"
#include "model/config.h"
#include "model/spec.h"
#include "quantize/planned_tensor.h"
#include "quantize/recipe.h"

namespace wring::quantize {

/// Weights that are put into their type before they are written out and cancellation is looked at again.
inline constexpr std::uint64_t kChunkWeights = std::uint64_t{1} << 22;

/// --keep PATTERN=TYPE: matrices whose name matches get this type. `pattern` is a glob (* and ?) over Hugging
/// Face's and GGUF's name, with or without ".weight".
struct KeepRule {
  std::string pattern;
  formats::QuantType type = formats::QuantType::kBF16;
};

/// Errors: kUsage for a text that is not PATTERN=TYPE, kNotSupported for a type that is not written here.
KeepRule parse_keep_rule(std::string_view text);

struct PlanOptions {
  std::vector<KeepRule> keep;  // the last rule that matches counts
  bool deploy = false;         // embedding and head too, as llama.cpp's files of the recipe's name have them
  bool strict = false;         // a type that a tensor cannot have is an error instead of a substitution
  int threads = 1;             // for the time estimate
  std::int64_t group = 0;      // columns a scale of INT4: 32, 64 or 128; 0: the recipe's
  bool coded_inputs = false;   // NVFP4: inputs are calibrated, to be rounded too
};

struct QuantPlan {
  std::string recipe;
  bool importance = false;           // block types are rounded under importance
  bool feedback = false;             // blocks' matrices are rounded with error feedback (block_feedback.h)
  bool mixed = false;                // the recipe's matrices have several types
  std::optional<CodedFormat> codes;  // the recipe's: the plan is of a folder
  bool strict = false;
  int threads = 1;
  std::vector<PlannedTensor> tensors;  // in the order of computation
  bool settled = false;                // settle_plan() has seen the weights

  formats::QuantType main_type() const;  // of most of the weights in the blocks' matrices
  std::uint64_t matrices() const;        // the blocks', which recipes quantize; of stacks each one
  std::uint64_t matrix_weights() const;  // in them
  std::uint64_t payload_bytes() const;   // of all tensors
  double block_matrix_bits() const;      // bits per weight over the blocks' matrices
  double file_bits() const;              // over all tensors
  std::uint64_t working_bytes() const;   // memory beside the source's mapping, estimated
  std::uint64_t peak_bytes() const;      // the mapped source, taken to be BF16, and the above; no calibration
  double estimated_seconds() const;      // on `threads` threads, reading and writing included
};

/// The plan of `recipe` for a model, written as GGUF or, of recipes of codes, as a folder. Errors: kUsage for
/// a rule that matches no matrix or an option that changes nothing; kNotSupported under `strict` where a type
/// does not fit a tensor, naming the tensors, and for a folder of a model whose maps have no published names
/// of their own.
QuantPlan make_plan(const model::ModelSpec& spec, const Recipe& recipe, const PlanOptions& options);

/// The plan of a plain conversion: every matrix in `type`. Vectors and kept maps are F32 in GGUF, in `type`
/// too in a folder, whose wider tensors come first.
QuantPlan make_convert_plan(const model::ModelSpec& spec, formats::QuantType type, FileForm form,
                            int threads);

/// Takes the weights' largest magnitudes into account (largest_magnitudes(), by plan order) and keeps them: a
/// tensor that float16 scales cannot hold stays in BF16. Errors: kNotSupported under strict, naming the
/// tensors.
void settle_plan(QuantPlan& plan, std::span<const float> largest_magnitudes);

/// LLAMA_FTYPE, the number that general.file_type has for a file of this plan.
std::uint32_t gguf_file_type(const QuantPlan& plan);

}  // namespace wring::quantize
