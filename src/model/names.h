// The one table of names: Hugging Face's tensor names on one side, GGUF's on the other.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wring::model {

/// "model.layers.3.mlp.down_proj.weight" → "blk.3.ffn_down.weight" of a model type; nothing for a name that
/// the table does not have.
std::optional<std::string> gguf_name(std::string_view model_type, std::string_view hf_name);

/// The name in a folder whose text model is part of a larger one ("model.language_model.norm.weight").
std::string nested_name(std::string_view hf_name);

/// The way back.
std::optional<std::string> hf_name(std::string_view model_type, std::string_view gguf_name);

}  // namespace wring::model
