// Blocks of quantized weights as GGUF files hold them, field by field. Bits inside the fields are drawn in
// docs/FORMATS.md. Layouts after ggml. This header includes nothing but integer types, since the kernels of
// every CPU level read it. `d`, `m`, `dmin` and `s` are float16 bits unless said otherwise; multi-byte fields
// are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wring::formats {

inline constexpr std::size_t kSmallBlock = 32;   // weights in a Q4_0 … Q8_0, IQ4_NL or MXFP4 block
inline constexpr std::size_t kSuperBlock = 256;  // weights in a K-quant, TQ or IQ block other than IQ4_NL

/// w = d·(q − 8), 4-bit q.
struct BlockQ4_0 {
  std::uint16_t d;
  std::uint8_t qs[16];  // low half of byte j: weight j; high half: weight j + 16
};
static_assert(sizeof(BlockQ4_0) == 18);

/// w = d·q + m, 4-bit q.
struct BlockQ4_1 {
  std::uint16_t d, m;
  std::uint8_t qs[16];  // as in Q4_0
};
static_assert(sizeof(BlockQ4_1) == 20);

/// w = d·(q − 16), 5-bit q.
struct BlockQ5_0 {
  std::uint16_t d;
  std::uint8_t qh[4];   // bit j of the 32: bit 4 of weight j
  std::uint8_t qs[16];  // bits 0…3, as in Q4_0
};
static_assert(sizeof(BlockQ5_0) == 22);

/// w = d·q + m, 5-bit q.
struct BlockQ5_1 {
  std::uint16_t d, m;
  std::uint8_t qh[4];
  std::uint8_t qs[16];
};
static_assert(sizeof(BlockQ5_1) == 24);

/// w = d·q.
struct BlockQ8_0 {
  std::uint16_t d;
  std::int8_t qs[32];
};
static_assert(sizeof(BlockQ8_0) == 34);

/// Activations only: x = d·q, and s = d·Σq.
struct BlockQ8_1 {
  std::uint16_t d, s;
  std::int8_t qs[32];
};
static_assert(sizeof(BlockQ8_1) == 36);

/// 16 groups of 16: w = d·scale·q − dmin·min, 2-bit q, 4-bit scale and min.
struct BlockQ2_K {
  std::uint8_t scales[16];  // low half: scale of the group; high half: its min
  std::uint8_t qs[64];      // byte 32·h + j, bits 2k, 2k+1: weight 128·h + 32·k + j
  std::uint16_t d, dmin;
};
static_assert(sizeof(BlockQ2_K) == 84);

/// 16 groups of 16: w = d·(scale − 32)·(q − 4), 3-bit q, 6-bit scale.
struct BlockQ3_K {
  std::uint8_t hmask[32];  // byte j, bit 4·h + k: bit 2 of weight 128·h + 32·k + j
  std::uint8_t qs[64];     // bits 0, 1, as in Q2_K
  std::uint8_t
      scales[12];  // bytes 0…7: bits 0…3 of scale g (low half) and g + 8 (high half); bytes 8…11: bits 4, 5
  std::uint16_t d;
};
static_assert(sizeof(BlockQ3_K) == 110);

/// 8 groups of 32: w = d·scale·q − dmin·min, 4-bit q, 6-bit scale and min.
struct BlockQ4_K {
  std::uint16_t d, dmin;
  std::uint8_t scales[12];  // 8 scales and 8 mins of 6 bits, packed as docs/FORMATS.md draws
  std::uint8_t qs[128];     // byte 32·h + j: low half weight 64·h + j, high half weight 64·h + 32 + j
};
static_assert(sizeof(BlockQ4_K) == 144);

/// 8 groups of 32: w = d·scale·q − dmin·min, 5-bit q.
struct BlockQ5_K {
  std::uint16_t d, dmin;
  std::uint8_t scales[12];  // as in Q4_K
  std::uint8_t qh[32];      // byte j, bit g: bit 4 of weight 32·g + j
  std::uint8_t qs[128];     // bits 0…3, as in Q4_K
};
static_assert(sizeof(BlockQ5_K) == 176);

