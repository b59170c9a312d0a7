#include "lab/step_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"

namespace wring::lab {
namespace {

using Clock = std::chrono::steady_clock;
using engine::TokenId;

constexpr int kRepeats = 8;  // steps in a row of one size, of which a run takes the mean

class Sequence {
 public:
  Sequence(engine::Engine& engine, int prompt, int longest)
      : engine_(engine),
        id_(engine.add_sequence(engine.model().config().max_position_embeddings)),
        ids_(prompt_ids(std::max(prompt, longest), engine.model().spec().vocab_size, 0)) {}
  ~Sequence() { engine_.remove_sequence(id_); }
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  void prefill(int prompt) {
    step(prompt, engine::Logits::kLast);
    engine_.commit(id_, prompt);
  }

  /// Milliseconds of a step of `positions`, which are dropped.
  double time(int positions, const ProgressSink& progress) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < kRepeats; ++i) {
      progress.throw_if_cancelled();
      step(positions, engine::Logits::kAll);
    }
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count() / kRepeats;
  }

 private:
  void step(int positions, engine::Logits logits) {
    engine_.step(
        {{{id_, engine_.length(id_), std::span(ids_).first(static_cast<std::size_t>(positions)), logits}}});
  }

  engine::Engine& engine_;
  engine::SequenceId id_;
  std::vector<TokenId> ids_;
};

}  // namespace

void check_steps(int prompt, const std::vector<int>& positions, std::int64_t max_position_embeddings) {
  for (const int n : positions) {
    if (prompt + n <= max_position_embeddings) continue;
    throw Error(ErrorCode::kBadInput,
                fmt::format("a step of {} positions after {} tokens is more than the model's context of {}",
                            n, prompt, max_position_embeddings));
  }
}

std::vector<StepCost> measure_steps(engine::Engine& engine, int prompt, const std::vector<int>& positions,
                                    int runs, ProgressSink& progress) {
  const int longest = *std::ranges::max_element(positions);
  check_steps(prompt, positions, engine.model().config().max_position_embeddings);
  Sequence sequence(engine, prompt, longest);
  sequence.prefill(prompt);
  std::vector<std::vector<double>> ms(positions.size()), ratios(positions.size());
  for (const int n : positions) sequence.time(n, progress);  // warm-up: workspaces grow
  for (int run = 0; run < runs; ++run) {
    progress.update("timing steps", static_cast<std::uint64_t>(run), static_cast<std::uint64_t>(runs),
                    "rounds");
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const double one = sequence.time(1, progress);
      ms[i].push_back(positions[i] == 1 ? one : sequence.time(positions[i], progress));
      ratios[i].push_back(ms[i].back() / one);
    }
  }
  std::vector<StepCost> costs;
  for (std::size_t i = 0; i < positions.size(); ++i)
    costs.push_back({positions[i], spread_of(std::move(ms[i])), spread_of(std::move(ratios[i]))});
  return costs;
}

}  // namespace wring::lab
