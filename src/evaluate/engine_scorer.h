// The Scorer over our engine: prompts run through the scheduler like any others, and each step's logits are
// reduced at once, a row a task on the engine's threads, so that no step's logits are kept.
#pragma once

#include "engine/engine.h"
#include "evaluate/scorer.h"

namespace wring::evaluate {

class EngineScorer : public Scorer {
 public:
  /// `engine` must outlive the scorer and is used by nobody else meanwhile.
  explicit EngineScorer(engine::Engine& engine) : engine_(&engine) {}

  std::int32_t vocab_size() const override;
  std::string compute_mode() const override;
  void score(std::span<const ScoreRequest> requests, ScoreSink& sink, ProgressSink& progress,
             std::string_view task) override;
  std::vector<std::vector<TokenId>> generate(std::span<const GenerateRequest> requests,
                                             ProgressSink& progress) override;

 private:
  engine::Engine* engine_;
};

}  // namespace wring::evaluate
