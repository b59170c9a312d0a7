// The way back from gguf_tokenizer.h: tokenizer.ggml.* of a GGUF as the tokenizer files of a Hugging Face
// folder.
#pragma once

#include <filesystem>

#include "formats/gguf.h"

namespace wring::quantize {

/// Writes tokenizer.json and tokenizer_config.json into `folder`; nothing for a GGUF without a tokenizer.
/// Errors: those of Tokenizer::from_gguf; kIo.
void write_hf_tokenizer(const formats::GgufReader& source, const std::filesystem::path& folder);

}  // namespace wring::quantize
