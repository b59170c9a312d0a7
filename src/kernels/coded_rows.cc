// Two passes over a row: codes to numbers, by table where a code has at most 8 bits; then zeros and scales,
// group by group. Formulas: compressed-tensors' decompression, and the layouts of AutoGPTQ and AutoAWQ
// (docs/FORMATS.md).
#include "kernels/coded_rows.h"

#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "base/floats.h"

namespace wring::kernels {
namespace {

using formats::CodedMatrix;
using formats::CodeType;
using formats::PackedCodes;

// Code i of a word of AutoAWQ's lies at this place.
constexpr std::array<int, 8> kAwqPlaces = {0, 4, 1, 5, 2, 6, 3, 7};

float from_e4m3(unsigned code) {
  const unsigned exponent = code >> 3 & 15, mantissa = code & 7;
  float magnitude = static_cast<float>(mantissa) * 0x1p-9F;
  if ((code & 0x7F) == 0x7F) {
    magnitude = std::numeric_limits<float>::quiet_NaN();
  } else if (exponent != 0) {
    magnitude = std::bit_cast<float>((exponent + 120) << 23 | mantissa << 20);
  }
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

float from_e2m1(unsigned code) {
  constexpr std::array<float, 8> kMagnitudes = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
  return (code & 8) != 0 ? -kMagnitudes[code & 7] : kMagnitudes[code & 7];
}

float from_e8m0(unsigned code) {
  if (code == 0xFF) return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>(code == 0 ? 0x00400000U : code << 23);  // 2^(code − 127)
}

/// The number of each code; those of fewer than 8 bits use the front of the table.
using CodeTable = std::array<float, 256>;

CodeTable make_table(CodeType type) {
  CodeTable table = {};
  for (unsigned code = 0; code < table.size(); ++code) {
    switch (type) {
      case CodeType::kSigned:
        table[code] = static_cast<float>(static_cast<std::int8_t>(code));
        break;
      case CodeType::kE4M3:
        table[code] = from_e4m3(code);
        break;
      case CodeType::kE2M1:
        table[code] = from_e2m1(code & 15);
        break;
      case CodeType::kE8M0:
        table[code] = from_e8m0(code);
        break;
      default:
        table[code] = static_cast<float>(code);
    }
  }
  return table;
}

const CodeTable& table_of(CodeType type) {
  static const CodeTable kUnsigned = make_table(CodeType::kUnsigned), kSigned = make_table(CodeType::kSigned),
                         kE4M3 = make_table(CodeType::kE4M3), kE2M1 = make_table(CodeType::kE2M1),
                         kE8M0 = make_table(CodeType::kE8M0);
  switch (type) {
    case CodeType::kSigned:
      return kSigned;
    case CodeType::kE4M3:
      return kE4M3;
    case CodeType::kE2M1:
      return kE2M1;
    case CodeType::kE8M0:
      return kE8M0;
    default:
      return kUnsigned;
  }
}

bool is_float(CodeType type) {
  return type == CodeType::kF16 || type == CodeType::kBF16 || type == CodeType::kF32;
}

/// A word of 1, 2 or 4 bytes, little-endian as on disk.
std::uint32_t word_at(const std::byte* at, int bytes) {
  std::uint32_t word = 0;
  std::memcpy(&word, at, static_cast<std::size_t>(bytes));
  return word;
}

float float_at(CodeType type, const std::byte* at) {
  const std::uint32_t word = word_at(at, type == CodeType::kF32 ? 4 : 2);
  if (type == CodeType::kF16) return f16_to_float(static_cast<std::uint16_t>(word));
  if (type == CodeType::kBF16) return bf16_to_float(static_cast<std::uint16_t>(word));
  return std::bit_cast<float>(word);
}

int shift_of(const PackedCodes& codes, std::int64_t index) {
  const auto place = static_cast<std::size_t>(index % codes.codes_per_word());
  return codes.bits * (codes.awq_order ? kAwqPlaces[place] : static_cast<int>(place));
}

/// The code of (row, column) as a number.
float code_at(const PackedCodes& codes, std::int64_t row, std::int64_t column) {
  const int per_word = codes.codes_per_word();
  const std::int64_t r = codes.down_rows ? row / per_word : row;
  const std::int64_t c = codes.down_rows ? column : column / per_word;
  const std::byte* at = codes.data.data() + r * codes.row_step + c * codes.column_step;
  if (is_float(codes.type)) return float_at(codes.type, at);
  const std::uint32_t word = word_at(at, codes.word_bytes);
  const std::uint32_t mask = (1U << codes.bits) - 1;
  return table_of(codes.type)[word >> shift_of(codes, codes.down_rows ? row : column) & mask];
}

void read_codes(const PackedCodes& codes, std::int64_t row, std::int64_t columns, float* out) {
  const int per_word = codes.codes_per_word();
  const std::int64_t r = codes.down_rows ? row / per_word : row;
  const std::byte* at = codes.data.data() + r * codes.row_step;
  if (is_float(codes.type)) {
    for (std::int64_t c = 0; c < columns; ++c) out[c] = float_at(codes.type, at + c * codes.column_step);
    return;
  }
  const CodeTable& table = table_of(codes.type);
  const std::uint32_t mask = (1U << codes.bits) - 1;
  if (codes.down_rows) {
    const int shift = shift_of(codes, row);
    for (std::int64_t c = 0; c < columns; ++c)
      out[c] = table[word_at(at + c * codes.column_step, codes.word_bytes) >> shift & mask];
    return;
  }
  for (std::int64_t c = 0; c < columns; at += codes.column_step) {
    std::uint32_t word = word_at(at, codes.word_bytes);
    for (int i = 0; i < per_word && c < columns; ++i, ++c) {
      out[c] = table[word & mask];
      word >>= codes.bits;
    }
  }
}

struct Affine {
  float zero, scale;
};

Affine affine_of(const CodedMatrix& m, std::int64_t row, std::int64_t group) {
  Affine a{m.zero, 1.0F};
  if (!m.zeros.data.empty()) a.zero += code_at(m.zeros, row, group);
  if (!m.scales.data.empty())
    a.scale = code_at(m.scales, row / m.rows_per_scale, group) * m.scale_factor / m.scale_divisor;
  return a;
}

}  // namespace

void read_coded_row(const CodedMatrix& m, std::int64_t row, std::int64_t columns, float* out) noexcept {
  const std::int64_t r = m.first_row + row * m.row_stride;
  read_codes(m.codes, r, columns, out);
  if (m.scales.data.empty() && m.zeros.data.empty() && m.zero == 0) return;
  if (!m.group_of.empty()) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const Affine a = affine_of(m, r, word_at(m.group_of.data() + 4 * c, 4));
      out[c] = (out[c] - a.zero) * a.scale;
    }
    return;
  }
  for (std::int64_t c = 0, g = 0; c < columns; ++g) {
    const Affine a = affine_of(m, r, g);
    const std::int64_t end = c + m.columns_per_scale < columns ? c + m.columns_per_scale : columns;
    for (; c < end; ++c) out[c] = (out[c] - a.zero) * a.scale;
  }
}

}  // namespace wring::kernels
