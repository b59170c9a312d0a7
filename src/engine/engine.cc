#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/cpu.h"
#include "base/error.h"
#include "engine/forward.h"

namespace wring::engine {
namespace {

struct Sequence {
  BlockTable table;
  std::int64_t committed = 0;
  std::int64_t computed = 0;  // ≥ committed; what commit() may still keep
  std::int64_t longest = 0;
  std::int64_t certain = 0;  // of the last step: what commit() must keep where layers are recurrent
  RecurrentState recurrent;
};

}  // namespace

struct Engine::State {
  State(const model::Model& m, const EngineOptions& options)
      : model(&m),
        compute(options.compute),
        recurrent(model::is_recurrent(m.spec())),
        pool(threads_or_default(options.threads)),
        cache(m.spec(), options.compute == ComputeMode::kExact ? formats::QuantType::kF32 : options.kv_type,
              options.kv_bytes),
        forward(m, options.compute, cache, pool,
                options.kernels != nullptr ? *options.kernels : kernels::kernels()) {}

  const model::Model* model;
  ComputeMode compute;
  bool recurrent;
  ThreadPool pool;
  KvCache cache;
  Forward forward;
  std::map<SequenceId, Sequence> sequences;
  SequenceId next_sequence = 0;
  RowPlan plan;

  Sequence& find(SequenceId id) {
    const auto found = sequences.find(id);
    if (found == sequences.end()) throw Error(ErrorCode::kInternal, fmt::format("no sequence {}", id));
    return found->second;
  }

  void check(const BatchItem& item);
  void prepare(const Batch& batch);
  /// The same where the rows' residual streams are the caller's.
  void prepare(const Batch& batch, std::span<const float> residual);
};

void Engine::State::check(const BatchItem& item) {
  const Sequence& sequence = find(item.sequence);
  if (item.first_position != sequence.committed) {
    throw Error(ErrorCode::kInternal, fmt::format("sequence {} goes on at position {}, not {}", item.sequence,
                                                  sequence.committed, item.first_position));
  }
  if (item.ids.empty()) throw Error(ErrorCode::kInternal, "an item of a batch has no ids");
  const std::int64_t end = item.first_position + static_cast<std::int64_t>(item.ids.size());
  if (end > model->config().max_position_embeddings) {
    throw Error(ErrorCode::kBadInput, fmt::format("{} positions are more than the model's context of {}", end,
                                                  model->config().max_position_embeddings));
  }
  for (const model::RopeSpec& rope : model->spec().ropes) {
    if (rope.long_inverse_frequencies.empty() || sequence.longest > rope.long_from || end <= rope.long_from)
      continue;
    throw Error(ErrorCode::kInternal,
                fmt::format("{} positions, but the rotary frequencies of at most {} were chosen", end,
                            rope.long_from));
  }
  for (const TokenId id : item.ids) {
    if (id < 0 || id >= model->spec().vocab_size) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("token id {} is outside the vocabulary of {}", id, model->spec().vocab_size));
    }
  }
}

void Engine::State::prepare(const Batch& batch, std::span<const float> residual) {
  prepare(batch);
  const std::size_t expected = plan.ids.size() * static_cast<std::size_t>(model->spec().hidden_size);
  if (residual.size() == expected) return;
  throw Error(ErrorCode::kInternal,
              fmt::format("a residual stream of {} values, not {}", residual.size(), expected));
}

void Engine::State::prepare(const Batch& batch) {
  for (std::size_t i = 0; i < batch.items.size(); ++i) {
    check(batch.items[i]);
    for (std::size_t j = 0; j < i; ++j) {
      if (batch.items[j].sequence == batch.items[i].sequence)
        throw Error(ErrorCode::kInternal, "a sequence occurs twice in a batch");
    }
  }
  for (const BatchItem& item : batch.items) {
    cache.grow(find(item.sequence).table, item.first_position + static_cast<std::int64_t>(item.ids.size()));
  }
  plan.ids.clear();
  plan.positions.clear();
  plan.spans.clear();
  plan.wanted_rows.clear();
  for (const BatchItem& item : batch.items) {
    const auto first_row = static_cast<std::int64_t>(plan.ids.size());
    const auto count = static_cast<std::int64_t>(item.ids.size());
    Sequence& sequence = find(item.sequence);
    const std::int64_t certain = recurrent ? std::min(item.certain, count) : 0;
    sequence.recurrent.reserve(model->spec(), count - certain);
    plan.spans.push_back({first_row, count, item.first_position, &sequence.table, sequence.longest, certain,
                          &sequence.recurrent});
    plan.ids.insert(plan.ids.end(), item.ids.begin(), item.ids.end());
    for (std::int64_t i = 0; i < count; ++i) {
      plan.positions.push_back(item.first_position + i);
      if (item.logits == Logits::kAll || (item.logits == Logits::kLast && i + 1 == count))
        plan.wanted_rows.push_back(first_row + i);
    }
  }
  forward.reserve(plan);
}

