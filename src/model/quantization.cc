// Sources: compressed-tensors' quant_args.py and quant_config.py, the quantization documents of transformers
// (fp8, fbgemm_fp8, gptq, awq, mxfp4) and ModelOpt's unified checkpoint.
#include "model/quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/json.h"
#include "model/config_checks.h"
#include "model/config_parts_hf.h"

namespace wring::model {
namespace {

using formats::json_bool_or;
using formats::json_int;
using formats::json_int_or;
using formats::json_string_or;
using nlohmann::json;

[[noreturn]] void refuse(const std::string& what, const std::string& where, const std::string& supported) {
  throw Error(ErrorCode::kNotSupported, what, where, "supported: " + supported);
}

const json& object_in(const json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found != object.end() && found->is_object()) return *found;
  throw Error(ErrorCode::kBadInput, fmt::format("{} is not an object", key), where);
}

/// A part that is allowed only where it says nothing.
void require_empty(const json& config, const char* key, const std::string& where) {
  if (!has_value(config, key) || config.at(key).empty()) return;
  const json& part = config.at(key);
  if (part.is_object() && part.contains("format") && part.at("format") == "dense") return;
  throw Error(ErrorCode::kNotSupported, fmt::format("{} is not supported", key), where,
              "the weights would mean something else without it");
}

void require_bits(int bits, std::initializer_list<int> supported, const std::string& where) {
  if (std::ranges::find(supported, bits) != supported.end()) return;
  refuse(fmt::format("num_bits {} is not supported", bits), where,
         fmt::format("{}", fmt::join(supported, ", ")));
}

/// A scale for so many columns; −1 or null: for the row.
std::int64_t read_group_size(const json& args, const std::string& where) {
  if (!has_value(args, "group_size")) return 0;
  const std::int64_t size = json_int(args, "group_size", -1, kMaxSize, where);
  if (size == 0) throw Error(ErrorCode::kBadInput, "group_size is 0", where);
  return std::max<std::int64_t>(size, 0);
}

/// A scale for so many rows and columns.
void read_block(const json& config, const char* key, QuantScheme& scheme, const std::string& where) {
  const json& block = config.contains(key) ? config.at(key) : json();
  if (!block.is_array() || block.size() != 2)
    throw Error(ErrorCode::kBadInput, fmt::format("{} is not a list of two sizes", key), where);
  scheme.rows_per_scale = json_int(json{{key, block[0]}}, key, 1, kMaxSize, where);
  scheme.columns_per_scale = json_int(json{{key, block[1]}}, key, 1, kMaxSize, where);
  scheme.blocks = true;
}

void read_strategy(const json& weights, QuantScheme& scheme, const std::string& where) {
  const std::int64_t group = read_group_size(weights, where);
  const char* unsaid = group > 0 ? "group" : has_value(weights, "group_size") ? "channel" : "tensor";
  const std::string strategy = json_string_or(weights, "strategy", unsaid, where);
  if (strategy == "tensor") {
    scheme.rows_per_scale = 0;
  } else if (strategy == "block") {
    read_block(weights, "block_structure", scheme, where);
  } else if (strategy == "group" || strategy == "tensor_group") {
    scheme.columns_per_scale = group;
    if (group == 0) throw Error(ErrorCode::kBadInput, "group_size is missing", where);
  } else if (strategy != "channel") {
    refuse(fmt::format("the strategy {} is not supported", printable(strategy)), where,
           "tensor, channel, group, tensor_group, block");
  }
}

std::string activations_of(const json& group, const std::string& where) {
  if (!has_value(group, "input_activations")) return {};
  const json& args = object_in(group, "input_activations", where);
  const bool is_float = json_string_or(args, "type", "int", where) == "float";
  return fmt::format("{}{}", is_float ? "FP" : "INT", json_int_or(args, "num_bits", 8, 1, 32, where));
}

QuantScheme read_group(const json& group, const std::string& format, const std::string& where) {
  const json& weights = object_in(group, "weights", where);
  const std::string place = where + ", weights";
  QuantScheme scheme;
  scheme.bits = static_cast<int>(json_int(weights, "num_bits", 0, 64, place));
  scheme.symmetric = json_bool_or(weights, "symmetric", true, place);
  const std::string type = json_string_or(weights, "type", "int", place);
  if (type != "int" && type != "float")
    refuse(fmt::format("the type {} is not supported", printable(type)), place, "int, float");
  read_strategy(weights, scheme, place);
  scheme.activations = activations_of(group, where);
  const bool is_int = type == "int";
  if (format == "pack-quantized" && is_int) {
    scheme.layout = CodeLayout::kPackQuantized;
    require_bits(scheme.bits, {4, 8}, place);
  } else if ((format == "int-quantized" || format == "naive-quantized") && is_int) {
    scheme.layout = CodeLayout::kIntQuantized;
    require_bits(scheme.bits, {8}, place);
  } else if ((format == "float-quantized" || format == "naive-quantized") && !is_int) {
    scheme.layout = CodeLayout::kFp8;
    require_bits(scheme.bits, {8}, place);
  } else if (format == "nvfp4-pack-quantized" && !is_int) {
    scheme.layout = CodeLayout::kNvfp4;
    require_bits(scheme.bits, {4}, place);
  } else if (format == "mxfp4-pack-quantized" && !is_int) {
    scheme.layout = CodeLayout::kMxfp4;
    require_bits(scheme.bits, {4}, place);
  } else {
    refuse(fmt::format("the format {} of {} weights is not supported", printable(format), type), where,
           "pack-quantized and int-quantized (int), float-quantized, nvfp4-pack-quantized and "
           "mxfp4-pack-quantized (float), naive-quantized");
  }
  if (is_int && scheme.blocks)
    refuse("the strategy block of int weights is not supported", place, "tensor, channel, group");
  const std::int64_t size = scheme.layout == CodeLayout::kNvfp4   ? 16
                            : scheme.layout == CodeLayout::kMxfp4 ? 32
                                                                  : 0;
  if (size > 0 && (scheme.rows_per_scale != 1 || scheme.columns_per_scale != size)) {
    refuse(fmt::format("the scales of {} are not for groups of {}", printable(format), size), place,
           fmt::format("group_size {}", size));
  }
  if (!is_int && !scheme.symmetric)
    refuse("symmetric false of float weights is not supported", place, "true");
  return scheme;
}

void read_compressed_tensors(const json& config, QuantizationConfig& out, const std::string& where) {
  require_empty(config, "sparsity_config", where);
  require_empty(config, "transform_config", where);
  const std::string status = json_string_or(config, "quantization_status", "compressed", where);
  if (status != "compressed" &&
      status != "frozen")  // of older checkpoints; their tensors are compressed, too
    refuse(fmt::format("quantization_status {} is not supported", printable(status)), where,
           "compressed, frozen");
  const std::string format = json_string_or(config, "format", "", where);
  for (const auto& [name, group] : object_in(config, "config_groups", where).items()) {
    const std::string place = fmt::format("{}, config_groups, {}", where, printable(name));
    if (!group.is_object()) throw Error(ErrorCode::kBadInput, "an object is expected", place);
    QuantizationConfig::Group read;
    if (!has_value(group, "targets") || !group.at("targets").is_array())
      throw Error(ErrorCode::kBadInput, "targets is not a list", place);
    for (const json& target : group.at("targets")) {
      if (!target.is_string()) throw Error(ErrorCode::kBadInput, "a target is not a string", place);
      read.targets.emplace_back(target.get<std::string>(), place + ", targets");
    }
    read.scheme = read_group(group, json_string_or(group, "format", format, place), place);
    out.groups.push_back(std::move(read));
  }
}

QuantScheme read_fp8(const json& config, const std::string& where) {
  QuantScheme scheme;
  const std::string format = json_string_or(config, "fmt", "e4m3", where);
  if (format != "e4m3" && format != "float8_e4m3fn")
    refuse(fmt::format("fmt {} is not supported", printable(format)), where, "e4m3");
  scheme.activations = "FP8";
  scheme.layout = CodeLayout::kFp8;
  scheme.rows_per_scale = 0;
  if (has_value(config, "weight_block_size")) read_block(config, "weight_block_size", scheme, where);
  return scheme;
}

/// `config`: quantization_config, or "quantization" of hf_quant_config.json.
QuantScheme read_modelopt(const json& config, const std::string& where) {
  QuantScheme scheme;
  const std::string algorithm = json_string_or(config, "quant_algo", "", where);
  if (algorithm == "NVFP4") {
    scheme.layout = CodeLayout::kNvfp4ModelOpt;
    scheme.bits = 4;
    scheme.columns_per_scale = json_int_or(config, "group_size", 16, 1, kMaxSize, where);
    scheme.activations = "FP4";
  } else if (algorithm == "FP8") {
    scheme.layout = CodeLayout::kFp8;
    scheme.rows_per_scale = 0;
    scheme.activations = "FP8";
  } else {
    refuse(fmt::format("quant_algo \"{}\" is not supported", printable(algorithm)), where, "NVFP4, FP8");
  }
  return scheme;
}

/// GPTQModel's "dynamic": "-:pattern" leaves maps unquantized, which their tensors show; others change the
/// scheme.
void refuse_overrides(const json& config, const std::string& where) {
  if (!has_value(config, "dynamic")) return;
  for (const auto& [pattern, changes] : object_in(config, "dynamic", where).items()) {
    if (!pattern.starts_with("-:"))
      refuse(fmt::format("dynamic {} is not supported", printable(pattern)), where,
             "patterns that begin with -:");
  }
}

QuantScheme read_gptq(const json& config, const std::string& where) {
  QuantScheme scheme;
  scheme.layout = CodeLayout::kGptq;
  scheme.bits = static_cast<int>(json_int(config, "bits", 0, 64, where));
  require_bits(scheme.bits, {2, 4, 8}, where + ", bits");
  scheme.columns_per_scale = read_group_size(config, where);
  scheme.symmetric = json_bool_or(config, "sym", true, where);
  const std::string form = json_string_or(config, "checkpoint_format", "gptq", where);
  if (form != "gptq" && form != "gptq_v2")
    refuse(fmt::format("checkpoint_format {} is not supported", printable(form)), where, "gptq, gptq_v2");
  scheme.zeros_less_one = form == "gptq";
  refuse_overrides(config, where);
  return scheme;
}

QuantScheme read_awq(const json& config, const std::string& where) {
  QuantScheme scheme;
  scheme.layout = CodeLayout::kAwq;
  scheme.bits =
      static_cast<int>(json_int(config, has_value(config, "bits") ? "bits" : "w_bit", 0, 64, where));
  require_bits(scheme.bits, {4}, where + ", bits");
  const bool renamed = !has_value(config, "group_size") && has_value(config, "q_group_size");
  scheme.columns_per_scale = renamed ? read_group_size(json{{"group_size", config.at("q_group_size")}}, where)
                                     : read_group_size(config, where);
  scheme.symmetric = false;
  if (!json_bool_or(config, "zero_point", true, where))
    refuse("zero_point false is not supported", where, "true");
  const std::string version = json_string_or(config, "version", "gemm", where);
  if (version != "gemm" && version != "GEMM")
    refuse(fmt::format("version {} is not supported", printable(version)), where, "gemm");
  return scheme;
}

QuantScheme fbgemm_fp8() {
  QuantScheme scheme;
  scheme.layout = CodeLayout::kFp8;
  scheme.activations = "FP8";
  return scheme;  // a scale a row
}

std::string spread(const QuantScheme& s) {
  if (s.blocks) return fmt::format("{}x{}", s.rows_per_scale, s.columns_per_scale);
  if (s.rows_per_scale == 0) return "tensor";
  return s.columns_per_scale == 0 ? "channel" : fmt::format("g{}", s.columns_per_scale);
}

}  // namespace

