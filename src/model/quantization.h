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
  kFp8,            // weight (F8_E4M3), and weight_scale or weight_scale_inv, either of which multiplies
  kNvfp4,          // compressed-tensors: weight_packed, weight_scale, weight_global_scale (a divisor)
  kNvfp4ModelOpt,  // weight (U8), weight_scale, weight_scale_2 (a factor)
  kMxfp4,          // compressed-tensors: weight_packed, weight_scale (E8M0)
  kGptq,           // qweight, qzeros, scales, g_idx; codes down the columns
  kAwq,            // qweight, qzeros, scales; codes across the rows
};

struct QuantScheme {
  CodeLayout layout = CodeLayout::kPackQuantized;
  int bits = 8;
  bool symmetric = true;
  bool blocks = false;  // scales are for blocks, the last ones of which may be cut
  std::int64_t rows_per_scale = 1, columns_per_scale = 0;  // 0: all
  bool zeros_less_one = false;                             // AutoGPTQ stores them so, modulo 2^bits
  std::string activations;  // what the scheme wants of activations, for people: "FP8"; empty: nothing

  /// "INT4 g128 asymmetric", "FP8 128x128", "NVFP4 (W4A4)".
  std::string name() const;
};

struct QuantizationConfig {
  std::string method;  // quant_method; empty: the checkpoint is not quantized

  struct Group {
    std::vector<NamePattern> targets;
    QuantScheme scheme;
    bool of_all = false;  // the method has one scheme for all maps, and no targets
  };
  std::vector<Group> groups;

  /// The scheme of the linear map of this name. Errors: kBadInput naming the map where no group has it.
  const QuantScheme& scheme_of(std::string_view module) const;
  /// What the checkpoint wants of activations ("FP8"); empty: nothing.
  std::string activations() const;
};

/// Of config.json's quantization_config. Errors: kNotSupported naming the method, format, type, number of
/// bits or strategy that is not read here; kBadInput naming a field that is damaged.
QuantizationConfig read_quantization(const nlohmann::json& config, const std::string& where);

/// Of hf_quant_config.json, which older checkpoints of ModelOpt have instead. Errors: the same.
QuantizationConfig read_hf_quant_config(const std::filesystem::path& file);

}  // namespace wring::model