/// 16 groups of 16: w = d·scale·(q − 32), 6-bit q, 8-bit signed scale.
struct BlockQ6_K {
  std::uint8_t ql[128];  // byte 64·h + j (j < 64): low half weight 128·h + j, high half weight 128·h + 64 + j
  std::uint8_t qh[64];  // byte 32·h + j, bits 2k, 2k+1: bits 4, 5 of weight 128·h + 32·k + j
  std::int8_t scales[16];
  std::uint16_t d;
};
static_assert(sizeof(BlockQ6_K) == 210);

/// Activations only: x = d·q; d is float32; bsums are Σq over groups of 16.
struct BlockQ8_K {
  float d;
  std::int8_t qs[256];
  std::int16_t bsums[16];
};
static_assert(sizeof(BlockQ8_K) == 292);

/// w = d·kIq4Values[q].
struct BlockIQ4_NL {
  std::uint16_t d;
  std::uint8_t qs[16];  // as in Q4_0
};
static_assert(sizeof(BlockIQ4_NL) == 18);

/// 8 groups of 32: w = d·(scale − 32)·kIq4Values[q], 6-bit scale.
struct BlockIQ4_XS {
  std::uint16_t d;
  std::uint16_t scales_h;    // bits 2g, 2g+1: bits 4, 5 of scale g
  std::uint8_t scales_l[4];  // half g of the 8: bits 0…3 of scale g
  std::uint8_t qs[128];      // byte 16·g + j: low half weight 32·g + j, high half weight 32·g + 16 + j
};
static_assert(sizeof(BlockIQ4_XS) == 136);

/// w = 2^(e − 128)·kFp4Doubled[q] (OCP Microscaling Formats 1.0; the levels are doubled, hence 128 and not
/// 127).
struct BlockMXFP4 {
  std::uint8_t e;
  std::uint8_t qs[16];  // as in Q4_0
};
static_assert(sizeof(BlockMXFP4) == 17);

/// 4 groups of 16: w = d/2·kFp4Doubled[q], d in E4M3 without a sign.
struct BlockNVFP4 {
  std::uint8_t d[4];
  std::uint8_t qs[32];  // byte 8·g + j: low half weight 16·g + j, high half weight 16·g + 8 + j
};
static_assert(sizeof(BlockNVFP4) == 36);

/// w = d·(q − 1), q in 0…2: five base-3 digits a byte, stored as ⌈256·n/243⌉, first digit highest.
struct BlockTQ1_0 {
  std::uint8_t qs[48];  // byte j < 32, digit n: weight 32·n + j; byte 32 + j, digit n: weight 160 + 16·n + j
  std::uint8_t qh[4];   // byte j, digit n < 4: weight 240 + 4·n + j
  std::uint16_t d;
};
static_assert(sizeof(BlockTQ1_0) == 54);

/// w = d·(q − 1), 2-bit q.
struct BlockTQ2_0 {
  std::uint8_t qs[64];  // as in Q2_K
  std::uint16_t d;
};
static_assert(sizeof(BlockTQ2_0) == 66);

/// w = d if the bit is set, else −d.
struct BlockQ1_0 {
  std::uint16_t d;
  std::uint8_t qs[16];  // byte j, bit k: weight 8·j + k
};
static_assert(sizeof(BlockQ1_0) == 18);

/// w = d·(q − 1), 2-bit q.
struct BlockQ2_0 {
  std::uint16_t d;
  std::uint8_t qs[16];  // byte j, bits 2k, 2k+1: weight 4·j + k
};
static_assert(sizeof(BlockQ2_0) == 18);

// The lattice types: 8 weights ("eight e": 8·e … 8·e + 7; of IQ3 4, "four f") have one code, the number of
// their pattern of levels in a list (kernels/scalar/grids.h). Signs: bit i set, weight i of the eight is
// negative. Where an eight has 7 bits of them, its last weight's makes the number of minus signs even.

/// 8 groups of 32: w = ±d·(scale + ½)/4·level, 4-bit scale, 8-bit codes.
struct BlockIQ2_XXS {
  std::uint16_t d;
  std::uint8_t qs[64];  // byte 8·g + k, k < 4: code of eight 4·g + k. The 4 bytes from 8·g + 4, as one
                        // number: bits 7k … 7k+6 signs of eight 4·g + k; bits 28…31 scale of group g
};
static_assert(sizeof(BlockIQ2_XXS) == 66);

