// What a definition does to a text before it is cut into words: put it in NFC (Qwen), put a string in front
// ("▁", Llama 2), replace strings (" " by "▁", Gemma). Source: Hugging Face's tokenizers, normalizers/ (NFC,
// Prepend, Replace, Sequence).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/regex.h"

namespace wring::text {

class Normalizer {
 public:
  void add_nfc();
  void add_prepend(std::string prefix);
  /// Every match of `pattern`, from the left, becomes `content` as it stands. The string may not be empty.
  void add_replace(std::string pattern, std::string content);
  void add_replace(Regex pattern, std::string content);

  bool empty() const { return steps_.empty(); }
  /// All steps over `text`; bytes that are not UTF-8 pass unchanged. An empty text stays empty.
  std::string apply(std::string_view text, RegexSearch& search) const;
  /// The steps as text, equal for equal steps.
  std::string definition() const;

 private:
  struct Nfc {};
  struct Prepend {
    std::string prefix;
  };
  struct ReplaceString {
    std::string pattern, content;
  };
  struct ReplaceMatches {
    Regex pattern;
    std::string content;
  };
  std::vector<std::variant<Nfc, Prepend, ReplaceString, ReplaceMatches>> steps_;
};

/// `text` with every occurrence of `pattern` (not empty), from the left, as `content`.
std::string replace_string(std::string_view text, std::string_view pattern, std::string_view content);

/// From the "normalizer" of a tokenizer.json; null has no steps. Errors: kNotSupported naming the type.
Normalizer parse_normalizer(const nlohmann::json& definition, std::string_view where);

}  // namespace wring::text
