#include "cli/calibrate.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/command.h"
#include "engine/engine.h"
#include "evaluate/documents.h"
#include "quantize/importance.h"

namespace wring::cli {

std::vector<std::vector<engine::TokenId>> calibration_documents(const engine::ModelFiles& files,
                                                                const std::vector<std::string>& texts,
                                                                std::int64_t context) {
  const std::int64_t limit = files.model.config().max_position_embeddings;
  if (context == 0) context = std::min<std::int64_t>(1024, limit);
  evaluate::check_context(context, limit);
  const text::Tokenizer& tokenizer = files.require_tokenizer();
  const evaluate::TextSet set =
      evaluate::read_texts(std::vector<std::filesystem::path>(texts.begin(), texts.end()));
  for (const std::string& note : set.notes) warn(note);
  std::vector<std::vector<engine::TokenId>> documents;
  for (evaluate::Document& d : evaluate::tokenize(set, tokenizer, context, limit))
    documents.push_back(std::move(d.ids));
  return documents;
}

formats::Imatrix calibrate(const engine::ModelFiles& files, const std::vector<std::string>& texts,
                           std::int64_t context, int threads) {
  const auto documents = calibration_documents(files, texts, context);
  engine::Engine engine(files.model, {.threads = threads});
  return quantize::collect_importance(engine, documents, fmt::format("{}", fmt::join(texts, ", ")),
                                      terminal_progress());
}

quantize::LargestInputs calibrate_inputs(const engine::ModelFiles& files,
                                         const std::vector<std::string>& texts, std::int64_t context,
                                         int threads) {
  const auto documents = calibration_documents(files, texts, context);
  engine::Engine engine(files.model, {.threads = threads});
  return quantize::find_largest_inputs(engine, documents, fmt::format("{}", fmt::join(texts, ", ")),
                                       terminal_progress());
}

}  // namespace wring::cli
