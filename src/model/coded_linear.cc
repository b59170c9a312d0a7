// Layouts and their sources: docs/FORMATS.md.
#include "model/coded_linear.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "base/error.h"

namespace wring::model {
namespace {

using formats::CodedMatrix;
using formats::CodeType;
using formats::PackedCodes;
using formats::QuantType;
using formats::TensorInfo;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

[[noreturn]] void refuse(const TensorInfo& tensor, const std::string& what) {
  throw Error(ErrorCode::kBadInput, what, place_of(tensor));
}

CodeType code_type(QuantType type) {
  switch (type) {
    case QuantType::kF32:
      return CodeType::kF32;
    case QuantType::kF16:
      return CodeType::kF16;
    case QuantType::kBF16:
      return CodeType::kBF16;
    case QuantType::kF8_E4M3:
      return CodeType::kE4M3;
    case QuantType::kF8_E8M0:
      return CodeType::kE8M0;
    case QuantType::kI8:
      return CodeType::kSigned;
    case QuantType::kU8:
    case QuantType::kI32:
      return CodeType::kUnsigned;
    default:
      throw Error(ErrorCode::kInternal, fmt::format("codes of type {}", formats::name_of(type)));
  }
}

void require_type(const TensorInfo& tensor, QuantType type) {
  if (tensor.type == type) return;
  refuse(tensor,
         fmt::format("dtype {} found, {} expected", formats::name_of(tensor.type), formats::name_of(type)));
}

/// One value a word, rows one after the other unless steps say otherwise.
PackedCodes values_of(const TensorInfo& tensor, CodeType type, std::int64_t row_step,
                      std::int64_t column_step) {
  const auto bytes = static_cast<std::int64_t>(formats::info_of(tensor.type).block_bytes);
  PackedCodes codes;
  codes.data = tensor.data;
  codes.type = type;
  codes.bits = static_cast<int>(8 * bytes);
  codes.word_bytes = static_cast<int>(bytes);
  codes.row_step = row_step * bytes;
  codes.column_step = column_step * bytes;
  return codes;
}

/// Several integers in each word of an I32 tensor.
PackedCodes packed_ints(const TensorInfo& tensor, int bits, bool down_rows, std::int64_t row_step,
                        std::int64_t column_step) {
  PackedCodes codes;
  codes.data = tensor.data;
  codes.bits = bits;
  codes.word_bytes = 4;
  codes.down_rows = down_rows;
  codes.row_step = 4 * row_step;
  codes.column_step = 4 * column_step;
  return codes;
}

/// Reads the tensors of one map into a layout.
class CodedLinear {
 public:
  CodedLinear(TensorBook& book, const QuantScheme& scheme, std::string module, std::int64_t rows,
              std::int64_t columns)
      : book_(&book), scheme_(&scheme), module_(std::move(module)), rows_(rows), columns_(columns) {}

  Weight read() {
    if (const std::int64_t size = scheme_->columns_per_scale; !scheme_->blocks && size > 0) {
      if (columns_ % size != 0) {
        throw Error(ErrorCode::kBadInput,
                    fmt::format("group_size {} does not divide the {} columns", size, columns_), place());
      }
    }
    matrix_.columns_per_scale = per(scheme_->columns_per_scale, columns_);
    matrix_.rows_per_scale = per(scheme_->rows_per_scale, rows_);
    groups_ = ceil_div(columns_, matrix_.columns_per_scale);
    switch (scheme_->layout) {
      case CodeLayout::kPackQuantized:
        read_pack_quantized();
        break;
      case CodeLayout::kIntQuantized:
        read_int_quantized();
        break;
      case CodeLayout::kFp8:
        read_bytes(QuantType::kF8_E4M3);
        read_scales(book_->find(module_ + ".weight_scale_inv") != nullptr ? "weight_scale_inv"
                                                                          : "weight_scale");
        break;
      case CodeLayout::kNvfp4:
        read_fp4("weight_packed", QuantType::kF8_E4M3);
        matrix_.scale_divisor = read_number("weight_global_scale");
        break;
      case CodeLayout::kNvfp4ModelOpt:
        read_fp4("weight", QuantType::kF8_E4M3);
        matrix_.scale_factor = read_number("weight_scale_2");
        break;
      case CodeLayout::kMxfp4:
        read_fp4("weight_packed", QuantType::kU8);
        break;
      case CodeLayout::kGptq:
        read_gptq();
        break;
      case CodeLayout::kAwq:
        read_awq();
        break;
    }
    Weight weight;
    weight.name = module_ + ".weight";
    weight.tensor = codes_;
    weight.rows = rows_;
    weight.columns = columns_;
    weight.coded = matrix_;
    weight.coded_bytes = bytes_;
    weight.scheme = scheme_->name();
    return weight;
  }

