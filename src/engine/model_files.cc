#include "engine/model_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace wring::engine {

ModelFiles ModelFiles::open(const std::filesystem::path& path) {
  ModelFiles files{model::Model::open(path), std::nullopt, std::nullopt};
  if (const formats::GgufReader* gguf = files.model.gguf()) {
    if (gguf->string_or("tokenizer.ggml.model", "none") != "none")
      files.tokenizer = text::Tokenizer::from_gguf(*gguf);
    files.chat_template_source = text::find_chat_template(*gguf);
  } else {
    if (std::filesystem::exists(path / "tokenizer.json")) files.tokenizer = text::Tokenizer::from_hf(path);
    files.chat_template_source = text::find_chat_template(path);
  }
  const std::int64_t rows = files.model.spec().vocab_size;
  if (files.tokenizer && files.tokenizer->vocab_size() > rows) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("the tokenizer has ids up to {}, the embedding only {} rows",
                            files.tokenizer->vocab_size() - 1, rows),
                path.string());
  }
  return files;
}

const text::Tokenizer& ModelFiles::require_tokenizer() const {
  if (tokenizer) return *tokenizer;
  throw Error(ErrorCode::kNotSupported, "this model has no tokenizer", model.path().string(),
              "give token ids instead of text");
}

std::vector<TokenId> ModelFiles::stop_ids() const {
  std::vector<TokenId> ids = model.config().eos_token_ids;
  if (tokenizer && tokenizer->eos() && std::ranges::find(ids, *tokenizer->eos()) == ids.end())
    ids.push_back(*tokenizer->eos());
  return ids;
}

}  // namespace wring::engine
