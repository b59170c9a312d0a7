// The rows of a planned tensor, gathered from the model's weights and put into the form of the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "model/model.h"
#include "quantize/planned_tensor.h"

namespace wring::quantize {

/// Threads may share it, between calls of prepare(). What is passed must outlive it.
class TensorReader {
 public:
  /// Errors: kNotSupported for a weight of a type that cannot be read.
  TensorReader(const model::Model& model, const PlannedTensor& planned);

  /// Makes rows first … first + count − 1 of a transposed tensor ready, which are the ones to read then.
  void prepare(std::size_t first, std::size_t count, ThreadPool& pool);

  /// out: (columns) of row `row`. `scratch` is overwritten.
  void read(std::size_t row, float* out, std::vector<float>& scratch) const;

 private:
  void read_weight_row(std::int64_t row, float* out) const;

  const model::Model* model_;
  const PlannedTensor* planned_;
  std::vector<const model::Weight*> weights_;
  std::vector<std::int64_t> ends_;  // by weight: rows up to its end
  std::vector<float> transposed_;   // (count, columns) of prepare()
  std::size_t first_ = 0;
};

}  // namespace wring::quantize
