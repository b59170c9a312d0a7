// How packed mode lays quantized weights out in memory: groups of 16 rows, interleaved so that one vector
// holds four neighbouring columns of each of its rows (what a multiply-add of bytes into 32 bits takes). The
// same bits as the file's blocks (formats/block_layouts.h), moved: a group takes exactly what its 16 rows
// take in the file. A group is a list of one of these structs, in the order of columns; "step s" means
// columns 4 s … 4 s + 3, stored as [row][column]. This header includes nothing but integer types, since the
// kernels of every CPU level read it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wring::kernels {

inline constexpr int kGroupRows = 16;
inline constexpr int kStepBytes = 4 * kGroupRows;

/// 256 columns of Q4_K: w = d·scale·q − dmin·min for each 32 columns.
struct GroupQ4_K {
  std::uint16_t d[16], dmin[16];  // float16
  std::uint8_t low[8][16];  // [32 columns][row]: bits 0…3 of the scale (low half), of the min (high half)
  std::uint8_t high[4]
                   [16];  // bits 4, 5 of scale and min of columns 32 i … (low half), 32 (i + 4) … (high half)
  std::uint8_t qs[32][kStepBytes];  // low halves: step 2i; high halves: step 2i + 1
};
static_assert(sizeof(GroupQ4_K) == 16 * 144);

/// 256 columns of Q6_K: w = d·scale·(q − 32) for each 16 columns.
struct GroupQ6_K {
  std::uint16_t d[16];
  std::int8_t scales[16][16];       // [16 columns][row]
  std::uint8_t ql[32][kStepBytes];  // bits 0…3, as in Q4_K
  std::uint8_t qh[16][kStepBytes];  // bits 2j, 2j + 1: bits 4, 5 of step 4i + j
};
static_assert(sizeof(GroupQ6_K) == 16 * 210);

/// 32 columns of Q8_0: w = d·q.
struct GroupQ8_0 {
  std::uint16_t d[16];
  std::int8_t qs[8][kStepBytes];
};
static_assert(sizeof(GroupQ8_0) == 16 * 34);

}  // namespace wring::kernels
