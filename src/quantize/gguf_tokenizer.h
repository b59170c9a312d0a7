// A Hugging Face tokenizer (tokenizer.json) as the tokenizer.ggml.* keys of a GGUF. GGUF names a
// pre-tokenizer instead of holding its rules, so a byte-level definition goes over only if its rules are
// those of a name that llama.cpp knows; for SentencePiece-style ones see sentencepiece_gguf.h.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "formats/gguf.h"
#include "model/config.h"

namespace wring::quantize {

/// Adds the tokenizer of a model folder; where it has none, the tokenizer model "none", with which llama.cpp
/// takes ids only. Errors: those of Tokenizer::from_hf; kNotSupported for rules that have no name, and for
/// merges that GGUF's form cannot write; kBadInput for more tokens than the model has embedding rows. Adds
/// to `warnings` where llama.cpp will read the keys otherwise than the definition says.
void add_tokenizer_from_hf(formats::GgufWriter& writer, const std::filesystem::path& folder,
                           const model::ModelConfig& config, std::vector<std::string>& warnings);

}  // namespace wring::quantize
