// Conversations to prompts: the model's chat template, then token ids with exactly one BOS where the model
// wants one.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model_files.h"

namespace wring::engine {

class Chat {
 public:
  /// `files` must outlive this. Errors: kNotSupported if the model has no template; those of
  /// ChatTemplate::parse.
  explicit Chat(const ModelFiles& files);

  /// `messages`: [{"role", "content"}, …]. Errors: the template's.
  std::string render(const nlohmann::ordered_json& messages, bool add_generation_prompt) const;

 private:
  const ModelFiles* files_;
  text::ChatTemplate template_;
};

/// Ids of a rendered prompt: special tokens are recognised, and BOS is put in front only if the model adds
/// one and the text has none.
std::vector<TokenId> encode_prompt(const text::Tokenizer& tokenizer, std::string_view text);

/// Whether that text brings the BOS that the model adds: template and tokenizer both mean to write it, which
/// is worth one warning.
bool brings_bos(const text::Tokenizer& tokenizer, std::string_view text);

/// Ids of a document: its text is plain, whatever it looks like; BOS in front if the model adds one.
std::vector<TokenId> encode_document(const text::Tokenizer& tokenizer, std::string_view text);

}  // namespace wring::engine
