// Layouts: formats/block_layouts.h.
#include "quantize/matrix_grid.h"

#include <array>

#include "base/error.h"
#include "base/floats.h"
#include "formats/block_layouts.h"

namespace wring::quantize {
namespace {

using formats::QuantType;

struct Group {
  float scale, offset;
};

struct ScaleAndMin {
  int scale, min;
};

/// Group g of the 12 bytes of Q4_K and Q5_K: eight scales and eight mins of 6 bits.
ScaleAndMin scale_and_min(const std::uint8_t* s, int g) {
  if (g < 4) return {s[g] & 63, s[g + 4] & 63};
  return {(s[g + 4] & 15) | (s[g - 4] >> 6) << 4, s[g + 4] >> 4 | (s[g] >> 6) << 4};
}

template <class Block>
Group affine_group(const Block& b, int g) {
  const ScaleAndMin s = scale_and_min(b.scales, g);
  return {f16_to_float(b.d) * static_cast<float>(s.scale), f16_to_float(b.dmin) * static_cast<float>(s.min)};
}

Group group_of(const formats::BlockQ4_0& b, int) {
  return {f16_to_float(b.d), 0};
}
Group group_of(const formats::BlockQ8_0& b, int) {
  return {f16_to_float(b.d), 0};
}
Group group_of(const formats::BlockIQ4_NL& b, int) {
  return {f16_to_float(b.d), 0};
}
Group group_of(const formats::BlockQ4_K& b, int g) {
  return affine_group(b, g);
}
Group group_of(const formats::BlockQ5_K& b, int g) {
  return affine_group(b, g);
}
Group group_of(const formats::BlockQ6_K& b, int g) {
  return {f16_to_float(b.d) * static_cast<float>(b.scales[g]), 0};
}
Group group_of(const formats::BlockIQ4_XS& b, int g) {
  const int scale = (b.scales_l[g / 2] >> (g % 2 * 4) & 15) | (b.scales_h >> (2 * g) & 3) << 4;
  return {f16_to_float(b.d) * static_cast<float>(scale - 32), 0};
}

std::uint8_t two(std::uint8_t low, std::uint8_t high) {
  return static_cast<std::uint8_t>(low | high << 4);
}

/// 32 codes as 16 bytes: the first half low, the second high.
void set_halves(const std::uint8_t* codes, std::uint8_t* qs) {
  for (int j = 0; j < 16; ++j) qs[j] = two(codes[j], codes[j + 16]);
}

void set_block(const std::uint8_t* codes, formats::BlockQ4_0& b) {
  set_halves(codes, b.qs);
}
void set_block(const std::uint8_t* codes, formats::BlockIQ4_NL& b) {
  set_halves(codes, b.qs);
}
void set_block(const std::uint8_t* codes, formats::BlockQ8_0& b) {
  for (int j = 0; j < 32; ++j) b.qs[j] = static_cast<std::int8_t>(codes[j] - 128);
}
void set_block(const std::uint8_t* codes, formats::BlockIQ4_XS& b) {
  for (int g = 0; g < 8; ++g) set_halves(codes + 32 * g, b.qs + 16 * g);
}
void set_block(const std::uint8_t* codes, formats::BlockQ4_K& b) {
  for (int h = 0; h < 4; ++h) {
    for (int j = 0; j < 32; ++j) b.qs[32 * h + j] = two(codes[64 * h + j], codes[64 * h + 32 + j]);
  }
}
void set_block(const std::uint8_t* codes, formats::BlockQ5_K& b) {
  for (int j = 0; j < 32; ++j) {
    b.qh[j] = 0;
    for (int g = 0; g < 8; ++g) b.qh[j] = static_cast<std::uint8_t>(b.qh[j] | (codes[32 * g + j] >> 4) << g);
    for (int h = 0; h < 4; ++h) b.qs[32 * h + j] = two(codes[64 * h + j] & 15, codes[64 * h + 32 + j] & 15);
  }
}
void set_block(const std::uint8_t* codes, formats::BlockQ6_K& b) {
  for (int h = 0; h < 2; ++h) {
    const std::uint8_t* c = codes + 128 * h;
    for (int j = 0; j < 64; ++j) b.ql[64 * h + j] = two(c[j] & 15, c[64 + j] & 15);
    for (int j = 0; j < 32; ++j) {
      int bits = 0;
      for (int k = 0; k < 4; ++k) bits |= (c[32 * k + j] >> 4) << (2 * k);
      b.qh[32 * h + j] = static_cast<std::uint8_t>(bits);
    }
  }
}

struct GridType {
  std::size_t group;
  int levels, first;  // first … first + levels − 1, or IQ4's sixteen
};

GridType type_of(QuantType type) {
  switch (type) {
    case QuantType::kQ4_0:
      return {32, 16, -8};
    case QuantType::kQ8_0:
      return {32, 256, -128};
    case QuantType::kQ4_K:
      return {32, 16, 0};
    case QuantType::kQ5_K:
      return {32, 32, 0};
    case QuantType::kQ6_K:
      return {16, 64, -32};
    case QuantType::kIQ4_NL:
    case QuantType::kIQ4_XS:
      return {32, 16, 0};
    default:
      return {0, 0, 0};
  }
}

template <class F>
void with_block(QuantType type, F&& f) {
  switch (type) {
    case QuantType::kQ4_0:
      return f(formats::BlockQ4_0{});
    case QuantType::kQ8_0:
      return f(formats::BlockQ8_0{});
    case QuantType::kQ4_K:
      return f(formats::BlockQ4_K{});
    case QuantType::kQ5_K:
      return f(formats::BlockQ5_K{});
    case QuantType::kQ6_K:
      return f(formats::BlockQ6_K{});
    case QuantType::kIQ4_NL:
      return f(formats::BlockIQ4_NL{});
    case QuantType::kIQ4_XS:
      return f(formats::BlockIQ4_XS{});
    default:
      throw Error(ErrorCode::kInternal, "no grid for this type");
  }
}

}  // namespace

bool has_grid(QuantType type) {
  return type_of(type).group > 0;
}

MatrixGrid grid_of_blocks(QuantType type, std::span<const std::byte> blocks, std::size_t rows,
                          std::size_t columns) {
  const GridType t = type_of(type);
  MatrixGrid grid{rows, columns, t.group, {}, {}, {}};
  for (int code = 0; code < t.levels; ++code) {
    const bool iq4 = type == QuantType::kIQ4_NL || type == QuantType::kIQ4_XS;
    grid.levels.push_back(static_cast<float>(iq4 ? formats::kIq4Values[code] : t.first + code));
  }
  with_block(type, [&]<class Block>(Block) {
    const auto* first = reinterpret_cast<const Block*>(blocks.data());
    const auto groups = static_cast<int>(formats::info_of(type).block_size / t.group);
    for (std::size_t b = 0; b < blocks.size() / sizeof(Block); ++b) {
      for (int g = 0; g < groups; ++g) {
        const Group group = group_of(first[b], g);
        grid.scales.push_back(group.scale);
        grid.offsets.push_back(group.offset);
      }
    }
  });
  return grid;
}

void set_codes(QuantType type, std::span<const std::uint8_t> codes, std::span<std::byte> blocks,
               std::size_t columns) {
  const std::size_t size = formats::info_of(type).block_size;
  if (columns % size != 0 || codes.size() / size != blocks.size() / formats::info_of(type).block_bytes)
    throw Error(ErrorCode::kInternal, "codes do not fit their blocks");
  with_block(type, [&]<class Block>(Block) {
    auto* first = reinterpret_cast<Block*>(blocks.data());
    for (std::size_t b = 0; b < blocks.size() / sizeof(Block); ++b)
      set_block(codes.data() + b * size, first[b]);
  });
}

}  // namespace wring::quantize