/// 16 groups of 16: w = ±d·(scale + ½)/4·level, 4-bit scale, 9-bit codes.
struct BlockIQ2_XS {
  std::uint16_t d;
  std::uint16_t qs[32];    // number e: bits 0…8 code, bits 9…15 signs of eight e
  std::uint8_t scales[8];  // half g of the 16: scale of group g
};
static_assert(sizeof(BlockIQ2_XS) == 74);

/// 16 groups of 16: w = ±d·(scale + ½)/4·level, 4-bit scale, 10-bit codes.
struct BlockIQ2_S {
  std::uint16_t d;
  std::uint8_t qs[32];     // byte e: bits 0…7 of the code of eight e
  std::uint8_t signs[32];  // byte e: all 8 signs of eight e
  std::uint8_t qh[8];      // byte j, bits 2k, 2k+1: bits 8, 9 of the code of eight 4·j + k
  std::uint8_t scales[8];  // as in IQ2_XS
};
static_assert(sizeof(BlockIQ2_S) == 82);

/// 8 groups of 32: w = ±d·(scale + ½)/2·level, 4-bit scale, 8-bit codes.
struct BlockIQ3_XXS {
  std::uint16_t d;
  std::uint8_t qs[64];     // byte f: code of four f
  std::uint8_t signs[32];  // the 4 bytes from 4·g, as one number: signs and scale as in IQ2_XXS
};
static_assert(sizeof(BlockIQ3_XXS) == 98);

/// 8 groups of 32: w = ±d·(2·scale + 1)·level, 4-bit scale, 9-bit codes.
struct BlockIQ3_S {
  std::uint16_t d;
  std::uint8_t qs[64];     // byte f: bits 0…7 of the code of four f
  std::uint8_t qh[8];      // bit f of the 64: bit 8 of the code of four f
  std::uint8_t signs[32];  // byte e: all 8 signs of eight e
  std::uint8_t scales[4];  // half g of the 8: scale of group g
};
static_assert(sizeof(BlockIQ3_S) == 110);

/// 8 groups of 32: w = d·(2·scale + 1)·(level ± ⅛), 3-bit scale, 11-bit codes.
struct BlockIQ1_S {
  std::uint16_t d;
  std::uint8_t qs[32];  // byte e: bits 0…7 of the code of eight e
  std::uint16_t qh[8];  // number g: bits 3k … 3k+2: bits 8…10 of the code of eight 4·g + k; bits 12…14: scale
                        // of group g; bit 15: − for its ⅛
};
static_assert(sizeof(BlockIQ1_S) == 50);

/// 16 groups of 16: w = d·(2·scale + 1)·(level ± ⅛), 3-bit scale, 11-bit codes.
struct BlockIQ1_M {
  std::uint8_t qs[32];  // as in IQ1_S
  std::uint8_t qh[16];  // half e of the 32: bits 8…10 of the code of eight e, then − for its ⅛
  std::uint16_t
      scales[4];  // number j: bits 3k … 3k+2: scale of group 4·j + k; bits 12…15: bits 4j … 4j+3 of d
};
static_assert(sizeof(BlockIQ1_M) == 56);

/// The levels of IQ2_XXS, IQ2_XS and IQ2_S; of IQ3_XXS; of IQ3_S; of IQ1_S and IQ1_M.
inline constexpr std::int8_t kIq2Levels[3] = {8, 25, 43};
inline constexpr std::int8_t kIq3XxsLevels[8] = {4, 12, 20, 28, 36, 44, 52, 62};
inline constexpr std::int8_t kIq3SLevels[8] = {1, 3, 5, 7, 9, 11, 13, 15};
inline constexpr std::int8_t kIq1Levels[3] = {-1, 0, 1};

/// The 16 levels of IQ4_NL and IQ4_XS.
inline constexpr std::int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};

/// The values of FP4 (E2M1), doubled; bit 3 is the sign.
inline constexpr std::int8_t kFp4Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace wring::formats
