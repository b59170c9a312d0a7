// Running a model over documents: negative log-likelihood of every token but the first, and, against a
// reference, the divergence at the KL positions and the tokens that lost most.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "evaluate/document_result.h"
#include "evaluate/documents.h"
#include "evaluate/reference.h"
#include "evaluate/scorer.h"
#include "text/tokenizer.h"

namespace wring::evaluate {

/// −Σ of log-probabilities, in order.
double nll_sum(const Scores& scores);

/// The reference's own results, from its record: nothing is computed again.
std::vector<DocumentResult> reference_results(const Reference& reference,
                                              std::span<const Document> documents);

struct DocumentRun {
  std::span<const Document> documents;
  std::vector<std::size_t> which;        // documents to run, by number; a resumed run leaves some out
  const Reference* reference = nullptr;  // of the same documents; null: NLL only
  KlPositions positions = KlPositions::kThirtyTwo;  // the reference's
  const text::Tokenizer* tokenizer = nullptr;       // for the text of the worst tokens; null: left empty
  ThreadPool* pool = nullptr;                       // compares rows; not used by others during callbacks
};

/// Calls `on_result` for each document, in the order of `which`, as soon as it and those before it are done.
/// Results do not depend on the number of threads. Errors: the scorer's; kBadInput where the reference's
/// vocabulary or rows do not fit (both sizes named).
void run_documents(Scorer& scorer, const DocumentRun& run, ProgressSink& progress, std::string_view task,
                   const std::function<void(std::size_t document, DocumentResult result)>& on_result);

}  // namespace wring::evaluate
