// From a file's blocks to groups of 16 interleaved rows, four columns (32 bits) at a time.
#include <cstring>

#include "formats/block_layouts.h"
#include "kernels/packed.h"
#include "kernels/scalar/dequantize.h"

namespace wring::kernels {
namespace {

using formats::QuantType;

std::uint32_t word_at(const std::uint8_t* bytes) {
  std::uint32_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

void put_word(std::uint8_t* step, int row, std::uint32_t word) {
  std::memcpy(step + 4 * row, &word, sizeof(word));
}

constexpr std::uint32_t kLowHalves = 0x0F0F0F0F;
constexpr std::uint32_t kTwoBits = 0x03030303;

// 32 bytes whose low halves are columns 0 … 31 and whose high halves are 32 columns further on, into steps
// 0 … 7 at `low` and at `high`.
void put_halves(const std::uint8_t* bytes, int row, std::uint8_t (*low)[kStepBytes],
                std::uint8_t (*high)[kStepBytes]) {
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t first = word_at(bytes + 8 * i), second = word_at(bytes + 8 * i + 4);
    put_word(low[i], row, (first & kLowHalves) | (second & kLowHalves) << 4);
    put_word(high[i], row, (first >> 4 & kLowHalves) | (second & kLowHalves << 4));
  }
}

void put(const formats::BlockQ4_K& b, int row, GroupQ4_K& group) {
  group.d[row] = b.d;
  group.dmin[row] = b.dmin;
  for (int g = 0; g < 8; ++g) {
    const scalar::ScaleMin s = scalar::scale_min(b.scales, g);
    group.low[g][row] = static_cast<std::uint8_t>((s.scale & 15) | (s.min & 15) << 4);
    std::uint8_t& high = group.high[g % 4][row];
    const int bits = s.scale >> 4 | s.min >> 4 << 2;
    high = static_cast<std::uint8_t>(g < 4 ? bits : high | bits << 4);
  }
  for (int h = 0; h < 4; ++h) put_halves(b.qs + 32 * h, row, group.qs + 8 * h, group.qs + 8 * h + 4);
}

void put(const formats::BlockQ6_K& b, int row, GroupQ6_K& group) {
  group.d[row] = b.d;
  for (int g = 0; g < 16; ++g) group.scales[g][row] = b.scales[g];
  for (int h = 0; h < 2; ++h) {
    // Bytes 0 … 31 hold columns 0 … 31 and 64 … 95 of the half block, bytes 32 … 63 the others.
    for (int j = 0; j < 2; ++j)
      put_halves(b.ql + 64 * h + 32 * j, row, group.ql + 16 * h + 4 * j, group.ql + 16 * h + 8 + 4 * j);
    for (int i = 0; i < 8; ++i) {  // 16 columns: quarter i / 2 of the half block
      std::uint32_t word = 0;
      for (int step = 0; step < 4; ++step) {
        const std::uint32_t bits = word_at(b.qh + 32 * h + 16 * (i % 2) + 4 * step) >> (i / 2 * 2) & kTwoBits;
        word |= bits << (2 * step);
      }
      put_word(group.qh[8 * h + i], row, word);
    }
  }
}

void put(const formats::BlockQ8_0& b, int row, GroupQ8_0& group) {
  group.d[row] = b.d;
  for (int step = 0; step < 8; ++step) std::memcpy(group.qs[step] + 4 * row, b.qs + 4 * step, 4);
}

template <class Block, class Group>
void pack(const std::byte* const (&rows)[kGroupRows], std::size_t count, std::byte* to) {
  auto* group = reinterpret_cast<Group*>(to);
  std::memset(to, 0, count * sizeof(Group));
  for (std::size_t i = 0; i < count; ++i) {
    for (int row = 0; row < kGroupRows; ++row) {
      if (rows[row] != nullptr) put(reinterpret_cast<const Block*>(rows[row])[i], row, group[i]);
    }
  }
}

}  // namespace

bool has_packed(QuantType type) {
  return type == QuantType::kQ4_K || type == QuantType::kQ6_K || type == QuantType::kQ8_0;
}

std::size_t packed_group_bytes(QuantType type, std::size_t columns) {
  return kGroupRows * static_cast<std::size_t>(formats::bytes_of(type, 1, columns));
}

void pack_group(QuantType type, const std::byte* const (&rows)[kGroupRows], std::size_t columns,
                std::byte* group) {
  using namespace formats;
  switch (type) {
    case QuantType::kQ4_K:
      return pack<BlockQ4_K, GroupQ4_K>(rows, columns / kSuperBlock, group);
    case QuantType::kQ6_K:
      return pack<BlockQ6_K, GroupQ6_K>(rows, columns / kSuperBlock, group);
    default:
      return pack<BlockQ8_0, GroupQ8_0>(rows, columns / kSmallBlock, group);
  }
}

}  // namespace wring::kernels
