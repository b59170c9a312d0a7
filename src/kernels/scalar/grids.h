// The lattices of ggml's IQ1, IQ2 and IQ3 types: lists of the patterns of levels that 8 (IQ3: 4) neighbouring
// weights may have. A block stores places in such a list. The lists are constants of the file format that no
// formula gives. But each of them rises, if a pattern is read as a number, so what is kept is which patterns
// belong to it, one bit each (grid_members.h), and the list is made from that while compiling.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace wring::kernels::scalar {

/// A pattern: for each weight, in rising bits, the place of its level among the type's levels
/// (formats/block_layouts.h). 2 bits a weight for 8 weights of 3 levels, 3 bits for 4 weights of 8 levels.
template <std::size_t kPatterns>
using Grid = std::array<std::uint16_t, kPatterns>;

extern const Grid<2048> kIq1Grid;  // IQ1_S and IQ1_M
extern const Grid<256> kIq2XxsGrid;
extern const Grid<512> kIq2XsGrid;
extern const Grid<1024> kIq2SGrid;
extern const Grid<256> kIq3XxsGrid;
extern const Grid<512> kIq3SGrid;

}  // namespace wring::kernels::scalar
