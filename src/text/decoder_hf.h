// "decoder" of tokenizer.json: how token texts become the text that they stand for.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "text/vocabulary.h"

namespace wring::text {

struct Decoder {
  TokenCoding coding;
  bool strips_leading_blank = false;  // of a whole decoded text
};

/// Errors: kNotSupported naming the type, or the order of a Sequence.
Decoder parse_decoder(const nlohmann::json& definition, std::string_view where);

}  // namespace wring::text