 private:
  std::string place() const { return fmt::format("{}, {}", book_->path().string(), module_); }

  static std::int64_t per(std::int64_t given, std::int64_t all) { return given == 0 ? all : given; }

  const TensorInfo& take(const char* part, std::initializer_list<std::int64_t> shape) {
    std::vector<std::uint64_t> expected;
    for (const std::int64_t n : shape) expected.push_back(static_cast<std::uint64_t>(n));
    const TensorInfo& tensor = book_->take(module_ + "." + part, expected);
    bytes_ += tensor.data.size();
    return tensor;
  }

  /// A tensor of one value for so many rows and columns: (⌈rows / rows_per_scale⌉, groups). One value for all
  /// may have no dimension, one a row only one.
  const TensorInfo& take_spread(const char* part) {
    const std::int64_t down = ceil_div(rows_, matrix_.rows_per_scale);
    const TensorInfo* found = book_->find(module_ + "." + part);
    const std::size_t dimensions = found == nullptr ? 2 : found->shape.size();
    if (dimensions == 0 && down * groups_ == 1) return take(part, {});
    return dimensions == 1 && groups_ == 1 ? take(part, {down}) : take(part, {down, groups_});
  }

  void read_scales(const char* part) {
    const TensorInfo& tensor = take_spread(part);
    if (tensor.type != QuantType::kF8_E8M0) require_plain_float(tensor);
    matrix_.scales = values_of(tensor, code_type(tensor.type), groups_, 1);
  }

  float read_number(const char* part) {
    const TensorInfo* found = book_->find(module_ + "." + part);
    const TensorInfo& tensor = found != nullptr && found->shape.empty() ? take(part, {}) : take(part, {1});
    require_type(tensor, QuantType::kF32);
    float value = 0;
    std::memcpy(&value, tensor.data.data(), sizeof(value));
    if (!std::isfinite(value) || value <= 0)
      refuse(tensor, fmt::format("{} is not a positive number", value));
    return value;
  }

  void read_bytes(QuantType type) {
    codes_ = &take("weight", {rows_, columns_});
    require_type(*codes_, type);
    matrix_.codes = values_of(*codes_, code_type(type), columns_, 1);
  }

  void read_fp4(const char* part, QuantType scale_type) {
    if (columns_ % 2 != 0)
      throw Error(ErrorCode::kBadInput, fmt::format("{} columns are odd", columns_), place());
    codes_ = &take(part, {rows_, columns_ / 2});
    require_type(*codes_, QuantType::kU8);
    matrix_.codes = values_of(*codes_, CodeType::kE2M1, columns_ / 2, 1);
    matrix_.codes.bits = 4;
    const TensorInfo& scales = take("weight_scale", {rows_, groups_});
    const bool powers = scale_type == QuantType::kU8;
    if (scales.type != QuantType::kF8_E8M0 || !powers) require_type(scales, scale_type);
    matrix_.scales = values_of(scales, powers ? CodeType::kE8M0 : code_type(scale_type), groups_, 1);
  }

