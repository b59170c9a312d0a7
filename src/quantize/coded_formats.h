// The formats of quantized folders (compressed-tensors): a matrix as codes with scales beside them. Choosing
// scales, choosing codes and packing are apart, so that a method may put its own between them:
//
//   fit_scales → a choice of codes given the scales (round_to_nearest, or better) → pack
//
// A weight is level(code) · scale. Arithmetic and layouts are those of compressed-tensors 0.20 on BF16
// weights (docs/METHODS.md, docs/FORMATS.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "formats/quant_type.h"

namespace wring::quantize {

/// kInt4: −8 … 7, a BF16 scale a group. kFp8: E4M3, a BF16 scale a row. kNvfp4: E2M1, an E4M3 scale for 16
/// columns, divided by one float32 number of the matrix.
enum class CodeKind : std::uint8_t { kInt4, kFp8, kNvfp4 };

struct CodedFormat {
  CodeKind kind = CodeKind::kInt4;
  std::int64_t group = 0;     // columns a scale; 0: the row
  bool coded_inputs = false;  // NVFP4: inputs are rounded too (W4A4), under a number that calibration found

  bool operator==(const CodedFormat&) const = default;
  std::string name() const;  // "INT4 g128", "FP8 channel", "NVFP4"
  bool fits(std::int64_t columns) const { return group == 0 || columns % group == 0; }
  std::int64_t columns_per_scale(std::int64_t columns) const { return group == 0 ? columns : group; }
};

/// One of the tensors that a matrix becomes.
struct CodedPart {
  std::string_view name;  // behind the map's: "weight_packed"
  formats::QuantType type;
  std::vector<std::uint64_t> shape;

  std::uint64_t bytes() const;
};

/// Those of a (rows, columns) matrix, which the format fits.
std::vector<CodedPart> parts_of(const CodedFormat& format, std::int64_t rows, std::int64_t columns);

/// A value that a code can have.
struct Level {
  float value;
  std::uint8_t code;  // as pack() wants it: INT4 q + 8, else the float's bits
};

/// All of them, rising, zero once.
std::span<const Level> levels(CodeKind kind);

/// The level of a code.
float level_of(CodeKind kind, std::uint8_t code);

/// The code whose level is nearest to x; halfway: the even one. Beyond the last level: the last. x: not NaN.
std::uint8_t nearest_code(CodeKind kind, float x);

/// The scales of a matrix as they are stored, widened.
struct CodedScales {
  std::vector<float> stored;  // (rows, groups)
  float divisor = 1;          // NVFP4's global scale
  std::int64_t groups = 1;    // a row
  std::int64_t columns_per_scale = 1;

  /// What levels of this weight are multiplied by.
  float of(std::int64_t row, std::int64_t column) const {
    return stored[static_cast<std::size_t>(row * groups + column / columns_per_scale)] / divisor;
  }
};

/// NVFP4's number for inputs of this largest magnitude: 448 · 6 / largest; 1 where that is no number.
float nvfp4_global(float largest);

/// Scales by the largest magnitudes of groups: INT4 / 7.5, FP8 / 448, NVFP4 / 6 times its number. `weights`:
/// (rows, columns) finite values, the format fits; `largest`: NVFP4's, of all matrices that share a number
/// with this one. Rows are divided among the pool's threads.
CodedScales fit_scales(const CodedFormat& format, std::span<const float> weights, std::int64_t columns,
                       float largest, ThreadPool& pool);

/// INT4's scales of least Σ importance · (w − ŵ)² among those of fit_scales() times 0.4, 0.42, … 1.1.
/// `importance`: one value a column, ≥ 0. As stored: BF16.
CodedScales search_int4_scales(const CodedFormat& format, std::span<const float> weights,
                               std::int64_t columns, std::span<const float> importance, ThreadPool& pool);

/// The code nearest to each weight / scale; a quotient under a BF16 scale is rounded to BF16 first, as the
/// library does. (rows · columns) codes.
std::vector<std::uint8_t> round_to_nearest(const CodedFormat& format, std::span<const float> weights,
                                           std::int64_t columns, const CodedScales& scales, ThreadPool& pool);

/// The bytes of each of parts_of(). `input_global`: of the inputs, where they are coded.
std::vector<std::vector<std::byte>> pack(const CodedFormat& format, std::span<const std::uint8_t> codes,
                                         std::int64_t columns, const CodedScales& scales,
                                         float input_global = 1);

}  // namespace wring::quantize
