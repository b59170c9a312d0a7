// Weights of an opened model, dequantized row by row in parallel, checked, put into another type and handed
// on in the order of a file. What GGUF and Hugging Face output share: the plan says in what they differ.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/thread_pool.h"
#include "model/model.h"
#include "quantize/plan.h"

namespace wring::quantize {

/// What became of one tensor.
struct TensorReport {
  PlannedTensor planned;
  double square_sum = 0;      // Σ x²
  double relative_error = 0;  // ‖x − x̂‖ / ‖x‖ over all weights; 0 for a tensor of zeros
  std::optional<double> weighted_error;  // the same with squares weighted by importance, where there is one
};

/// What became of a model.
struct QuantizeReport {
  std::vector<TensorReport> tensors;  // in the plan's order
  std::uint64_t file_bytes = 0;
  double seconds = 0;
  std::vector<std::string> warnings;  // what the user should know about the file
  /// ‖x − x̂‖ / ‖x‖ over the blocks' matrices together; the worst single tensor is found in `tensors`.
  double relative_error = 0;
  std::optional<double> weighted_error;  // block_matrix_weighted_error()
};

/// ‖x − x̂‖ / ‖x‖ over the blocks' matrices together.
double block_matrix_error(const std::vector<TensorReport>& tensors);

/// Root mean square over the blocks' matrices that have a weighted error; none where no matrix has one. Each
/// counts alike: the scale of a matrix' inputs says nothing about how much its output matters.
std::optional<double> block_matrix_weighted_error(const std::vector<TensorReport>& tensors);

/// The largest |x| of the weights that each planned tensor is made of. Errors: kBadInput for a NaN or an
/// infinity, naming tensor, position and (of quantized sources) block; kNotSupported for a source type that
/// cannot be read; kCancelled.
std::vector<float> largest_magnitudes(const model::Model& model, const QuantPlan& plan, ThreadPool& pool,
                                      ProgressSink& progress);

/// By matrix of a tensor: one value a column, or none. Empty: none at all.
using TensorImportance = std::vector<std::span<const float>>;

/// Where finished bytes go, in order.
using ByteSink = std::function<void(std::span<const std::byte>)>;

/// Puts one tensor into its planned type and form. Errors: kCancelled between chunks, and the sink's;
/// kBadInput for a value that is not finite in that form.
TensorReport stream_tensor(const model::Model& model, const PlannedTensor& planned,
                           const TensorImportance& importance, ThreadPool& pool, const ByteSink& sink,
                           ProgressSink& progress);

}  // namespace wring::quantize
