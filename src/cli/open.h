// Opening models for a command: what the files give cause to warn of is said, once, by every command alike.
#pragma once

#include <string>
#include <vector>

#include "engine/model_files.h"

namespace wring::cli {

/// A Hugging Face folder or a .gguf file with its tokenizer and chat template. Errors: ModelFiles::open's.
engine::ModelFiles open_model_files(const std::string& path);

/// The same without the texts' side, for commands that take ids or none. Errors: Model::open's.
model::Model open_model(const std::string& path);

/// Refuses (kUsage) an output that would replace one of `inputs`, or a file that lies in an input folder.
void refuse_onto_input(const std::string& out, const std::vector<std::string>& inputs);

}  // namespace wring::cli
