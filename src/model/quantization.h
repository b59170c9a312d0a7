// What config.json says of a checkpoint whose linear maps are already quantized (`quantization_config`): the
// layout of their tensors. Which maps are quantized is seen from the tensors themselves (coded_linear.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "model/name_pattern.h"

namespace wring::model {

/// How the codes of a map and their scales lie in tensors; the layouts are drawn in docs/FORMATS.md.
enum class CodeLayout {
  kPackQuantized,  // compressed-tensors: weight_packed, weight_scale, weight_zero_point, weight_g_idx
  kIntQuantized,   // compressed-tensors: weight (I8), weight_scale, weight_zero_point
  kFp8,            // weight (F8_E4M3) and weight_scale: compressed-tensors, ModelOpt, FBGEMM, per-tensor fp8
  kFp8Inverse,     // DeepSeek: the same with weight_scale_inv, which multiplies in spite of its name
  kNvfp4,          // compressed-tensors: weight_packed, weight_scale, weight_global_scale (a divisor)
  kNvfp4ModelOpt,  // weight (U8), weight_scale, weight_scale_2 (a factor)
  kMxfp4,          // compressed-tensors: weight_packed, weight_scale (E8M0)
  kMxfp4Experts,   // gpt_oss: experts' blocks and scales
  kGptq,           // qweight, qzeros, scales, g_idx; codes down the columns
  kAwq,            // qweight, qzeros, scales; codes across the rows
};

struct QuantScheme {
  CodeLayout layout = CodeLayout::kPackQuantized;
  int bits = 8;
  bool symmetric = true;
  std::int64_t rows_per_scale = 1, columns_per_scale = 0;  // 0: all
  float zero_offset = 0;                                   // AutoGPTQ stores zeros less 1
  std::string activations;  // what the scheme wants of activations, for people: "FP8"; empty: nothing

  /// "INT4 g128 asymmetric", "FP8 128x128", "NVFP4 (W4A4)".
  std::string name() const;
};

struct QuantizationConfig {
  std::string method;  // quant_method; empty: the checkpoint is not quantized

  struct Group {
    std::vector<NamePattern> targets;  // none: every map
    QuantScheme scheme;
  };
  std::vector<Group> groups;

  /// The scheme of the linear map of this name. Errors: kBadInput naming the map where no group has it.
  const QuantScheme& scheme_of(std::string_view module) const;
  /// What the checkpoint wants of activations ("FP8"); empty: nothing.
  std::string activations() const;
};

/// Of config.json (`config`; empty where it has none: then folder/hf_quant_config.json, as ModelOpt writes
/// it, is looked at). Errors: kNotSupported naming the method, format, type, number of bits or strategy that
/// is not read here; kBadInput naming a field that is damaged.
QuantizationConfig read_quantization(const nlohmann::json& config, const std::filesystem::path& folder,
                                     const std::string& where);

}  // namespace wring::model
