// config.json and generation_config.json of a written Hugging Face folder.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "formats/quant_type.h"
#include "model/model.h"

namespace wring::quantize {

/// The configuration of `model` with weights of `type` (F32, F16 or BF16): of a folder its own config.json
/// with the new dtype (of a vision-language checkpoint the text model's), of a GGUF one made from its
/// metadata. Errors: kNotSupported for rotary divisors that no rope_type stands for.
nlohmann::json hf_config(const model::Model& model, formats::QuantType type);

/// "torch_dtype" of a type: "bfloat16".
std::string_view torch_dtype(formats::QuantType type);

}  // namespace wring::quantize
