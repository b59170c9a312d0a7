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
  std::size_t steps() const { return steps_.size(); }
  /// All steps over `text`; bytes that are not UTF-8 pass unchanged. An empty text stays empty. Errors:
  /// kBadInput for steps that swell a text beyond use, or a regex that needs too many steps.
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

/// From the "normalizer" of a tokenizer.json; null has no steps. Errors: kNotSupported naming the type.
Normalizer parse_normalizer(const nlohmann::json& definition, std::string_view where);

}  // namespace wring::text
