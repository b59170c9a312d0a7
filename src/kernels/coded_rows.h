// Rows of matrices that are stored as codes with scales beside them, or spread out (formats/coded_matrix.h),
// as float32. One implementation for all CPU levels: each value is one subtraction and one product.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/coded_matrix.h"

namespace wring::kernels {

/// out[i · stride + c], c < columns: rows `first` … `first + count − 1`. Some rows at once are cheaper than
/// one by one where a word holds codes of several rows. Preconditions: every place that the layout gives lies
/// in its data, and every group has a scale. E4M3's NaN and E8M0's NaN come out as NaN.
void read_coded_rows(const formats::CodedMatrix& matrix, std::int64_t first, std::int64_t count,
                     std::int64_t columns, float* out, std::size_t stride) noexcept;

}  // namespace wring::kernels
