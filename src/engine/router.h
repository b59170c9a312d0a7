// Which experts a token goes through, and how much each of them counts (model/spec.h, MoeSpec). Sources:
// modeling_mixtral.py, modeling_qwen3_moe.py and modeling_deepseek_v3.py of transformers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/spec.h"

namespace wring::engine {

struct Choice {
  std::int32_t expert;
  float weight;
};

/// Work space of choose_experts(): one a thread.
struct RouterScratch {
  std::vector<float> scores, ranked;  // by expert
  std::vector<float> groups;          // by group
  void reserve(const model::MoeSpec& spec);
};

/// The choices of one token, best first, into `out` (per_token of them). `logits`: the router's, by expert;
/// `bias`: spec.selection_bias' values, or empty. Precondition: scratch.reserve(spec).
void choose_experts(const model::MoeSpec& spec, std::span<const float> logits, std::span<const float> bias,
                    RouterScratch& scratch, std::span<Choice> out) noexcept;

}  // namespace wring::engine
