// Named weights, each checked against the shape that the architecture asks for, read in place from the mapped
// files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tensor_info.h"

namespace wring::model {

/// One weight as the file holds it. Rows of q and k in llama's GGUF files lie in another order; row_data()
/// hides that, so that a model computes the same bits from either kind of file.
struct Weight {
  std::string name;  // Hugging Face's, with ".weight" or ".bias"
  const formats::TensorInfo* tensor = nullptr;
  std::span<const std::byte> data;  // the tensor's, or an expert's part of a tensor that stacks experts
  std::int64_t rows = 0;            // 1 for vectors
  std::int64_t columns = 0;
  bool vector = false;      // of one dimension in the file
  int paired_head_dim = 0;  // > 0: stored row 2i, 2i+1 of each head is our row i, i + head_dim/2

  formats::QuantType type() const { return tensor->type; }
  std::size_t row_bytes() const { return data.size() / static_cast<std::size_t>(rows); }
  std::uint64_t elements() const {
    return static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(columns);
  }
  std::vector<std::uint64_t> shape() const;  // outermost first
  std::int64_t stored_row(std::int64_t row) const;
  const std::byte* row_data(std::int64_t row) const {
    return data.data() + static_cast<std::size_t>(stored_row(row)) * row_bytes();
  }
};

/// Where row `row` (0 … head_dim·heads − 1, halves order) of a rotary matrix lies in a file with pairs order.
std::int64_t paired_row(std::int64_t row, int head_dim);

}  // namespace wring::model
