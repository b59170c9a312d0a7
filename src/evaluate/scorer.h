// What evaluation needs from a model, whoever runs it: log-probabilities of given tokens, whole rows of
// logits at chosen positions, and samples. Our engine implements it here; an endpoint can, with less.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "engine/sampler.h"

namespace wring::evaluate {

using TokenId = engine::TokenId;

/// Some ids whose likelihood is asked: a document, or a question with one of its choices.
struct ScoreRequest {
  std::vector<TokenId> ids;       // T ≥ 2
  std::int64_t first_scored = 1;  // ids[first_scored …] are scored, each given all before it; 1 ≤ it < T
  std::vector<std::int64_t>
      logits_at;  // rising positions whose whole rows are wanted; row p predicts ids[p + 1]
};

/// One value a scored id, in order.
struct Scores {
  std::vector<double> log_probs;  // natural, from float32 logits in float64
  std::vector<TokenId> top1;      // what the model would have said instead
};

/// Receives what score() computes, on the calling thread. Requests may overlap in time; within one, rows come
/// in rising order of position and its scores last.
class ScoreSink {
 public:
  virtual ~ScoreSink() = default;
  /// `rows[i]`: the vocab_size logits at logits_at[first + i], valid during the call.
  virtual void on_logits(std::size_t request, std::size_t first,
                         std::span<const std::span<const float>> rows) = 0;
  virtual void on_scores(std::size_t request, Scores scores) = 0;
};

struct GenerateRequest {
  std::vector<TokenId> prompt;
  std::int64_t max_tokens = 0;
  engine::SamplingParams sampling;
  std::vector<TokenId> stop_ids;
};

class Scorer {
 public:
  virtual ~Scorer() = default;

  virtual std::int32_t vocab_size() const = 0;
  /// "exact" and the like, for the record.
  virtual std::string compute_mode() const = 0;

  /// Scores all requests; progress counts tokens under `task`. Errors: kBadInput for a request that breaks
  /// its contract or holds ids outside the vocabulary; kCancelled.
  virtual void score(std::span<const ScoreRequest> requests, ScoreSink& sink, ProgressSink& progress,
                     std::string_view task) = 0;

  /// The replies' ids, a stop id included. Errors: as above.
  virtual std::vector<std::vector<TokenId>> generate(std::span<const GenerateRequest> requests,
                                                     ProgressSink& progress) = 0;
};

}  // namespace wring::evaluate
