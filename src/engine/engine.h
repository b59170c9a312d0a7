// The engine: sequences with paged key/value caches and one function, step(), that computes some positions of
// some of them. A step is prepared (which may throw, for the batch at fault) and then computed (which
// cannot). commit() keeps the first n of the positions just computed and rolls the rest back: that is all
// that verification of drafts needs.
//
// The promise: a position's logits have the same bits whatever else is in the batch, however the prompt was
// cut into steps, on any number of threads and (but for BF16 matrices in packed mode) on any CPU level
// (docs/ARCHITECTURE.md).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/thread_pool.h"
#include "engine/batch.h"
#include "engine/compute_mode.h"
#include "engine/observer.h"
#include "formats/quant_type.h"
#include "kernels/kernel_table.h"
#include "model/model.h"

namespace wring::engine {

struct EngineOptions {
  ComputeMode compute = ComputeMode::kExact;
  int threads = 0;             // 0: default_threads()
  std::uint64_t kv_bytes = 0;  // limit of the cache; 0: no limit but memory's
  /// Type of cached keys and values in packed mode: F32, F16 or BF16. Exact mode's are F32.
  formats::QuantType kv_type = formats::QuantType::kF16;
  /// What to compute with; null: kernels::kernels(). It must outlive the engine.
  const kernels::KernelTable* kernels = nullptr;
};

class Engine {
 public:
  /// `model` must outlive the engine.
  Engine(const model::Model& model, const EngineOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const model::Model& model() const;
  ComputeMode compute_mode() const;
  /// The fastest kind of product that any matrix is computed with.
  Products products() const;
  ThreadPool& pool();

  /// `longest`: how many positions it has at the start, or will have. Models with two sets of rotary
  /// frequencies (longrope) choose by it, once: without it the sequence ends at the short context.
  SequenceId add_sequence(std::int64_t longest = 0);
  /// Frees the sequence's pages.
  void remove_sequence(SequenceId sequence);
  /// Positions that are committed.
  std::int64_t length(SequenceId sequence) const;

  /// Computes the batch. Errors: kInternal for a batch that breaks its contract, kBadInput for a token id
  /// outside the vocabulary or a position past max_position_embeddings, kIo when the cache's limit is
  /// reached; nothing has changed then. Positions of a sequence that were computed and not committed are
  /// dropped by its next step.
  StepResult step(const Batch& batch, ForwardObserver* observer = nullptr);

  /// Keeps the first n positions of the sequence's part of the last step, 0 ≤ n ≤ its ids.
  void commit(SequenceId sequence, std::int64_t n);

  /// A way through the model block by block, for calibration: documents from their first position, each a
  /// list of ids, and their residual streams one after the other in `residual` (positions of all,
  /// hidden_size). embed() fills it, forward_block() takes it through one block. No sequence is left behind.
  /// Errors: as step().
  void embed(std::span<const std::span<const TokenId>> documents, std::span<float> residual);
  void forward_block(int layer, std::span<const std::span<const TokenId>> documents,
                     std::span<float> residual, ForwardObserver* observer = nullptr);

  struct Memory {
    std::uint64_t weights_bytes = 0;  // touched by a step: mapped from the file, or in arenas
    /// The part of them that a step of one position reads: all but the embedding and experts not chosen.
    std::uint64_t streamed_bytes = 0;
    std::uint64_t kv_bytes = 0;  // pages in use, and recurrent states
    std::uint64_t workspace_bytes = 0;
  };
  Memory memory() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wring::engine
