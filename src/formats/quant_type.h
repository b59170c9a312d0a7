// The element types that tensors on disk have: llama.cpp's GGUF types under llama.cpp's names and ids, and
// the safetensors dtypes that GGUF lacks. Block layouts are drawn in docs/FORMATS.md and declared in
// block_layouts.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace wring::formats {

/// Values below 1000 are the ids that GGUF files hold.
enum class QuantType : std::uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ8_1 = 9,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kQ8_K = 15,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
  kNVFP4 = 40,
  kQ1_0 = 41,
  kQ2_0 = 42,
  // safetensors only
  kU8 = 1000,
  kU16,
  kU32,
  kU64,
  kBool,
  kF8_E4M3,
  kF8_E5M2,
  kF8_E8M0,
};

struct QuantTypeInfo {
  QuantType type;
  std::string_view name;      // GGUF's name ("Q4_K") or safetensors' ("F8_E4M3")
  std::uint32_t block_size;   // weights a block; 1 for plain types
  std::uint32_t block_bytes;  // bytes a block
};

/// Every enumerator has an entry.
const QuantTypeInfo& info_of(QuantType type);
std::string_view name_of(QuantType type);

/// The type with a GGUF id; nothing for ids that were withdrawn (4, 5, 31…33, 36…38) or never given.
std::optional<QuantType> quant_type_from_gguf_id(std::uint32_t id);

/// The type with a safetensors dtype name ("BF16", "F8_E4M3", "I32"); nothing if unknown.
std::optional<QuantType> quant_type_from_dtype(std::string_view dtype);

/// Any-case name as users write it: "q4_k", "Q4_K", "bf16"; nothing if unknown.
std::optional<QuantType> quant_type_from_name(std::string_view name);

/// Whether GGUF files can hold the type.
bool is_gguf_type(QuantType type);

/// F32, F16, BF16, F64: values that need no block to be read.
bool is_plain_float(QuantType type);

/// Bytes of `rows` rows of `columns` weights. Precondition: columns % block_size == 0, and no overflow
/// (readers check both).
std::uint64_t bytes_of(QuantType type, std::uint64_t rows, std::uint64_t columns);

}  // namespace wring::formats
