#include "quantize/compressed_config.h"

#include <nlohmann/json.hpp>

#include "formats/json.h"
#include "model/names.h"
#include "quantize/hf_config.h"

namespace wring::quantize {
namespace {

using nlohmann::json;

// What the folder is to be read by.
constexpr const char* kLibraryVersion = "0.20.1";
constexpr std::string_view kWeight = ".weight";

json weight_args(const CodedFormat& format) {
  json args = {{"dynamic", false}, {"group_size", nullptr}, {"symmetric", true}};
  switch (format.kind) {
    case CodeKind::kInt4:
      args.update({{"num_bits", 4}, {"type", "int"}, {"strategy", "group"}, {"group_size", format.group}});
      break;
    case CodeKind::kFp8:
      args.update({{"num_bits", 8}, {"type", "float"}, {"strategy", "channel"}});
      break;
    case CodeKind::kNvfp4:
      args.update({{"num_bits", 4},
                   {"type", "float"},
                   {"strategy", "tensor_group"},
                   {"group_size", format.group},
                   {"scale_dtype", "torch.float8_e4m3fn"}});
      break;
  }
  return args;
}

/// Null: inputs are not rounded.
json input_args(const CodedFormat& format) {
  if (format.kind == CodeKind::kFp8) {
    return {{"dynamic", true},     {"group_size", nullptr}, {"num_bits", 8},
            {"strategy", "token"}, {"symmetric", true},     {"type", "float"}};
  }
  if (!format.coded_inputs) return nullptr;
  json args = weight_args(format);
  args["dynamic"] = "local";
  args["observer"] = "static_minmax";
  return args;
}

json quantization_config(const CodedFormat& format, const std::vector<std::string>& ignore) {
  const std::string name = compression_format(format.kind);
  const json group = {{"format", name},
                      {"input_activations", input_args(format)},
                      {"output_activations", nullptr},
                      {"targets", {"Linear"}},
                      {"weights", weight_args(format)}};
  return {{"config_groups", {{"group_0", group}}},
          {"format", name},
          {"global_compression_ratio", nullptr},
          {"ignore", ignore},
          {"kv_cache_scheme", nullptr},
          {"quant_method", "compressed-tensors"},
          {"quantization_status", "compressed"},
          {"sparsity_config", json::object()},
          {"transform_config", json::object()},
          {"version", kLibraryVersion}};
}

/// Whatever it said of the source's types.
void set_bf16(json& config) {
  const bool newer = config.contains("dtype");
  config.erase("torch_dtype");
  config[newer ? "dtype" : "torch_dtype"] = torch_dtype(formats::QuantType::kBF16);
  config.erase("quantization_config");
}

}  // namespace

std::string compression_format(CodeKind kind) {
  switch (kind) {
    case CodeKind::kInt4:
      return "pack-quantized";
    case CodeKind::kFp8:
      return "float-quantized";
    case CodeKind::kNvfp4:
      return "nvfp4-pack-quantized";
  }
  return {};
}

json compressed_config(const model::Model& model, const CodedFormat& format,
                       const std::vector<std::string>& ignore) {
  json config = model.gguf() != nullptr ? hf_config(model, formats::QuantType::kBF16)
                                        : formats::read_json_file(model.path() / "config.json");
  set_bf16(config);
  if (model.config().nested_text) set_bf16(config["text_config"]);
  config["quantization_config"] = quantization_config(format, ignore);
  return config;
}

std::string folder_name(const model::Model& model, const std::string& name) {
  return model.config().nested_text ? model::nested_name(name) : name;
}

std::vector<std::string> ignored_modules(const model::Model& model, const QuantPlan& plan,
                                         const std::vector<const formats::TensorInfo*>& copied) {
  std::vector<std::string> modules = {"lm_head"};
  const auto add = [&](std::string_view name) {
    if (name.ends_with(kWeight)) modules.emplace_back(name.substr(0, name.size() - kWeight.size()));
  };
  for (const PlannedTensor& t : plan.tensors) {
    const bool linear = t.role == TensorRole::kBlockMatrix || (t.role == TensorRole::kKept && t.stacked == 0);
    if (linear && !t.codes) add(folder_name(model, t.name));
  }
  for (const formats::TensorInfo* t : copied) {
    if (t->shape.size() == 2) add(t->name);
  }
  return modules;
}

}  // namespace wring::quantize
