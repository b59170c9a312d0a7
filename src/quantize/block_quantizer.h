// Rows of float32 weights to rows of GGUF blocks. Each block type has a file of its own (q4_k.cc, q8_0.cc
// ...); this is the one door to them. Scales are searched for the smallest weighted squared error and
// refitted in closed form given the codes (docs/METHODS.md). The bits written depend on the values alone: not
// on CPU level or thread count.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "formats/quant_type.h"

namespace wring::quantize {

/// Scales are float16: tensors with larger magnitudes are not quantized (plan.h says what becomes of them).
inline constexpr float kLargestQuantizable = 65504.0F;

/// Whether RowQuantizer writes this type.
bool can_quantize(formats::QuantType type);

/// Whether importance changes what is written: true of the block types, false of F32, F16 and BF16.
bool uses_importance(formats::QuantType type);

/// Quantizes the rows of one matrix. Immutable once made: threads may share it.
class RowQuantizer {
 public:
  /// `columns`: weights a row, a multiple of the type's block. `importance`: empty, or one weight a column (Σ
  /// x_j² of calibration, any scale, ≥ 0, finite); columns of zero importance still get a sensible code.
  /// Errors: kInternal for a type, length or importance that breaks this.
  RowQuantizer(formats::QuantType type, std::size_t columns, std::span<const float> importance = {});

  std::size_t row_bytes() const { return row_bytes_; }

  /// src: (columns) finite values, magnitudes ≤ kLargestQuantizable for block types and F16; dst: row_bytes()
  /// bytes. noexcept.
  void quantize(const float* src, std::byte* dst) const noexcept;

 private:
  formats::QuantType type_;
  std::size_t columns_;
  std::size_t row_bytes_;
  std::vector<float> importance_;  // mean about 1, none zero; empty: none
};

}  // namespace wring::quantize