  void read_pack_quantized() {
    const TensorInfo& shape = take("weight_shape", {2});
    if (shape.type != QuantType::kI64 && shape.type != QuantType::kI32)
      refuse(shape, fmt::format("dtype {} found, I64 expected", formats::name_of(shape.type)));
    const std::size_t size = formats::info_of(shape.type).block_bytes;
    std::int64_t says[2] = {};
    for (std::size_t i = 0; i < 2; ++i) {
      std::memcpy(&says[i], shape.data.data() + i * size, size);
      if (size == 4) says[i] = static_cast<std::int32_t>(says[i]);
    }
    if (says[0] != rows_ || says[1] != columns_) {
      refuse(shape, fmt::format("weight_shape says {} x {}, the configuration {} x {}", says[0], says[1],
                                rows_, columns_));
    }
    const int per_word = 32 / scheme_->bits;
    const std::int64_t words = ceil_div(columns_, per_word);
    codes_ = &take("weight_packed", {rows_, words});
    require_type(*codes_, QuantType::kI32);
    matrix_.codes = packed_ints(*codes_, scheme_->bits, false, words, 1);
    read_scales("weight_scale");
    if (scheme_->symmetric) {
      matrix_.zero = static_cast<float>(1 << (scheme_->bits - 1));
    } else {  // both hold the same offset
      const TensorInfo& zeros = take("weight_zero_point", {ceil_div(rows_, per_word), groups_});
      require_type(zeros, QuantType::kI32);
      matrix_.zeros = packed_ints(zeros, scheme_->bits, true, groups_, 1);
    }
    read_groups("weight_g_idx");
  }

  void read_int_quantized() {
    read_bytes(QuantType::kI8);
    read_scales("weight_scale");
    if (scheme_->symmetric) return;
    const TensorInfo& zeros = take_spread("weight_zero_point");
    require_type(zeros, QuantType::kI8);
    matrix_.zeros = values_of(zeros, CodeType::kSigned, matrix_.rows_per_scale == 1 ? groups_ : 0, 1);
  }

  /// Which group each column belongs to, where a tensor says so.
  void read_groups(const char* part) {
    if (book_->find(module_ + "." + part) == nullptr) return;
    const TensorInfo& tensor = take(part, {columns_});
    require_type(tensor, QuantType::kI32);
    bool usual = true;
    for (std::int64_t c = 0; c < columns_; ++c) {
      std::int32_t group = 0;
      std::memcpy(&group, tensor.data.data() + 4 * c, 4);
      if (group < 0 || group >= groups_) {
        refuse(tensor, fmt::format("{} at {} is {}: there are {} groups", part, c, group, groups_));
      }
      usual = usual && group == c / matrix_.columns_per_scale;
    }
    if (!usual) matrix_.group_of = tensor.data;
  }

  void read_gptq() {
    const int per_word = 32 / scheme_->bits;
    codes_ = &take("qweight", {ceil_div(columns_, per_word), rows_});
    require_type(*codes_, QuantType::kI32);
    matrix_.codes = packed_ints(*codes_, scheme_->bits, false, 1, rows_);
    const std::int64_t words = ceil_div(rows_, per_word);
    read_groups_across(words, false);
    matrix_.zeros_less_one = scheme_->zeros_less_one;
    read_groups("g_idx");
  }

  void read_awq() {
    if (rows_ % 8 != 0) {
      throw Error(ErrorCode::kBadInput, fmt::format("{} rows are no multiple of the 8 of a word", rows_),
                  place());
    }
    codes_ = &take("qweight", {columns_, rows_ / 8});
    require_type(*codes_, QuantType::kI32);
    matrix_.codes = packed_ints(*codes_, 4, true, 1, rows_ / 8);
    matrix_.codes.awq_order = true;
    read_groups_across(rows_ / 8, true);
  }

