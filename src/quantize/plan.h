// The plan of a quantization, settled and shown before anything is computed: for each tensor the type that
// was asked for, the type that will be used and why they differ, sizes, and what the work will take. It needs
// the configuration only, so that a plan can be had without weights (`--dry-run`).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/quant_type.h"
#include "model/config.h"
#include "model/spec.h"
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
};

enum class TensorRole { kEmbedding, kHead, kBlockMatrix, kVector };

struct PlannedTensor {
  std::string name;  // Hugging Face's, with ".weight" or ".bias"
  TensorRole role = TensorRole::kVector;
  std::int64_t rows = 1, columns = 0;
  int rotary_head_dim =
      0;  // > 0: rows (of a vector: elements) are rotary heads, in pairs order in GGUF files
  float added_in_gguf = 0;  // to each value of a norm that multiplies by 1 + w
  formats::QuantType asked = formats::QuantType::kF32;
  formats::QuantType used = formats::QuantType::kF32;
  std::string reason;  // why used is not asked, or why asked is not the recipe's type; else empty

  std::uint64_t elements() const {
    return static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(columns);
  }
  std::vector<std::uint64_t> shape() const;  // outermost first
  std::uint64_t bytes() const;
  bool substituted() const { return asked != used; }
};

struct QuantPlan {
  std::string recipe;
  bool importance = false;  // block types are rounded under importance
  bool strict = false;
  int threads = 1;
  std::vector<PlannedTensor> tensors;  // in the order of computation
  bool settled = false;                // settle_plan() has seen the weights

  std::uint64_t payload_bytes() const;  // of all tensors
  double block_matrix_bits() const;     // bits per weight over the blocks' matrices
  double file_bits() const;             // over all tensors
  std::uint64_t working_bytes() const;  // memory beside the source's mapping, estimated
  double estimated_seconds() const;     // on `threads` threads, reading and writing included
};

/// The plan of `recipe` for a model. Errors: kUsage for a rule that matches no matrix or an option that
/// changes nothing; kNotSupported under `strict` where a type does not fit a tensor, naming the tensors.
QuantPlan make_plan(const model::ModelSpec& spec, const Recipe& recipe, const PlanOptions& options);

/// The plan of a plain conversion: every matrix in `type`; vectors F32 if `vectors_f32` (GGUF), else in
/// `type` too.
QuantPlan make_convert_plan(const model::ModelSpec& spec, formats::QuantType type, bool vectors_f32,
                            int threads);

/// Takes the weights' largest magnitudes into account (largest_magnitudes(), by plan order): a tensor that
/// float16 scales cannot hold stays in BF16. Errors: kNotSupported under strict, naming the tensors.
void settle_plan(QuantPlan& plan, std::span<const float> largest_magnitudes);

/// LLAMA_FTYPE, the number that general.file_type has for a file mostly of `type`.
std::uint32_t gguf_file_type(formats::QuantType type);

}  // namespace wring::quantize
