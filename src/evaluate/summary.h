// From document results to the numbers of a table: pooled NLL and perplexity, differences with paired
// intervals, divergence, tails, domains. Pure functions of the results, so that a report can be made again
// from the ledger.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "evaluate/document_result.h"
#include "evaluate/statistics.h"

namespace wring::evaluate {

struct KlSummary {
  Interval mean;  // over positions; documents resampled
  double p50 = 0, p95 = 0, p99 = 0, p999 = 0, max = 0;
  std::int64_t positions = 0;
  double same_top = 0;     // share of positions in [0, 1]
  double rms_delta_p = 0;  // of the probability of the token that follows
};

struct WorstDocument {
  std::string id, domain;
  std::int64_t tokens = 0;
  double nll = 0, delta_nll = 0;  // means over its tokens
};

struct Comparison {
  Interval delta_nll;     // candidate − reference, over tokens; documents resampled
  double retained = 100;  // R = 100 · exp(−ΔNLL) %: geometric mean of q/p over the tokens that came
  std::optional<KlSummary> kl;
  Tails document_delta;                        // of the documents' mean ΔNLL
  std::vector<WorstDocument> worst_documents;  // at most 20, largest ΔNLL first
  std::vector<WorstToken> worst_tokens;        // at most 20, largest increase first
};

struct DomainSummary {
  std::string domain;
  std::int64_t documents = 0, tokens = 0;
  double nll = 0, bits_per_byte = 0;
  std::optional<Interval> delta_nll;
  std::optional<double> kl_mean;
};

struct EvalSummary {
  std::int64_t documents = 0, tokens = 0, bytes = 0;
  double nll = 0, ppl = 0, bits_per_byte = 0;
  std::vector<DomainSummary> domains;  // by name
  std::optional<Comparison> against;
};

inline constexpr std::size_t kWorstShown = 20;

/// `reference` holds the same documents in any order, or is empty: no comparison. Errors: kBadInput for no
/// results, and naming the document that the two do not share or whose text or tokens differ.
EvalSummary summarize(std::span<const DocumentResult> results, std::span<const DocumentResult> reference);

/// a − b of two candidates on the same documents. Errors: as above.
Interval delta_nll(std::span<const DocumentResult> a, std::span<const DocumentResult> b);

/// Puts Holm-adjusted p-values in place of those of ΔNLL, over the candidates of one table.
void adjust_for_candidates(std::span<EvalSummary* const> candidates);

/// The keys that `wring eval --json` promises (docs/CLI.md).
nlohmann::json to_json(const EvalSummary& summary);

}  // namespace wring::evaluate
