// Documents through a Scorer, compared with the reference as rows arrive.
#include "evaluate/nll.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/utf8.h"

namespace wring::evaluate {
namespace {

constexpr std::size_t kContextTokens = 16;  // shown before a worst token: about a line

DocumentResult describe(const Document& d) {
  DocumentResult r;
  r.id = d.id;
  r.domain = d.domain;
  r.sha256 = d.sha256;
  r.tokens = static_cast<std::int64_t>(d.ids.size()) - 1;
  r.bytes = d.scored_bytes;
  return r;
}

std::vector<WorstToken> worst_tokens(const Document& d, const Scores& candidate, const Scores& reference,
                                     const text::Tokenizer* tokenizer) {
  std::vector<std::size_t> order(candidate.log_probs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto loss = [&](std::size_t i) { return reference.log_probs[i] - candidate.log_probs[i]; };
  const std::size_t kept = std::min(order.size(), kWorstTokensPerDocument);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                    [&](std::size_t a, std::size_t b) {
                      const double la = loss(a), lb = loss(b);
                      return la > lb || (la == lb && a < b);
                    });
  std::vector<WorstToken> worst;
  for (std::size_t k = 0; k < kept && loss(order[k]) > 0; ++k) {
    const std::size_t i = order[k], at = i + 1;  // scores begin at ids[1]
    WorstToken t;
    t.document = d.id;
    t.position = static_cast<std::int64_t>(at);
    t.nll = -candidate.log_probs[i];
    t.reference_nll = -reference.log_probs[i];
    if (tokenizer != nullptr) {
      const std::size_t begin = at > kContextTokens ? at - kContextTokens : 0;
      t.token = replace_invalid_utf8(tokenizer->decode(std::span(d.ids).subspan(at, 1)));
      t.context = replace_invalid_utf8(tokenizer->decode(std::span(d.ids).subspan(begin, at - begin)));
    }
    worst.push_back(std::move(t));
  }
  return worst;
}

class Comparing : public ScoreSink {
 public:
  Comparing(const DocumentRun& run, std::span<const ScoreRequest> requests,
            const std::function<void(std::size_t, DocumentResult)>& on_result)
      : run_(run), requests_(requests), on_result_(on_result), comparisons_(requests.size()) {}

  void on_logits(std::size_t request, std::size_t first,
                 std::span<const std::span<const float>> rows) override {
    std::vector<KlRow>& out = comparisons_[request];
    out.resize(first + rows.size());
    const auto compare = [&](std::size_t begin, std::size_t end, int) {
      for (std::size_t i = begin; i < end; ++i) {
        const ScoreRequest& r = requests_[request];
        const TokenId next = r.ids[static_cast<std::size_t>(r.logits_at[first + i]) + 1];
        out[first + i] = compare_rows(run_.reference->row(run_.which[request], first + i), rows[i], next);
      }
    };
    if (run_.pool != nullptr) {
      run_.pool->for_pieces(rows.size(), 1, compare);
    } else {
      compare(0, rows.size(), 0);
    }
  }

  void on_scores(std::size_t request, Scores scores) override {
    done_.emplace(request, result_of(request, scores));
    for (auto it = done_.begin(); it != done_.end() && it->first == next_; it = done_.erase(it), ++next_) {
      on_result_(run_.which[next_], std::move(it->second));
    }
  }

 private:
  DocumentResult result_of(std::size_t request, const Scores& scores) {
    const std::size_t number = run_.which[request];
    const Document& d = run_.documents[number];
    DocumentResult r = describe(d);
    r.nll_sum = nll_sum(scores);
    if (run_.reference == nullptr) return r;
    for (const KlRow& row : comparisons_[request]) {
      r.kl.push_back(row.kl);
      r.same_top += row.same_top ? 1 : 0;
      r.delta_p_squares += row.delta_p * row.delta_p;
    }
    comparisons_[request] = {};
    r.worst_tokens = worst_tokens(d, scores, run_.reference->scores(number), run_.tokenizer);
    return r;
  }

  const DocumentRun& run_;
  std::span<const ScoreRequest> requests_;
  const std::function<void(std::size_t, DocumentResult)>& on_result_;
  std::vector<std::vector<KlRow>> comparisons_;
  std::map<std::size_t, DocumentResult> done_;  // finished before an earlier one
  std::size_t next_ = 0;
};

void check_reference(const Scorer& scorer, const DocumentRun& run, std::span<const ScoreRequest> requests) {
  const Reference& reference = *run.reference;
  if (reference.vocab_size() != scorer.vocab_size()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("KL needs one vocabulary: the reference has {} tokens, the candidate {}",
                            reference.vocab_size(), scorer.vocab_size()));
  }
  if (reference.documents() != run.documents.size()) {
    throw Error(ErrorCode::kBadInput, fmt::format("the reference holds {} documents, {} are asked",
                                                  reference.documents(), run.documents.size()));
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::size_t number = run.which[i];
    if (reference.rows(number) == requests[i].logits_at.size() &&
        reference.scores(number).log_probs.size() + 1 == requests[i].ids.size()) {
      continue;
    }
    throw Error(ErrorCode::kBadInput,
                fmt::format("the reference's document {} has {} rows and {} tokens, {} and {} are asked",
                            number, reference.rows(number), reference.scores(number).log_probs.size() + 1,
                            requests[i].logits_at.size(), requests[i].ids.size()));
  }
}

}  // namespace

double nll_sum(const Scores& scores) {
  double sum = 0;
  for (const double log_prob : scores.log_probs) sum -= log_prob;
  return sum;
}

std::vector<DocumentResult> reference_results(const Reference& reference,
                                              std::span<const Document> documents) {
  std::vector<DocumentResult> results;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    results.push_back(describe(documents[i]));
    results.back().nll_sum = nll_sum(reference.scores(i));
  }
  return results;
}

void run_documents(Scorer& scorer, const DocumentRun& run, ProgressSink& progress, std::string_view task,
                   const std::function<void(std::size_t document, DocumentResult result)>& on_result) {
  std::vector<ScoreRequest> requests;
  for (const std::size_t number : run.which) {
    const Document& d = run.documents[number];
    ScoreRequest request{d.ids, 1, {}};
    if (run.reference != nullptr) {
      request.logits_at = kl_positions(static_cast<std::int64_t>(d.ids.size()), run.positions);
    }
    requests.push_back(std::move(request));
  }
  if (run.reference != nullptr) check_reference(scorer, run, requests);
  Comparing sink(run, requests, on_result);
  scorer.score(requests, sink, progress, task);
}

}  // namespace wring::evaluate
