// quantization_config of a compressed-tensors folder, as version 0.20 of the library writes it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "model/model.h"
#include "quantize/coded_formats.h"
#include "quantize/plan.h"

namespace wring::quantize {

/// "pack-quantized", "float-quantized", "nvfp4-pack-quantized".
std::string compression_format(CodeKind kind);

/// config.json of the folder that the plan gives: of a folder its own, nested ones whole, with
/// quantization_config; of a GGUF one made from its metadata. `ignore`: see ignored_modules(). Errors: as
/// hf_config().
nlohmann::json compressed_config(const model::Model& model, const CodedFormat& format,
                                 const std::vector<std::string>& ignore);

/// The modules that are Linear and not in codes, by their names in the folder: the head, maps that are kept,
/// and those of `copied`, tensors beside the text model.
std::vector<std::string> ignored_modules(const model::Model& model, const QuantPlan& plan,
                                         const std::vector<const formats::TensorInfo*>& copied);

/// The name of a planned tensor in the folder.
std::string folder_name(const model::Model& model, const std::string& name);

}  // namespace wring::quantize
