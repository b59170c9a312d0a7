#include "engine/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>

#include "base/error.h"

namespace wring::engine {
namespace {

struct Active {
  RequestId id;
  Request request;
  SequenceId sequence;
  Sampler sampler;
  std::int64_t done = 0;  // prompt positions computed
  std::int64_t generated = 0;
  TokenId next = -1;            // generated and not computed yet
  std::vector<TokenId> tokens;  // all generated ones
  bool finished = false;

  std::int64_t prompt_size() const { return static_cast<std::int64_t>(request.prompt.size()); }
  bool prefilling() const { return done < prompt_size(); }
};

}  // namespace

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "?";
}

struct Scheduler::State {
  Engine* engine;
  SchedulerOptions options;
  RequestId next_id = 0;
  std::deque<std::pair<RequestId, Request>> queue;
  std::vector<std::unique_ptr<Active>> active;  // oldest first
  std::int64_t short_context =
      0;  // positions after which longrope's other frequencies count; 0: no such model

  void admit();
  void recompute_grown();
  Batch plan(std::vector<Active*>& members) const;
  void deliver(Active& a, const BatchItem& item, const StepResult& result, std::size_t index);
  void take_token(Active& a, TokenId token);
  void finish(Active& a, FinishReason reason);
  void sweep();
};

void Scheduler::State::admit() {
  while (!queue.empty() && active.size() < static_cast<std::size_t>(options.max_sequences)) {
    auto [id, request] = std::move(queue.front());
    queue.pop_front();
    Sampler sampler(request.sampling);
    const SequenceId sequence = engine->add_sequence(static_cast<std::int64_t>(request.prompt.size()));
    active.push_back(std::make_unique<Active>(Active{id, std::move(request), sequence, std::move(sampler)}));
  }
}

// A sequence that has grown past the short context is computed again with the frequencies of long ones, as
// the reference does: what a reply begins with does not depend on how long it may become.
void Scheduler::State::recompute_grown() {
  if (short_context == 0) return;
  for (const auto& a : active) {
    if (a->prefilling() || a->finished || engine->length(a->sequence) != short_context) continue;
    engine->remove_sequence(a->sequence);
    a->sequence = engine->add_sequence(short_context + 1);
    a->request.prompt.insert(a->request.prompt.end(), a->tokens.begin(), a->tokens.end());
    a->tokens.clear();
    a->request.prompt_logits = false;  // they were given
    a->done = 0;
  }
}

Batch Scheduler::State::plan(std::vector<Active*>& members) const {
  Batch batch;
  std::int64_t rows = options.max_step_rows;
  for (const auto& a : active) {
    if (a->prefilling() || rows == 0) continue;
    batch.items.push_back({a->sequence, engine->length(a->sequence), {&a->next, 1}, Logits::kLast, 1});
    members.push_back(a.get());
    --rows;
  }
  const auto vocab_bytes = static_cast<std::uint64_t>(engine->model().spec().vocab_size) * sizeof(float);
  std::int64_t logits_rows =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(options.max_logits_bytes / vocab_bytes));
  for (const auto& a : active) {
    if (!a->prefilling() || rows == 0) continue;
    std::int64_t count = std::min(rows, a->prompt_size() - a->done);
    if (a->request.prompt_logits) count = std::min(count, logits_rows);
    if (count == 0) continue;
    const bool last = a->done + count == a->prompt_size();
    const Logits logits = a->request.prompt_logits            ? Logits::kAll
                          : last && a->request.max_tokens > 0 ? Logits::kLast
                                                              : Logits::kNone;
    batch.items.push_back({a->sequence, a->done,
                           std::span(a->request.prompt)
                               .subspan(static_cast<std::size_t>(a->done), static_cast<std::size_t>(count)),
                           logits, count});
    members.push_back(a.get());
    rows -= count;
    if (logits == Logits::kAll) logits_rows -= count;
  }
  return batch;
}

