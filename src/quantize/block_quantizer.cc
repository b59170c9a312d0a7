#include "quantize/block_quantizer.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/error.h"
#include "base/floats.h"
#include "quantize/block_codecs.h"

namespace wring::quantize {
namespace {

using formats::QuantType;

/// What a column of no importance weighs against the mean: enough to be rounded sensibly, too little to be
/// seen.
constexpr double kLeastImportance = 1e-4;

/// To a mean of 1, none below kLeastImportance; all zero becomes all equal.
std::vector<float> normalized(std::span<const float> importance) {
  double sum = 0;
  for (const float v : importance) {
    if (!(v >= 0) || !std::isfinite(v))
      throw Error(ErrorCode::kInternal, fmt::format("importance {} is not a finite number ≥ 0", v));
    sum += v;
  }
  std::vector<float> out(importance.size(), 1.0F);
  if (sum > 0) {
    const double scale = static_cast<double>(importance.size()) / sum;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double v = importance[i] * scale;
      out[i] = static_cast<float>(v > kLeastImportance ? v : kLeastImportance);
    }
  }
  return out;
}

template <class Convert>
void convert_row(const float* src, std::size_t n, std::byte* dst, Convert convert) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint16_t bits = convert(src[i]);
    std::memcpy(dst + 2 * i, &bits, sizeof bits);
  }
}

}  // namespace

bool can_quantize(QuantType type) {
  switch (type) {
    case QuantType::kF32:
    case QuantType::kF16:
    case QuantType::kBF16:
    case QuantType::kQ4_0:
    case QuantType::kQ4_1:
    case QuantType::kQ5_0:
    case QuantType::kQ5_1:
    case QuantType::kQ8_0:
    case QuantType::kQ4_K:
    case QuantType::kQ5_K:
    case QuantType::kQ6_K:
    case QuantType::kIQ4_NL:
    case QuantType::kIQ4_XS:
      return true;
    default:
      return false;
  }
}

bool uses_importance(QuantType type) {
  return can_quantize(type) && !formats::is_plain_float(type);
}

RowQuantizer::RowQuantizer(QuantType type, std::size_t columns, std::span<const float> importance)
    : type_(type), columns_(columns), row_bytes_(0) {
  const formats::QuantTypeInfo& info = formats::info_of(type);
  if (!can_quantize(type)) throw Error(ErrorCode::kInternal, fmt::format("no quantizer for {}", info.name));
  if (columns % info.block_size != 0) {
    throw Error(ErrorCode::kInternal, fmt::format("{} columns do not divide into blocks of {} ({})", columns,
                                                  info.block_size, info.name));
  }
  if (!importance.empty() && importance.size() != columns) {
    throw Error(ErrorCode::kInternal,
                fmt::format("{} importance values for {} columns", importance.size(), columns));
  }
  row_bytes_ = formats::bytes_of(type, 1, columns);
  if (!importance.empty() && uses_importance(type)) importance_ = normalized(importance);
}

void RowQuantizer::quantize(const float* src, std::byte* dst) const noexcept {
  const float* importance = importance_.empty() ? nullptr : importance_.data();
  const auto blocks = [&]<class Block>(Block* out) { quantize_blocks(src, importance, columns_, out); };
  switch (type_) {
    case QuantType::kF32:
      std::memcpy(dst, src, columns_ * sizeof(float));
      return;
    case QuantType::kF16:
      convert_row(src, columns_, dst, float_to_f16);
      return;
    case QuantType::kBF16:
      convert_row(src, columns_, dst, float_to_bf16);
      return;
    case QuantType::kQ4_0:
      blocks(reinterpret_cast<formats::BlockQ4_0*>(dst));
      return;
    case QuantType::kQ4_1:
      blocks(reinterpret_cast<formats::BlockQ4_1*>(dst));
      return;
    case QuantType::kQ5_0:
      blocks(reinterpret_cast<formats::BlockQ5_0*>(dst));
      return;
    case QuantType::kQ5_1:
      blocks(reinterpret_cast<formats::BlockQ5_1*>(dst));
      return;
    case QuantType::kQ8_0:
      blocks(reinterpret_cast<formats::BlockQ8_0*>(dst));
      return;
    case QuantType::kQ4_K:
      blocks(reinterpret_cast<formats::BlockQ4_K*>(dst));
      return;
    case QuantType::kQ5_K:
      blocks(reinterpret_cast<formats::BlockQ5_K*>(dst));
      return;
    case QuantType::kQ6_K:
      blocks(reinterpret_cast<formats::BlockQ6_K*>(dst));
      return;
    case QuantType::kIQ4_NL:
      blocks(reinterpret_cast<formats::BlockIQ4_NL*>(dst));
      return;
    case QuantType::kIQ4_XS:
      blocks(reinterpret_cast<formats::BlockIQ4_XS*>(dst));
      return;
    default:
      return;  // the constructor refused it
  }
}

}  // namespace wring::quantize