  /// Zeros and scales with the groups outermost.
  void read_groups_across(std::int64_t words, bool awq_order) {
    const TensorInfo& zeros = take("qzeros", {groups_, words});
    require_type(zeros, QuantType::kI32);
    matrix_.zeros = packed_ints(zeros, scheme_->bits, true, 1, words);
    matrix_.zeros.awq_order = awq_order;
    const TensorInfo& scales = take("scales", {groups_, rows_});
    require_plain_float(scales);
    matrix_.scales = values_of(scales, code_type(scales.type), 1, rows_);
  }

  TensorBook* book_;
  const QuantScheme* scheme_;
  std::string module_;
  std::int64_t rows_, columns_, groups_ = 1;
  CodedMatrix matrix_;
  const TensorInfo* codes_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace

std::optional<Weight> find_coded_linear(TensorBook& book, const QuantizationConfig& config,
                                        const std::string& module, std::int64_t rows, std::int64_t columns) {
  if (config.method.empty()) return std::nullopt;
  const TensorInfo* plain = book.find(module + ".weight");
  const TensorInfo* packed = book.find(module + ".weight_packed");
  if (packed == nullptr) packed = book.find(module + ".qweight");
  if (plain != nullptr && packed != nullptr) {
    throw Error(ErrorCode::kBadInput, fmt::format("{} has both a weight and a packed weight", module),
                place_of(*plain));
  }
  const bool codes = packed != nullptr || (plain != nullptr && !formats::is_plain_float(plain->type));
  if (!codes) return std::nullopt;
  const QuantScheme& scheme = with_context(book.path().string(), [&]() -> const QuantScheme& {
    return config.scheme_of(book.stored_name(module));
  });
  return CodedLinear(book, scheme, module, rows, columns).read();
}

CodedMatrix plain_layout(QuantType type, std::span<const std::byte> data, std::int64_t row_step,
                         std::int64_t column_step) {
  TensorInfo tensor;
  tensor.type = type;
  tensor.data = data;
  CodedMatrix matrix;
  matrix.codes = values_of(tensor, code_type(type), row_step, column_step);
  return matrix;
}

Weight mxfp4_expert(TensorBook& book, const TensorInfo& blocks, const std::string& scales_name, int expert,
                    std::int64_t experts, std::int64_t rows, std::int64_t columns) {
  if (columns % 32 != 0) refuse(blocks, fmt::format("{} columns do not divide into blocks of 32", columns));
  const auto e = static_cast<std::uint64_t>(experts), r = static_cast<std::uint64_t>(rows),
             b = static_cast<std::uint64_t>(columns / 32);
  book.take(blocks, std::vector<std::uint64_t>{e, r, b, 16});
  const TensorInfo& scales = book.take(scales_name, std::vector<std::uint64_t>{e, r, b});
  require_type(blocks, QuantType::kU8);
  require_type(scales, QuantType::kU8);
  CodedMatrix matrix;
  matrix.codes = values_of(blocks, CodeType::kE2M1, columns / 2, 1);
  matrix.codes.bits = 4;
  matrix.codes.data = part_of(blocks, expert, experts);
  matrix.scales = values_of(scales, CodeType::kE8M0, columns / 32, 1);
  matrix.scales.data = part_of(scales, expert, experts);
  matrix.columns_per_scale = 32;
  Weight weight;
  weight.tensor = &blocks;
  weight.rows = rows;
  weight.columns = columns;
  weight.coded_bytes = matrix.codes.data.size() + matrix.scales.data.size();
  weight.coded = matrix;
  weight.scheme = "MXFP4";
  return weight;
}

void cut_rows(Weight& weight, std::int64_t first, std::int64_t stride, std::int64_t count) {
  CodedMatrix& matrix = *weight.coded;
  matrix.first_row += first * matrix.row_stride;
  matrix.row_stride *= stride;
  weight.coded_bytes =
      weight.coded_bytes / static_cast<std::uint64_t>(weight.rows) * static_cast<std::uint64_t>(count);
  weight.rows = count;
}

}  // namespace wring::model
