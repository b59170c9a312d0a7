#include "engine/chat.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace wring::engine {
namespace {

text::ChatTemplate parse_template(const ModelFiles& files) {
  if (!files.chat_template_source) {
    throw Error(ErrorCode::kNotSupported, "this model has no chat template", files.model.path().string(),
                "give a plain prompt with --raw");
  }
  return text::ChatTemplate::parse(*files.chat_template_source,
                                   files.model.path().string() + ", chat template");
}

std::vector<TokenId> with_bos(const text::Tokenizer& tokenizer, std::vector<TokenId> ids) {
  const std::optional<TokenId> bos = tokenizer.bos();
  if (tokenizer.adds_bos() && bos && (ids.empty() || ids.front() != *bos)) ids.insert(ids.begin(), *bos);
  return ids;
}

}  // namespace

Chat::Chat(const ModelFiles& files) : files_(&files), template_(parse_template(files)) {}

std::string Chat::render(const nlohmann::ordered_json& messages, bool add_generation_prompt) const {
  nlohmann::ordered_json context;
  context["messages"] = messages;
  context["add_generation_prompt"] = add_generation_prompt;
  context["tools"] = nullptr;  // as Hugging Face's tokenizers set them where none are given
  context["documents"] = nullptr;
  if (files_->tokenizer) {
    const text::Tokenizer& tokenizer = *files_->tokenizer;
    if (tokenizer.bos()) context["bos_token"] = std::string(tokenizer.bytes_of(*tokenizer.bos()));
    if (tokenizer.eos()) context["eos_token"] = std::string(tokenizer.bytes_of(*tokenizer.eos()));
  }
  return template_.render(context);
}

std::vector<TokenId> encode_prompt(const text::Tokenizer& tokenizer, std::string_view text) {
  return with_bos(tokenizer, tokenizer.encode(text, text::Specials::kParse));
}

bool brings_bos(const text::Tokenizer& tokenizer, std::string_view text) {
  return tokenizer.adds_bos() && tokenizer.bos() && text.starts_with(tokenizer.bytes_of(*tokenizer.bos()));
}

std::vector<TokenId> encode_document(const text::Tokenizer& tokenizer, std::string_view text) {
  return with_bos(tokenizer, tokenizer.encode(text, text::Specials::kPlain));
}

}  // namespace wring::engine
