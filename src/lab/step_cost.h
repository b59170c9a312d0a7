// What one step costs by the number of positions it computes, after a prompt: the price of verifying a draft.
// A step of one position reads the same weights, so the ratio says how many more positions come almost free.
#pragma once

#include <vector>

#include "base/progress.h"
#include "engine/engine.h"
#include "lab/speed.h"

namespace wring::lab {

struct StepCost {
  int positions = 0;
  Spread ms;
  Spread times_one;  // the cost in steps of one position, each taken beside it
};

/// Times steps of `positions` consecutive positions of one sequence that has `prompt` tokens, logits of all
/// of them wanted, and drops them again; sizes take turns. Precondition: positions is not empty. Errors:
/// kBadInput if they do not fit the model's context.
std::vector<StepCost> measure_steps(engine::Engine& engine, int prompt, const std::vector<int>& positions,
                                    int runs, ProgressSink& progress);

/// The check on the context alone, so that steps that do not fit are refused before any work. Errors:
/// kBadInput naming step, prompt and limit.
void check_steps(int prompt, const std::vector<int>& positions, std::int64_t max_position_embeddings);

}  // namespace wring::lab
