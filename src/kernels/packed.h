// Packed mode: products of the stored integer codes with activations in 8-bit codes (docs/METHODS.md).
//
// The order of summation, the same on every CPU level. Codes and their integer scales are multiplied exactly:
// for each 32 columns, in rising order, dot = Σ scale · code · x_code in int32 (a scale is one of 16 or of 32
// columns; Q8_0's is 1). Q8_0, from y = +0:
//   y = fma(dot, d · x_scale, y)
// and K-quants, super-block by super-block, from y = +0:
//   a = fma(dot, x_scale, a) over its eight 32 columns, from a = +0;  y = fma(d, a, y)
//   b = fma(min, x_scale · Σ x_codes, b), from b = +0;                y = fma(−dmin, b, y), for types with
//   mins
// Every dot of a K-quant is a whole number below 2^24, so float32 arithmetic may take part in it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/quant_type.h"
#include "kernels/packed_layout.h"

namespace wring::kernels {

inline constexpr std::size_t kChunkColumns = 256;

/// 256 activations of one token: codes −127 … 127 with one float32 scale for 32. The largest of a block gets
/// code 127, 126, 125 or 124, whichever makes the block's squared error least (an eighth less than with 127
/// always). A block with a NaN or an infinity has scale NaN and codes 0; one whose scale would not be a
/// normal number is all 0.
struct alignas(64) ActivationChunk {
  std::int8_t codes[kChunkColumns];
  float scales[8];
  float sums[8];               // scale · Σ codes of the 32
  std::int16_t code_sums[16];  // Σ codes of each 16
};

/// Rows of quantized activations, (columns / 256 rounded up, tokens) chunks: the tokens of a chunk lie side
/// by side, as tiles of a product read them. Of a last chunk that is not whole the rest may be read but never
/// counts.
struct QuantizedRows {
  ActivationChunk* chunks;
  std::size_t tokens;  // of the buffer: from one chunk of a token to its next
  std::size_t columns;

  ActivationChunk* at(std::size_t chunk, std::size_t token) const { return chunks + chunk * tokens + token; }
  /// The same from token `first` on.
  QuantizedRows from(std::size_t first) const { return {chunks + first, tokens, columns}; }
};

/// Chunks that rows of `columns` take.
constexpr std::size_t chunks_of(std::size_t columns) {
  return (columns + kChunkColumns - 1) / kChunkColumns;
}

bool has_packed(formats::QuantType type);

/// Bytes of one group of 16 rows. Precondition: has_packed(type), columns a multiple of the type's block.
std::size_t packed_group_bytes(formats::QuantType type, std::size_t columns);

/// One group from 16 rows as they lie in a file, each 2-byte aligned; null rows become zeros. group: 32-byte
/// aligned.
void pack_group(formats::QuantType type, const std::byte* const (&rows)[kGroupRows], std::size_t columns,
                std::byte* group);

}  // namespace wring::kernels
