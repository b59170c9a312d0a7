// A model's files opened for text: weights, tokenizer and chat template together, as commands need them.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "model/model.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace wring::engine {

/// What a model's files say; an Engine over `model` is made by whoever computes.
struct ModelFiles {
  model::Model model;
  std::optional<text::Tokenizer> tokenizer;         // absent only where the files hold none
  std::optional<std::string> chat_template_source;  // parsed by whoever needs it

  /// Errors: the readers'; a tokenizer with more ids than embedding rows is kBadInput naming both.
  static ModelFiles open(const std::filesystem::path& path);

  /// The tokenizer, or kNotSupported saying that this model has none.
  const text::Tokenizer& require_tokenizer() const;
  /// Ids that end a reply: the configuration's and the tokenizer's.
  std::vector<TokenId> stop_ids() const;
};

}  // namespace wring::engine
