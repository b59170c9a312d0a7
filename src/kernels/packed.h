// Packed mode: products of the stored integer codes with activations in 8-bit codes (docs/METHODS.md).
//
// The order of summation, the same on every CPU level: for each 32 columns in rising order, or each 16 where
// the type has a scale for 16, the products of codes are summed exactly in int32, dot; then
//   y = fma(dot, w_scale · x_scale, y), from y = +0;
// and where the type has a min, after each 32 columns: y = fma(−w_min, x_scale · Σ x_codes, y).
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/quant_type.h"
#include "kernels/packed_layout.h"

namespace wring::kernels {

/// Activations in codes −127 … 127 with one float32 scale for 32: (rows, columns), columns % 32 == 0, rows
/// one after the other. A block with a NaN or an infinity has scale NaN and codes 0; one whose scale would
/// not be a normal number is all 0.
struct QuantizedRows {
  std::int8_t* codes;  // (rows, columns)
  float* scales;       // (rows, columns / 32)
  float* sums;         // the same: scale · Σ codes
  std::size_t columns;

  /// The same rows from row `first` on.
  QuantizedRows from(std::size_t first) const {
    return {codes + first * columns, scales + first * (columns / 32), sums + first * (columns / 32), columns};
  }
};

bool has_packed(formats::QuantType type);

/// Bytes of one group of 16 rows. Precondition: has_packed(type), columns a multiple of the type's block.
std::size_t packed_group_bytes(formats::QuantType type, std::size_t columns);

/// One group from 16 rows as they lie in a file, each 2-byte aligned; null rows become zeros. group: 64-byte
/// aligned.
void pack_group(formats::QuantType type, const std::byte* const (&rows)[kGroupRows], std::size_t columns,
                std::byte* group);

}  // namespace wring::kernels