Engine::Engine(const model::Model& model, const EngineOptions& options)
    : state_(std::make_unique<State>(model, options)) {}
Engine::~Engine() = default;

const model::Model& Engine::model() const {
  return *state_->model;
}
ComputeMode Engine::compute_mode() const {
  return state_->compute;
}
Products Engine::products() const {
  return state_->forward.products();
}
ThreadPool& Engine::pool() {
  return state_->pool;
}

SequenceId Engine::add_sequence(std::int64_t longest) {
  const SequenceId id = state_->next_sequence++;
  state_->sequences.emplace(
      id, Sequence{.table = {}, .longest = longest, .recurrent = RecurrentState(state_->model->spec())});
  return id;
}

void Engine::remove_sequence(SequenceId sequence) {
  state_->cache.release(state_->find(sequence).table);
  state_->sequences.erase(sequence);
}

std::int64_t Engine::length(SequenceId sequence) const {
  return state_->find(sequence).committed;
}

StepResult Engine::step(const Batch& batch, ForwardObserver* observer) {
  state_->prepare(batch);
  StepResult result;
  result.logits = state_->forward.compute(state_->plan, observer);
  std::int64_t next = 0;
  for (const BatchItem& item : batch.items) {
    const auto count = static_cast<std::int64_t>(item.ids.size());
    Sequence& sequence = state_->find(item.sequence);
    sequence.computed = sequence.committed + count;
    sequence.certain = state_->recurrent ? std::min(item.certain, count) : 0;
    sequence.recurrent.position = sequence.committed + sequence.certain;
    const std::int64_t wanted = item.logits == Logits::kAll ? count : item.logits == Logits::kLast ? 1 : 0;
    result.first_row.push_back(wanted > 0 ? next : -1);
    next += wanted;
  }
  return result;
}

namespace {

/// Sequences for the length of a scope.
class Documents {
 public:
  Documents(Engine& engine, std::span<const std::span<const TokenId>> documents) : engine_(&engine) {
    for (const std::span<const TokenId> ids : documents) {
      const auto count = static_cast<std::int64_t>(ids.size());
      sequences_.push_back(engine.add_sequence(count));
      batch.items.push_back({sequences_.back(), 0, ids, Logits::kNone, count});
    }
  }
  ~Documents() {
    for (const SequenceId s : sequences_) engine_->remove_sequence(s);
  }
  Documents(const Documents&) = delete;
  Documents& operator=(const Documents&) = delete;

  Batch batch;

 private:
  Engine* engine_;
  std::vector<SequenceId> sequences_;
};

}  // namespace

void Engine::embed(std::span<const std::span<const TokenId>> documents, std::span<float> residual) {
  const Documents all(*this, documents);
  state_->prepare(all.batch, residual);
  state_->forward.embed(state_->plan, residual.data());
}

void Engine::forward_block(int layer, std::span<const std::span<const TokenId>> documents,
                           std::span<float> residual, ForwardObserver* observer) {
  const Documents all(*this, documents);
  state_->prepare(all.batch, residual);
  state_->forward.compute_block(layer, state_->plan, residual.data(), observer);
}

void Engine::commit(SequenceId sequence, std::int64_t n) {
  Sequence& s = state_->find(sequence);
  if (n < 0 || s.committed + n > s.computed) {
    throw Error(ErrorCode::kInternal,
                fmt::format("cannot commit {} positions: {} were computed", n, s.computed - s.committed));
  }
  if (n < s.certain) {
    throw Error(ErrorCode::kInternal,
                fmt::format("cannot commit {} of {} positions that were certain", n, s.certain));
  }
  s.committed += n;
  s.computed = s.committed;
  s.certain = 0;
}

Engine::Memory Engine::memory() const {
  std::uint64_t states = 0;
  for (const auto& [id, sequence] : state_->sequences) states += sequence.recurrent.bytes();
  return {state_->forward.weights_bytes(), state_->forward.streamed_bytes(),
          state_->cache.used_bytes() + states, state_->forward.workspace_bytes()};
}

}  // namespace wring::engine
