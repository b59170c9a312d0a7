// Continuous batching: requests come and go, each step takes one position of every sequence that decodes and
// fills the rest of its rows with prefill, oldest first. Generation, evaluation and calibration all run
// through it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "engine/engine.h"
#include "engine/sampler.h"

namespace wring::engine {

enum class FinishReason { kStop, kLength, kCancelled };
std::string_view finish_reason_name(FinishReason reason);  // OpenAI's: "stop", "length"; "cancelled"

using RequestId = std::int64_t;

/// One sequence's work. Callbacks run on the thread that calls step(), between steps; logits are valid during
/// the call.
struct Request {
  std::vector<TokenId> prompt;  // at least one id
  std::int64_t max_tokens = 0;  // tokens to generate; 0: the prompt is only computed
  SamplingParams sampling;
  std::vector<TokenId> stop_ids;  // end the reply; the stop id itself is passed to on_token
  bool prompt_logits = false;     // on_prompt_logits gets every prompt position's logits

  /// Rows [0, rows.count) are the logits at prompt positions first_position …: they predict position + 1.
  std::function<void(std::int64_t first_position, const Rows& rows)> on_prompt_logits;
  /// A generated token; false ends the reply (kStop).
  std::function<bool(TokenId id)> on_token;
  std::function<void(FinishReason reason)> on_finish;
};

struct SchedulerOptions {
  int max_sequences = 32;   // computed at a time; more wait
  int max_step_rows = 512;  // positions a step
  std::uint64_t max_logits_bytes = std::uint64_t{64}
                                   << 20;  // bounds prefill chunks that want every row's logits
};

class Scheduler {
 public:
  /// `engine` must outlive the scheduler, which owns the engine's sequences meanwhile.
  Scheduler(Engine& engine, const SchedulerOptions& options);
  ~Scheduler();

  /// Queues a request. Errors: kBadInput for an empty prompt or a prompt longer than the model's context
  /// (both counts named).
  RequestId submit(Request request);
  /// Ends a request early (kCancelled); unknown or finished ids are ignored.
  void cancel(RequestId id);

  /// Computes one step; false if there was nothing to do.
  bool step(ForwardObserver* observer = nullptr);

  /// Steps until nothing is left. Errors: kCancelled.
  void run(ProgressSink& progress, ForwardObserver* observer = nullptr);

  std::size_t active() const;  // sequences being computed
  std::size_t waiting() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wring::engine
