// Linear maps that a checkpoint stores as codes with scales, found by their tensors and checked: the result
// reads as any other weight (formats/coded_matrix.h).
#pragma once

#include <optional>
#include <string>

#include "model/quantization.h"
#include "model/tensor_book.h"
#include "model/weights.h"

namespace wring::model {

/// The matrix (rows, columns) of the map `module`; nothing where it is not stored as codes. Errors: kBadInput
/// naming tensor, found and expected for shapes, types, a group size that does not divide the columns, groups
/// that do not exist, and a map that is stored in two forms.
std::optional<Weight> find_coded_linear(TensorBook& book, const QuantizationConfig& config,
                                        const std::string& module, std::int64_t rows, std::int64_t columns);

/// A matrix of floats as a layout: element (r, c) lies r · row_step + c · column_step elements from the front
/// of `data`.
formats::CodedMatrix plain_layout(formats::QuantType type, std::span<const std::byte> data,
                                  std::int64_t row_step, std::int64_t column_step);

/// One of `experts` matrices of E2M1 codes in the tensors `blocks` (experts, rows, columns / 32, 16) and
/// `scales` (experts, rows, columns / 32), gpt_oss's. Errors: kBadInput for other shapes or types.
Weight mxfp4_expert(TensorBook& book, const formats::TensorInfo& blocks, const std::string& scales,
                    int expert, std::int64_t experts, std::int64_t rows, std::int64_t columns);

/// The `count` rows `first`, `first + stride`, … of a coded weight.
void cut_rows(Weight& weight, std::int64_t first, std::int64_t stride, std::int64_t count);

}  // namespace wring::model
