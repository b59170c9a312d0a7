// The table of element types. Block sizes are those of llama.cpp's GGUF types; block_layouts.h asserts that
// its structs agree.
#include "formats/quant_type.h"

#include <fmt/format.h>

#include <array>
#include <cctype>

#include "base/error.h"

namespace wring::formats {
namespace {

constexpr std::array kTypes = {
    QuantTypeInfo{QuantType::kF32, "F32", 1, 4},
    QuantTypeInfo{QuantType::kF16, "F16", 1, 2},
    QuantTypeInfo{QuantType::kQ4_0, "Q4_0", 32, 18},
    QuantTypeInfo{QuantType::kQ4_1, "Q4_1", 32, 20},
    QuantTypeInfo{QuantType::kQ5_0, "Q5_0", 32, 22},
    QuantTypeInfo{QuantType::kQ5_1, "Q5_1", 32, 24},
    QuantTypeInfo{QuantType::kQ8_0, "Q8_0", 32, 34},
    QuantTypeInfo{QuantType::kQ8_1, "Q8_1", 32, 36},
    QuantTypeInfo{QuantType::kQ2_K, "Q2_K", 256, 84},
    QuantTypeInfo{QuantType::kQ3_K, "Q3_K", 256, 110},
    QuantTypeInfo{QuantType::kQ4_K, "Q4_K", 256, 144},
    QuantTypeInfo{QuantType::kQ5_K, "Q5_K", 256, 176},
    QuantTypeInfo{QuantType::kQ6_K, "Q6_K", 256, 210},
    QuantTypeInfo{QuantType::kQ8_K, "Q8_K", 256, 292},
    QuantTypeInfo{QuantType::kIQ2_XXS, "IQ2_XXS", 256, 66},
    QuantTypeInfo{QuantType::kIQ2_XS, "IQ2_XS", 256, 74},
    QuantTypeInfo{QuantType::kIQ3_XXS, "IQ3_XXS", 256, 98},
    QuantTypeInfo{QuantType::kIQ1_S, "IQ1_S", 256, 50},
    QuantTypeInfo{QuantType::kIQ4_NL, "IQ4_NL", 32, 18},
    QuantTypeInfo{QuantType::kIQ3_S, "IQ3_S", 256, 110},
    QuantTypeInfo{QuantType::kIQ2_S, "IQ2_S", 256, 82},
    QuantTypeInfo{QuantType::kIQ4_XS, "IQ4_XS", 256, 136},
    QuantTypeInfo{QuantType::kI8, "I8", 1, 1},
    QuantTypeInfo{QuantType::kI16, "I16", 1, 2},
    QuantTypeInfo{QuantType::kI32, "I32", 1, 4},
    QuantTypeInfo{QuantType::kI64, "I64", 1, 8},
    QuantTypeInfo{QuantType::kF64, "F64", 1, 8},
    QuantTypeInfo{QuantType::kIQ1_M, "IQ1_M", 256, 56},
    QuantTypeInfo{QuantType::kBF16, "BF16", 1, 2},
    QuantTypeInfo{QuantType::kTQ1_0, "TQ1_0", 256, 54},
    QuantTypeInfo{QuantType::kTQ2_0, "TQ2_0", 256, 66},
    QuantTypeInfo{QuantType::kMXFP4, "MXFP4", 32, 17},
    QuantTypeInfo{QuantType::kNVFP4, "NVFP4", 64, 36},
    QuantTypeInfo{QuantType::kQ1_0, "Q1_0", 128, 18},
    QuantTypeInfo{QuantType::kQ2_0, "Q2_0", 64, 18},
    QuantTypeInfo{QuantType::kU8, "U8", 1, 1},
    QuantTypeInfo{QuantType::kU16, "U16", 1, 2},
    QuantTypeInfo{QuantType::kU32, "U32", 1, 4},
    QuantTypeInfo{QuantType::kU64, "U64", 1, 8},
    QuantTypeInfo{QuantType::kBool, "BOOL", 1, 1},
    QuantTypeInfo{QuantType::kF8_E4M3, "F8_E4M3", 1, 1},
    QuantTypeInfo{QuantType::kF8_E5M2, "F8_E5M2", 1, 1},
    QuantTypeInfo{QuantType::kF8_E8M0, "F8_E8M0", 1, 1},
};

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::toupper(static_cast<unsigned char>(a[i])) != std::toupper(static_cast<unsigned char>(b[i])))
      return false;
  }
  return true;
}

template <class Predicate>
std::optional<QuantType> find_type(Predicate&& wanted) {
  for (const QuantTypeInfo& info : kTypes) {
    if (wanted(info)) return info.type;
  }
  return std::nullopt;
}

}  // namespace

const QuantTypeInfo& info_of(QuantType type) {
  for (const QuantTypeInfo& info : kTypes) {
    if (info.type == type) return info;
  }
  throw Error(ErrorCode::kInternal, fmt::format("no such type: {}", static_cast<std::uint32_t>(type)));
}

std::string_view name_of(QuantType type) {
  return info_of(type).name;
}

std::optional<QuantType> quant_type_from_gguf_id(std::uint32_t id) {
  if (!is_gguf_type(static_cast<QuantType>(id))) return std::nullopt;
  return find_type([&](const QuantTypeInfo& info) { return static_cast<std::uint32_t>(info.type) == id; });
}

std::optional<QuantType> quant_type_from_dtype(std::string_view dtype) {
  return find_type([&](const QuantTypeInfo& info) { return info.block_size == 1 && info.name == dtype; });
}

std::optional<QuantType> quant_type_from_name(std::string_view name) {
  return find_type([&](const QuantTypeInfo& info) { return equal_ignoring_case(info.name, name); });
}

bool is_gguf_type(QuantType type) {
  return static_cast<std::uint32_t>(type) < static_cast<std::uint32_t>(QuantType::kU8);
}

bool is_plain_float(QuantType type) {
  return type == QuantType::kF32 || type == QuantType::kF16 || type == QuantType::kBF16 ||
         type == QuantType::kF64;
}

std::uint64_t bytes_of(QuantType type, std::uint64_t rows, std::uint64_t columns) {
  const QuantTypeInfo& info = info_of(type);
  return rows * (columns / info.block_size * info.block_bytes);
}

}  // namespace wring::formats
