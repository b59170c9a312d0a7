// Named weights, each checked against the shape that the architecture asks for, read in place from the mapped
// files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/coded_matrix.h"
#include "formats/tensor_info.h"

namespace wring::model {

/// One weight as the file holds it: rows of the tensor's type, one after the other, or what `coded` says.
/// Rows of q and k in llama's GGUF files lie in another order; stored_row() hides that, so that a model
/// computes the same bits from either kind of file.
struct Weight {
  std::string name;                             // Hugging Face's, with ".weight" or ".bias"
  const formats::TensorInfo* tensor = nullptr;  // of several, the one with the values or codes
  std::span<const std::byte> data;  // the tensor's, or the part of it that is this weight; empty: see `coded`
  std::int64_t rows = 0;            // 1 for vectors
  std::int64_t columns = 0;
  bool vector = false;      // of one dimension
  int paired_head_dim = 0;  // > 0: stored row 2i, 2i+1 of each head is our row i, i + head_dim/2
  std::optional<formats::CodedMatrix> coded;
  std::uint64_t coded_bytes = 0;  // on disk, scales and zeros included
  std::string scheme;             // of quantized codes, for people: "INT4 g128"; else empty

  formats::QuantType type() const { return tensor->type; }
  /// "Q4_K", "BF16", or the scheme.
  std::string type_name() const;
  bool is_quantized() const { return !scheme.empty() || (!coded && !formats::is_plain_float(type())); }
  std::uint64_t bytes() const { return coded ? coded_bytes : data.size(); }
  std::uint64_t elements() const {
    return static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(columns);
  }
  std::vector<std::uint64_t> shape() const;  // outermost first
  std::int64_t stored_row(std::int64_t row) const;
  /// Of a weight that is not coded.
  std::size_t row_bytes() const { return data.size() / static_cast<std::size_t>(rows); }
  const std::byte* row_data(std::int64_t row) const {
    return data.data() + static_cast<std::size_t>(stored_row(row)) * row_bytes();
  }
};

/// Where row `row` (0 … head_dim·heads − 1, halves order) of a rotary matrix lies in a file with pairs order.
std::int64_t paired_row(std::int64_t row, int head_dim);

}  // namespace wring::model
