// One tensor on disk: its name there, its type, its shape, and where its bytes lie in a mapped file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/quant_type.h"

namespace wring::formats {

/// No dimension of a file is as long: what is above is damage.
inline constexpr std::uint64_t kMaxDimension = std::uint64_t{1} << 48;

struct TensorInfo {
  std::string name;
  QuantType type = QuantType::kF32;
  std::vector<std::uint64_t>
      shape;  // outermost first, as in Hugging Face: a matrix is (rows, columns), columns contiguous
  std::span<const std::byte> data;  // into the mapping that the reader keeps alive
  std::string file;                 // file name, for messages

  std::uint64_t columns() const { return shape.empty() ? 1 : shape.back(); }
  std::uint64_t elements() const {
    std::uint64_t n = 1;
    for (const std::uint64_t d : shape) n *= d;  // readers have checked that this does not overflow
    return n;
  }
  std::uint64_t rows() const { return columns() == 0 ? 0 : elements() / columns(); }
};

}  // namespace wring::formats
