// Perplexity as llama.cpp's tool measures it (tools/perplexity, its default mode), so that numbers can be
// laid side by side: the whole text is one run of tokens cut into windows of n_ctx; each window's first token
// is replaced by BOS where the model adds one; only the second half of a window is scored; a last incomplete
// window is left out.
#pragma once

#include <vector>

#include "evaluate/documents.h"
#include "evaluate/scorer.h"

namespace wring::evaluate {

struct PerplexityResult {
  std::int64_t windows = 0;
  std::int64_t tokens = 0;  // scored: windows · (n_ctx − n_ctx / 2 − 1)
  double nll = 0;           // mean
  double ppl = 0;
};

/// The windows of the texts, joined without a separator. Errors: kBadInput naming both where n_ctx does not
/// fit the model or exceeds the tokens there are.
std::vector<ScoreRequest> llama_windows(const TextSet& texts, const text::Tokenizer& tokenizer,
                                        std::int64_t n_ctx, std::int64_t max_position_embeddings);

PerplexityResult llama_perplexity(Scorer& scorer, const std::vector<ScoreRequest>& windows,
                                  ProgressSink& progress);

}  // namespace wring::evaluate