std::string QuantScheme::name() const {
  std::string text;
  switch (layout) {
    case CodeLayout::kFp8:
      text = "FP8 " + spread(*this);
      break;
    case CodeLayout::kNvfp4:
    case CodeLayout::kNvfp4ModelOpt:
      text = "NVFP4";
      break;
    case CodeLayout::kMxfp4:
      text = "MXFP4";
      break;
    default:
      text = fmt::format("INT{} {}{}", bits, spread(*this), symmetric ? "" : " asymmetric");
  }
  return activations.empty() ? text : fmt::format("{} ({} activations)", text, activations);
}

const QuantScheme& QuantizationConfig::scheme_of(std::string_view module) const {
  // A whole name says more than an expression, and that more than the class of all linear maps.
  for (const auto kind :
       {NamePattern::Kind::kName, NamePattern::Kind::kExpression, NamePattern::Kind::kClass}) {
    for (const Group& group : groups) {
      const auto matches = [&](const NamePattern& p) { return p.kind() == kind && p.matches(module); };
      if (std::ranges::any_of(group.targets, matches)) return group.scheme;
    }
  }
  if (groups.size() == 1 && groups.front().of_all) return groups.front().scheme;
  throw Error(ErrorCode::kBadInput,
              fmt::format("{} is stored quantized, but no target of quantization_config has it", module));
}

