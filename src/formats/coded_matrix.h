// How a matrix lies on disk when it is not rows of one type, one after the other: codes with scales in
// tensors of their own, as quantized safetensors checkpoints have them, or plain values that are transposed
// or interleaved. Only the places; kernels/coded_rows.h reads the values.
//
//   value(r, c) = (code(r, c) − zero(r, g)) · scale(r, g),  g the group of column c
//
// Layouts and their sources: docs/FORMATS.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace wring::formats {

enum class CodeType : std::uint8_t { kUnsigned, kSigned, kE4M3, kE2M1, kE8M0, kF16, kBF16, kF32 };

/// A table of codes, several to a word. The word that holds code (r, c) lies row_step · r' + column_step · c'
/// bytes from the start, where r' = r and c' = c / codes_per_word(); where words go down rows, r' is divided
/// instead.
struct PackedCodes {
  std::span<const std::byte> data;  // empty: there are none
  CodeType type = CodeType::kUnsigned;
  int bits = 8;        // of a code: 2, 4, 8, 16, 32
  int word_bytes = 1;  // a word holds its codes from the lowest bits up
  bool down_rows = false;
  bool awq_order = false;  // of words of eight: code i of AutoAWQ's lies where 0, 4, 1, 5, 2, 6, 3, 7 says
  std::int64_t row_step = 0, column_step = 0;

  int codes_per_word() const { return 8 * word_bytes / bits; }
};

struct CodedMatrix {
  PackedCodes codes;
  PackedCodes zeros;                          // by row and group; none: 0
  bool zeros_less_one = false;                // a stored zero z means z + 1, and the largest 0
  float zero = 0;                             // where no zeros are stored: of all
  PackedCodes scales;                         // by row / rows_per_scale and group; none: 1. One code a word.
  float scale_factor = 1, scale_divisor = 1;  // scale · factor / divisor, rounded in that order
  std::int64_t rows_per_scale = 1, columns_per_scale = 1;
  std::span<const std::byte> group_of;         // by column, int32 each; empty: column / columns_per_scale
  std::int64_t first_row = 0, row_stride = 1;  // row i here is row first_row + i · row_stride of all this
};

}  // namespace wring::formats