void Scheduler::State::deliver(Active& a, const BatchItem& item, const StepResult& result,
                               std::size_t index) {
  const auto count = static_cast<std::int64_t>(item.ids.size());
  engine->commit(a.sequence, count);
  const bool was_prompt = a.prefilling();
  if (was_prompt) a.done += count;
  if (a.finished) return;  // cancelled by an earlier callback of this step
  const std::int64_t row = result.first_row[index];
  if (was_prompt && a.request.prompt_logits && a.request.on_prompt_logits) {
    Rows rows = result.logits;
    rows.data += static_cast<std::size_t>(row) * rows.stride;
    rows.count = count;
    a.request.on_prompt_logits(item.first_position, rows);
  }
  if (a.prefilling() || a.finished) return;
  if (a.request.max_tokens == 0) return finish(a, FinishReason::kLength);
  const std::int64_t last_row = item.logits == Logits::kAll ? row + count - 1 : row;
  const std::span<const float> logits = result.logits.row(last_row);
  if (was_prompt && !std::ranges::all_of(logits, [](float x) { return std::isfinite(x); })) {
    throw Error(ErrorCode::kBadInput, "the model's logits are not finite numbers",
                engine->model().path().string(), "its weights hold NaN or infinity, or overflow");
  }
  take_token(a, a.sampler.sample(logits, engine->length(a.sequence)));
}

void Scheduler::State::take_token(Active& a, TokenId token) {
  a.next = token;
  if (short_context > 0) a.tokens.push_back(token);
  ++a.generated;
  const bool go_on = !a.request.on_token || a.request.on_token(token);
  if (a.finished) return;
  if (!go_on || std::ranges::find(a.request.stop_ids, token) != a.request.stop_ids.end())
    return finish(a, FinishReason::kStop);
  const bool full = engine->length(a.sequence) >= engine->model().config().max_position_embeddings;
  if (a.generated >= a.request.max_tokens || full) finish(a, FinishReason::kLength);
}

void Scheduler::State::finish(Active& a, FinishReason reason) {
  a.finished = true;
  if (a.request.on_finish) a.request.on_finish(reason);
}

void Scheduler::State::sweep() {
  std::erase_if(active, [this](const std::unique_ptr<Active>& a) {
    if (a->finished) engine->remove_sequence(a->sequence);
    return a->finished;
  });
}

Scheduler::Scheduler(Engine& engine, const SchedulerOptions& options)
    : state_(std::make_unique<State>(State{&engine, options, 0, {}, {}, 0})) {
  for (const model::RopeSpec& rope : engine.model().spec().ropes) {
    if (!rope.long_inverse_frequencies.empty()) state_->short_context = rope.long_from;
  }
}

Scheduler::~Scheduler() {
  for (const auto& a : state_->active) state_->engine->remove_sequence(a->sequence);
}

RequestId Scheduler::submit(Request request) {
  if (request.prompt.empty()) throw Error(ErrorCode::kBadInput, "the prompt has no tokens");
  const std::int64_t context = state_->engine->model().config().max_position_embeddings;
  if (static_cast<std::int64_t>(request.prompt.size()) > context) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("a prompt of {} tokens is longer than the model's context of {}",
                            request.prompt.size(), context));
  }
  const RequestId id = state_->next_id++;
  state_->queue.emplace_back(id, std::move(request));
  return id;
}

void Scheduler::cancel(RequestId id) {
  for (auto it = state_->queue.begin(); it != state_->queue.end(); ++it) {
    if (it->first != id) continue;
    const Request request = std::move(it->second);
    state_->queue.erase(it);
    if (request.on_finish) request.on_finish(FinishReason::kCancelled);
    return;
  }
  for (const auto& a : state_->active) {
    if (a->id == id && !a->finished) return state_->finish(*a, FinishReason::kCancelled);
  }
}

bool Scheduler::step(ForwardObserver* observer) {
  state_->sweep();
  state_->admit();
  state_->recompute_grown();
  std::vector<Active*> members;
  const Batch batch = state_->plan(members);
  if (batch.items.empty()) return false;
  const StepResult result = state_->engine->step(batch, observer);
  for (std::size_t i = 0; i < members.size(); ++i) state_->deliver(*members[i], batch.items[i], result, i);
  state_->sweep();
  return true;
}

void Scheduler::run(ProgressSink& progress, ForwardObserver* observer) {
  do {
    progress.throw_if_cancelled();
  } while (step(observer));
}

std::size_t Scheduler::active() const {
  return state_->active.size();
}
std::size_t Scheduler::waiting() const {
  return state_->queue.size();
}

}  // namespace wring::engine
