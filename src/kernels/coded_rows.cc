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
        table[code] = e4m3_to_float(static_cast<std::uint8_t>(code));
        break;
      case CodeType::kE2M1:
        table[code] = e2m1_to_float(code & 15);
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

template <class Word>
Word load(const std::byte* at) {
  Word word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

float float_at(CodeType type, const std::byte* at) {
  if (type == CodeType::kF16) return f16_to_float(load<std::uint16_t>(at));
  if (type == CodeType::kBF16) return bf16_to_float(load<std::uint16_t>(at));
  return load<float>(at);
}

int shift_of(const PackedCodes& codes, std::int64_t index) {
  const auto place = static_cast<std::size_t>(index % codes.codes_per_word());
  return codes.bits * (codes.awq_order ? kAwqPlaces[place] : static_cast<int>(place));
}

const std::byte* word_of(const PackedCodes& codes, std::int64_t row, std::int64_t column) {
  const int per_word = codes.codes_per_word();
  const std::int64_t r = codes.down_rows ? row / per_word : row;
  const std::int64_t c = codes.down_rows ? column : column / per_word;
  return codes.data.data() + r * codes.row_step + c * codes.column_step;
}

/// The code of (row, column) as a number.
float code_at(const PackedCodes& codes, std::int64_t row, std::int64_t column) {
  const std::byte* at = word_of(codes, row, column);
  if (is_float(codes.type)) return float_at(codes.type, at);
  const std::uint32_t word = codes.word_bytes == 1 ? load<std::uint8_t>(at) : load<std::uint32_t>(at);
  const std::uint32_t mask = (1U << codes.bits) - 1;
  return table_of(codes.type)[word >> shift_of(codes, codes.down_rows ? row : column) & mask];
}

/// A row whose words follow each other.
void read_along(const PackedCodes& codes, std::int64_t row, std::int64_t columns, float* out) {
  const std::byte* at = word_of(codes, row, 0);
  const CodeTable& table = table_of(codes.type);
  if (codes.bits == 8) {
    for (std::int64_t c = 0; c < columns; ++c) out[c] = table[load<std::uint8_t>(at + c)];
  } else if (codes.bits == 4) {
    for (std::int64_t c = 0; c + 1 < columns; c += 2) {
      const unsigned both = load<std::uint8_t>(at + c / 2);
      out[c] = table[both & 15];
      out[c + 1] = table[both >> 4];
    }
    if (columns % 2 != 0) out[columns - 1] = table[load<std::uint8_t>(at + columns / 2) & 15];
  } else {
    for (std::int64_t c = 0; c < columns; ++c) out[c] = code_at(codes, row, c);
  }
}

/// Rows whose neighbours in a column lie nearer than those in a row: some rows at a time, column by column.
/// read(word's place, shift) gives a value.
template <class Read>
void read_across(const PackedCodes& codes, std::int64_t first, std::int64_t row_stride, std::int64_t count,
                 std::int64_t columns, float* out, std::size_t stride, Read read) {
  constexpr std::int64_t kRows = 16;
  for (std::int64_t begin = 0; begin < count; begin += kRows) {
    const std::int64_t n = count - begin < kRows ? count - begin : kRows;
    std::array<const std::byte*, kRows> rows;
    std::array<int, kRows> shifts = {};
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t row = first + (begin + i) * row_stride;
      rows[static_cast<std::size_t>(i)] = word_of(codes, row, 0);
      if (codes.down_rows) shifts[static_cast<std::size_t>(i)] = shift_of(codes, row);
    }
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::ptrdiff_t offset = word_of(codes, first, c) - word_of(codes, first, 0);
      const int shift = codes.down_rows ? 0 : shift_of(codes, c);
      float* at = out + static_cast<std::size_t>(begin) * stride + c;
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
        at[i * stride] = read(rows[i] + offset, shifts[i] + shift);
    }
  }
}

struct Affine {
  float zero, scale;
};

Affine affine_of(const CodedMatrix& m, std::int64_t row, std::int64_t group) {
  Affine a{m.zero, 1.0F};
  if (!m.zeros.data.empty()) {
    a.zero = code_at(m.zeros, row, group);
    if (m.zeros_less_one) a.zero = a.zero == static_cast<float>((1 << m.zeros.bits) - 1) ? 0.0F : a.zero + 1;
  }
  if (!m.scales.data.empty())
    a.scale = code_at(m.scales, row / m.rows_per_scale, group) * m.scale_factor / m.scale_divisor;
  return a;
}

void apply_scales(const CodedMatrix& m, std::int64_t row, std::int64_t columns, float* out) {
  if (!m.group_of.empty()) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const Affine a = affine_of(m, row, load<std::int32_t>(m.group_of.data() + 4 * c));
      out[c] = (out[c] - a.zero) * a.scale;
    }
    return;
  }
  for (std::int64_t c = 0, g = 0; c < columns; ++g) {
    const Affine a = affine_of(m, row, g);
    const std::int64_t end = c + m.columns_per_scale < columns ? c + m.columns_per_scale : columns;
    for (; c < end; ++c) out[c] = (out[c] - a.zero) * a.scale;
  }
}

}  // namespace

void read_coded_rows(const CodedMatrix& m, std::int64_t first, std::int64_t count, std::int64_t columns,
                     float* out, std::size_t stride) noexcept {
  const PackedCodes& codes = m.codes;
  const std::int64_t begin = m.first_row + first * m.row_stride;
  const bool along = !is_float(codes.type) && !codes.down_rows && codes.column_step == codes.word_bytes;
  if (is_float(codes.type)) {
    read_across(codes, begin, m.row_stride, count, columns, out, stride,
                [&](const std::byte* at, int) { return float_at(codes.type, at); });
  } else if (!along) {
    const CodeTable& table = table_of(codes.type);
    const std::uint32_t mask = (1U << codes.bits) - 1;
    read_across(codes, begin, m.row_stride, count, columns, out, stride, [&](const std::byte* at, int shift) {
      return table[load<std::uint32_t>(at) >> shift & mask];
    });
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = begin + i * m.row_stride;
    float* values = out + static_cast<std::size_t>(i) * stride;
    if (along) read_along(codes, row, columns, values);
    if (!m.scales.data.empty()) apply_scales(m, row, columns, values);
  }
}

}  // namespace wring::kernels