std::string QuantizationConfig::activations() const {
  for (const Group& group : groups) {
    if (!group.scheme.activations.empty()) return group.scheme.activations;
  }
  return {};
}

QuantizationConfig read_hf_quant_config(const std::filesystem::path& file) {
  const std::string where = file.string();
  const json whole = formats::read_json_file(file, std::size_t{16} << 20);
  if (!whole.is_object()) throw Error(ErrorCode::kBadInput, "an object is expected", where);
  return {"modelopt", {{{}, read_modelopt(object_in(whole, "quantization", where), where), true}}};
}

QuantizationConfig read_quantization(const json& config, const std::string& where) {
  if (!config.is_object()) throw Error(ErrorCode::kBadInput, "an object is expected", where);
  QuantizationConfig out;
  require_value(config, "quant_method", where);
  out.method = json_string_or(config, "quant_method", "", where);
  if (out.method == "compressed-tensors") {
    read_compressed_tensors(config, out, where);
  } else if (out.method == "fp8") {
    out.groups.push_back({{}, read_fp8(config, where), true});
  } else if (out.method == "fbgemm_fp8") {
    out.groups.push_back({{}, fbgemm_fp8(), true});
  } else if (out.method == "modelopt" || out.method == "modelopt_fp4") {
    out.groups.push_back({{}, read_modelopt(config, where), true});
  } else if (out.method == "gptq") {
    out.groups.push_back({{}, read_gptq(config, where), true});
  } else if (out.method == "awq") {
    out.groups.push_back({{}, read_awq(config, where), true});
  } else if (out.method != "mxfp4") {  // gpt_oss' experts, which are known by their tensors
    refuse(fmt::format("quant_method {} is not supported", formats::shown(config.at("quant_method"))), where,
           "compressed-tensors, fp8, fbgemm_fp8, modelopt, gptq, awq, mxfp4");
  }
  return out;
}

}  // namespace wring::model
