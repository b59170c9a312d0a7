// Rows of matrices that are stored as codes with scales beside them, or spread out (formats/coded_matrix.h),
// as float32. One implementation for all CPU levels: each value is one subtraction and one product.
#pragma once

#include <cstdint>

#include "formats/coded_matrix.h"

namespace wring::kernels {

/// out[0, columns): row `row`. Preconditions: every place that the layout gives lies in its data, and every
/// group has a scale. E4M3's NaN and E8M0's NaN come out as NaN.
void read_coded_row(const formats::CodedMatrix& matrix, std::int64_t row, std::int64_t columns,
                    float* out) noexcept;

}  // namespace wring::kernels
