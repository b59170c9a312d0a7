// The values that a matrix can take once its scales are chosen: in each row and group of columns scale ·
// level − offset, the levels being those of the format. What error feedback rounds to, whatever the file's
// layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/quant_type.h"

namespace wring::quantize {

struct MatrixGrid {
  std::size_t rows = 0, columns = 0, group = 0;  // columns of a group
  std::vector<float> levels;                     // by code
  std::vector<float> scales, offsets;            // (rows, columns / group)
};

/// Whether the blocks of a GGUF type have such a form here.
bool has_grid(formats::QuantType type);

/// The grid of `rows` rows of blocks of `type`, `columns` values a row. Precondition: has_grid(type).
MatrixGrid grid_of_blocks(formats::QuantType type, std::span<const std::byte> blocks, std::size_t rows,
                          std::size_t columns);

/// Puts the codes (rows, columns) into the blocks, whose scales stay.
void set_codes(formats::QuantType type, std::span<const std::uint8_t> codes, std::span<std::byte> blocks,
               std::size_t columns);

}  // namespace wring::quantize
