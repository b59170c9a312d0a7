// A workspace of float32 rows. Rows are spaced so that neighbouring ones never start at equal offsets within
// 4 KiB: with widths that are powers of two (or three quarters of one) a column of many rows, which is what
// tiles of a matrix product write, would fall on a few sets of the caches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/aligned_buffer.h"
#include "engine/batch.h"

namespace wring::engine {

/// Floats from one row of `columns` to the next: whole cache lines, one more than needed, and an odd number
/// of them.
constexpr std::size_t spaced_stride(std::size_t columns) {
  const std::size_t lines = (columns + 15) / 16 + 1;
  return 16 * (lines | 1U);
}

class RowBuffer {
 public:
  /// Room for `rows` rows of `columns`; what was there is lost if the buffer grows.
  void reserve(std::size_t rows, std::int64_t columns) {
    columns_ = columns;
    stride_ = spaced_stride(static_cast<std::size_t>(columns));
    data_.reserve(rows * stride_);
  }

  /// Other columns, of no more floats in all than reserved; what was there is lost.
  void reshape(std::int64_t columns) {
    columns_ = columns;
    stride_ = spaced_stride(static_cast<std::size_t>(columns));
  }

  float* row(std::size_t i) { return data_.data() + i * stride_; }
  const float* row(std::size_t i) const { return data_.data() + i * stride_; }
  std::size_t stride() const { return stride_; }
  std::int64_t columns() const { return columns_; }
  std::size_t bytes() const { return data_.bytes(); }
  Rows rows(std::int64_t count) const { return {data_.data(), count, columns_, stride_}; }

 private:
  AlignedBuffer<float> data_;
  std::int64_t columns_ = 0;
  std::size_t stride_ = 0;
};

}  // namespace wring::engine
