// A SentencePiece-style tokenizer.json in GGUF's terms: a score for each token instead of merges, and one
// flag for the blank in front of a text.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace wring::quantize {

struct SentencePieceKeys {
  std::string model;          // tokenizer.ggml.model: "llama" (BPE) or "t5" (unigram)
  std::vector<float> scores;  // by id
  bool add_space_prefix = false;
  std::optional<std::string> warning;  // where llama.cpp's reading differs from the definition
};

/// `definition`: a tokenizer.json that Tokenizer::from_hf has accepted; `texts` and `types`
/// (formats::token_type) by id. Errors: kNotSupported for rules, or merges, that no scores and flag can say.
SentencePieceKeys sentencepiece_keys(const nlohmann::json& definition, std::span<const std::string> texts,
                                     std::span<const std::int32_t> types);

}  // namespace wring::quantize
