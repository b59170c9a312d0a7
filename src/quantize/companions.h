// What lies beside the weights in a published folder and describes text or images rather than tensors.
#pragma once

#include <filesystem>

namespace wring::quantize {

/// Copies tokenizer, template, generation and preprocessor files, those that there are. Errors: kIo.
void copy_companions(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace wring::quantize
