// The vocabulary of a GGUF: tokenizer.ggml.tokens and .token_type.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace wring::formats {
class GgufReader;
}

namespace wring::text {

/// tokenizer.ggml.token_type by id; all normal where the file has none.
std::vector<std::int64_t> token_types(const formats::GgufReader& file);

/// `types` (formats::token_type) by id, as many as `texts`; finish() has not been called. Errors: kBadInput
/// naming token and limit for a text that is not UTF-8 or there twice, an unknown type, none or too many
/// tokens.
Vocabulary vocabulary_from_gguf(std::span<const std::string> texts, std::span<const std::int64_t> types,
                                std::string_view file);

}  // namespace wring::text
