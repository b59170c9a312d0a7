// Windows and their mean.
#include "evaluate/llama_protocol.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/portable_math.h"
#include "engine/chat.h"
#include "evaluate/nll.h"

namespace wring::evaluate {
namespace {

// Sums by window, added up in the order of windows at the end.
class Sums : public ScoreSink {
 public:
  explicit Sums(std::size_t windows) : sums_(windows) {}
  void on_logits(std::size_t, std::size_t, std::span<const std::span<const float>>) override {}
  void on_scores(std::size_t request, Scores scores) override {
    sums_[request] = nll_sum(scores);
    tokens_ += static_cast<std::int64_t>(scores.log_probs.size());
  }
  double total() const {
    double total = 0;
    for (const double s : sums_) total += s;
    return total;
  }
  std::int64_t tokens() const { return tokens_; }

 private:
  std::vector<double> sums_;
  std::int64_t tokens_ = 0;
};

}  // namespace

std::vector<ScoreRequest> llama_windows(const TextSet& texts, const text::Tokenizer& tokenizer,
                                        std::int64_t n_ctx, std::int64_t max_position_embeddings) {
  check_context(n_ctx, max_position_embeddings);
  if (n_ctx < 4) {
    throw Error(ErrorCode::kBadInput, fmt::format("windows of {} tokens have no second half to score", n_ctx),
                {}, "use --context 4 or more");
  }
  std::string text;
  for (const TextDocument& d : texts.documents) text += d.text;
  const bool bos = tokenizer.adds_bos() && tokenizer.bos();
  const std::vector<TokenId> ids = engine::encode_document(tokenizer, text);

  const auto size = static_cast<std::size_t>(n_ctx);
  if (ids.size() < size) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("the text has {} tokens, a window needs {}", ids.size(), n_ctx), {},
                "use a longer text or a smaller --context");
  }
  std::vector<ScoreRequest> windows;
  for (std::size_t at = 0; at + size <= ids.size(); at += size) {
    ScoreRequest window;
    window.ids.assign(ids.begin() + static_cast<std::ptrdiff_t>(at),
                      ids.begin() + static_cast<std::ptrdiff_t>(at + size));
    if (bos) window.ids.front() = *tokenizer.bos();
    window.first_scored = n_ctx / 2 + 1;
    windows.push_back(std::move(window));
  }
  return windows;
}

PerplexityResult llama_perplexity(Scorer& scorer, const std::vector<ScoreRequest>& windows,
                                  ProgressSink& progress) {
  Sums sums(windows.size());
  scorer.score(windows, sums, progress, "perplexity");
  PerplexityResult result;
  result.windows = static_cast<std::int64_t>(windows.size());
  result.tokens = sums.tokens();
  result.nll = sums.total() / static_cast<double>(result.tokens);
  result.ppl = portable_exp(result.nll);
  return result;
}

}  // namespace wring::evaluate
