// A GGUF does not hold its pre-tokenizer's rules, only a name for them (`tokenizer.ggml.pre`, names of
// llama.cpp). The rules of the names known here are those of the tokenizer.json that the models were
// published with.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "text/pretokenizer.h"

namespace wring::text {

struct NamedPreTokenizer {
  PreTokenizer rules;
  bool nfc = false;            // the definition normalizes to NFC first
  bool ignore_merges = false;  // a word that is in the vocabulary is not merged up
  bool adds_bos = false;       // unless tokenizer.ggml.add_bos_token says otherwise
};

/// Errors: kNotSupported naming the pre-tokenizer and those that are known.
NamedPreTokenizer named_pretokenizer(std::string_view name, std::string_view where);

/// The same rules as the "pre_tokenizer" of a tokenizer.json.
nlohmann::json pretokenizer_json(std::string_view name, std::string_view where);

/// The name whose rules equal `rules` (by definition()) and `nfc`; empty if none does.
std::string_view name_of_pretokenizer(const PreTokenizer& rules, bool nfc);

}  // namespace wring::text
