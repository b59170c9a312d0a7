// Pooling document results.
#include "evaluate/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <unordered_map>

#include "base/error.h"
#include "base/portable_math.h"
#include "base/utf8.h"

namespace wring::evaluate {
namespace {

struct Pair {
  const DocumentResult* candidate;
  const DocumentResult* reference;

  double delta_sum() const { return candidate->nll_sum - reference->nll_sum; }
  double delta() const { return delta_sum() / static_cast<double>(candidate->tokens); }
};

std::vector<Pair> pair_up(std::span<const DocumentResult> candidate,
                          std::span<const DocumentResult> reference) {
  std::unordered_map<std::string, const DocumentResult*> by_id;
  for (const DocumentResult& r : reference) by_id.emplace(r.id, &r);
  if (by_id.size() != candidate.size()) {
    throw Error(ErrorCode::kBadInput, fmt::format("the candidate has {} documents, the reference {}",
                                                  candidate.size(), by_id.size()));
  }
  std::vector<Pair> pairs;
  for (const DocumentResult& c : candidate) {
    const auto found = by_id.find(c.id);
    if (found == by_id.end()) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("document \"{}\" was not measured on the reference", printable(c.id)));
    }
    const DocumentResult& r = *found->second;
    if (r.sha256 != c.sha256 || r.tokens != c.tokens) {
      throw Error(
          ErrorCode::kBadInput,
          fmt::format("document \"{}\" differs: {} tokens of text {} against {} tokens of text {}",
                      printable(c.id), c.tokens, c.sha256.substr(0, 12), r.tokens, r.sha256.substr(0, 12)));
    }
    pairs.push_back({&c, &r});
  }
  return pairs;
}

Interval delta_interval(std::span<const Pair> pairs) {
  std::vector<double> sums, weights;
  for (const Pair& p : pairs) {
    sums.push_back(p.delta_sum());
    weights.push_back(static_cast<double>(p.candidate->tokens));
  }
  return PairedBootstrap(pairs.size()).ratio(sums, weights);
}

std::optional<KlSummary> summarize_kl(std::span<const Pair> pairs) {
  std::vector<double> all, sums, weights;
  KlSummary kl;
  std::int64_t same_top = 0;
  double squares = 0;
  for (const Pair& p : pairs) {
    const DocumentResult& c = *p.candidate;
    if (c.kl.empty()) return std::nullopt;
    all.insert(all.end(), c.kl.begin(), c.kl.end());
    double sum = 0;
    for (const double v : c.kl) sum += v;
    sums.push_back(sum);
    weights.push_back(static_cast<double>(c.kl.size()));
    same_top += c.same_top;
    squares += c.delta_p_squares;
  }
  const auto count = static_cast<double>(all.size());
  kl.mean = PairedBootstrap(pairs.size()).ratio(sums, weights);
  std::sort(all.begin(), all.end());
  kl.p50 = quantile_of_sorted(all, 0.5);
  kl.p95 = quantile_of_sorted(all, 0.95);
  kl.p99 = quantile_of_sorted(all, 0.99);
  kl.p999 = quantile_of_sorted(all, 0.999);
  kl.max = all.back();
  kl.positions = static_cast<std::int64_t>(all.size());
  kl.same_top = static_cast<double>(same_top) / count;
  kl.rms_delta_p = std::sqrt(squares / count);
  return kl;
}

Comparison compare(std::span<const Pair> pairs) {
  Comparison c;
  c.delta_nll = delta_interval(pairs);
  c.retained = 100 * portable_exp(-c.delta_nll.mean);
  c.kl = summarize_kl(pairs);
  std::vector<double> deltas;
  for (const Pair& p : pairs) {
    deltas.push_back(p.delta());
    c.worst_documents.push_back(
        {p.candidate->id, p.candidate->domain, p.candidate->tokens, p.candidate->nll(), p.delta()});
    c.worst_tokens.insert(c.worst_tokens.end(), p.candidate->worst_tokens.begin(),
                          p.candidate->worst_tokens.end());
  }
  c.document_delta = tails(std::move(deltas));
  std::stable_sort(c.worst_documents.begin(), c.worst_documents.end(),
                   [](const WorstDocument& a, const WorstDocument& b) { return a.delta_nll > b.delta_nll; });
  std::stable_sort(c.worst_tokens.begin(), c.worst_tokens.end(),
                   [](const WorstToken& a, const WorstToken& b) {
                     return a.nll - a.reference_nll > b.nll - b.reference_nll;
                   });
  if (c.worst_documents.size() > kWorstShown) c.worst_documents.resize(kWorstShown);
  if (c.worst_tokens.size() > kWorstShown) c.worst_tokens.resize(kWorstShown);
  return c;
}

struct Pool {
  std::int64_t documents = 0, tokens = 0, bytes = 0;
  double nll_sum = 0;

  void add(const DocumentResult& r) {
    ++documents;
    tokens += r.tokens;
    bytes += r.bytes;
    nll_sum += r.nll_sum;
  }
  double nll() const { return nll_sum / static_cast<double>(tokens); }
  // Bits per byte of text; 0 where no scored token holds text.
  double bits_per_byte() const {
    return bytes == 0 ? 0 : nll_sum / std::numbers::ln2 / static_cast<double>(bytes);
  }
};

}  // namespace

EvalSummary summarize(std::span<const DocumentResult> results, std::span<const DocumentResult> reference) {
  if (results.empty()) throw Error(ErrorCode::kBadInput, "no document was measured");
  Pool pool;
  std::map<std::string, Pool> domains;
  for (const DocumentResult& r : results) {
    pool.add(r);
    domains[r.domain].add(r);
  }
  EvalSummary summary{pool.documents, pool.tokens, pool.bytes, pool.nll(), 0, pool.bits_per_byte(), {}, {}};
  summary.ppl = portable_exp(summary.nll);
  std::vector<Pair> pairs;
  if (!reference.empty()) {
    pairs = pair_up(results, reference);
    summary.against = compare(pairs);
  }
  for (const auto& [name, p] : domains) {
    DomainSummary d{name, p.documents, p.tokens, p.nll(), p.bits_per_byte(), {}, {}};
    if (!pairs.empty()) {
      std::vector<Pair> of_domain;
      std::copy_if(pairs.begin(), pairs.end(), std::back_inserter(of_domain),
                   [&](const Pair& pair) { return pair.candidate->domain == d.domain; });
      d.delta_nll = delta_interval(of_domain);
      if (const auto kl = summarize_kl(of_domain)) d.kl_mean = kl->mean.mean;
    }
    summary.domains.push_back(std::move(d));
  }
  return summary;
}

Interval delta_nll(std::span<const DocumentResult> a, std::span<const DocumentResult> b) {
  if (a.empty()) throw Error(ErrorCode::kBadInput, "no document was measured");
  return delta_interval(pair_up(a, b));
}

void adjust_for_candidates(std::span<EvalSummary* const> candidates) {
  std::vector<double> p_values;
  for (const EvalSummary* c : candidates) {
    if (c->against) p_values.push_back(c->against->delta_nll.p_value);
  }
  const std::vector<double> adjusted = holm_adjusted(p_values);
  std::size_t next = 0;
  for (EvalSummary* c : candidates) {
    if (c->against) c->against->delta_nll.p_value = adjusted[next++];
  }
}

}  // namespace wring::evaluate
