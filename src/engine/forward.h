// The one forward pass: reads a ModelSpec and computes a laid-out batch. Nothing here throws:
// everything that can fail was done when the batch was prepared (engine.cc).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/thread_pool.h"
#include "engine/batch.h"
#include "engine/kv_cache.h"
#include "engine/linear.h"
#include "engine/observer.h"
#include "engine/recurrent_state.h"
#include "engine/router.h"
#include "engine/row_buffer.h"
#include "kernels/kernel_table.h"
#include "model/model.h"

namespace wring::engine {

/// Sizes of models and batches are signed, those of containers are not.
inline std::size_t z(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

/// Some consecutive rows of a step that belong to one sequence.
struct RowSpan {
  std::int64_t first_row = 0;
  std::int64_t count = 0;
  std::int64_t first_position = 0;
  const BlockTable* table = nullptr;
  std::int64_t longest = 0;  // positions that the sequence may reach
  std::int64_t certain = 0;  // rows that will not be rolled back
  RecurrentState* recurrent = nullptr;
};

/// A batch laid out in rows: what compute() needs and nothing else.
struct RowPlan {
  std::vector<TokenId> ids;               // by row
  std::vector<std::int64_t> positions;    // by row
  std::vector<RowSpan> spans;             // by item
  std::vector<std::int64_t> wanted_rows;  // rows whose logits are asked for, rising
};

class Forward {
  // Rows of element-wise work handed to a thread at a time.
  static constexpr std::size_t kRowsPerPiece = 8;

 public:
  /// Resolves every weight that the spec names. What is passed must outlive this.
  Forward(const model::Model& model, ComputeMode mode, KvCache& cache, ThreadPool& pool,
          const kernels::KernelTable& table);

  /// Makes room for a plan. The only part that allocates.
  void reserve(const RowPlan& plan);

  /// Computes the plan; returns the wanted logits. Precondition: reserve(plan) and pages for every position.
  Rows compute(const RowPlan& plan, ForwardObserver* observer) noexcept;

  /// The plan's ids as the first block reads them, into `residual` (rows, hidden_size). Precondition: as
  /// compute().
  void embed(const RowPlan& plan, float* residual) noexcept;
  /// Block `index` alone: `residual` (rows, hidden_size) is read and written.
  void compute_block(int index, const RowPlan& plan, float* residual, ForwardObserver* observer) noexcept;

  Products products() const;
  std::uint64_t workspace_bytes() const;
  /// Bytes of weights: what is read where it is mapped, and the arenas of packed matrices.
  std::uint64_t weights_bytes() const;
  /// The part of them that a step of one position reads: of experts those that it is sent to.
  std::uint64_t streamed_bytes() const;

 private:
  struct Norm {
    std::vector<float> weight;  // empty: there is none
    std::vector<float> bias;    // of LayerNorm; empty: RMS norm
    float offset = 0, eps = 0;
  };
  struct Mlp {
    Linear gate, up, down;
  };
  struct Latent {
    Linear q_a, q_b, kv_a;
    Norm q_a_norm, kv_a_norm;
    std::vector<float> into, out_of;  // (heads · latent, nope_dim) and (heads · value_dim, latent)
  };
  struct DeltaNet {
    Linear qkv, z, b, a;
    Norm norm;
    std::vector<float> conv, rates, dt_bias;  // (width, channels); e^a_log; by value head
  };
  struct Layer {
    const model::LayerSpec* spec = nullptr;
    Norm mixer_norm, q_norm, k_norm, mixer_output_norm, mlp_norm, mlp_output_norm;
    Linear q, k, v, o;
    std::vector<float> sinks;           // by head; empty: none
    std::optional<Latent> latent;       // instead of q, k and v
    std::optional<DeltaNet> delta_net;  // instead of attention; o is its output map
    Linear shared_gate;
    Mlp mlp;  // of a mixture of experts: the shared one, if any
    Linear router;
    std::vector<float> selection_bias;
    std::vector<Mlp> experts;
  };
  /// By row and rotated pair.
  struct Rotation {
    RowBuffer cosine, sine;
  };
  /// What one thread needs for itself.
  struct Scratch {
    AlignedBuffer<float> attention;
    RouterScratch router;
    AlignedBuffer<float> state;  // of a value head, where rows may be rolled back
    std::vector<const void*> k_pages, v_pages;
  };
  /// Some rows of a span and the heads that share one of keys and values.
  struct HeadTask {
    const RowSpan* span;
    std::int64_t first;  // row within the span
    int count;
    int kv_head;
  };

  Norm make_norm(const std::optional<model::NormSpec>& spec) const;

  void embed(const RowPlan& plan);
  void fill_rope_tables(const RowPlan& plan);
  static void fill_rotation(const model::RopeSpec& rope, std::int64_t longest, const RowPlan& plan,
                            std::size_t row, Rotation& rotation);
  void block(int index, const RowPlan& plan);
  /// Shows observer_, if it wants inputs, the input of a site of the block that is computed.
  void show_input(model::Site site, const Rows& inputs, int matrix = 0);
  void attend(int index, const RowPlan& plan);
  /// Rotates queries and keys, and stores keys and values; all rows lie in one page.
  void store_task(int index, const HeadTask& task);
  void attend_task(int index, const HeadTask& task, Scratch& scratch);
  void plan_tasks(const RowPlan& plan);
  DeltaNet make_delta_net(const model::DeltaNetSpec& spec) const;
  void reserve_delta_net(const model::DeltaNetSpec& spec, const RowPlan& plan);
  /// delta_.z = the layer's outputs before its output map. `recurrent_index`: among the recurrent layers.
  void mix_delta_net(const Layer& layer, int recurrent_index, const RowBuffer& x, const RowPlan& plan);
  void unfuse_delta_net(const model::DeltaNetSpec& spec, std::int64_t rows);
  void run_delta_net(const Layer& layer, const RowSpan& span, RecurrentState::Layer& state);
  void gather_inputs(const Layer& layer, const RowSpan& span, const RecurrentState::Layer& state,
                     std::size_t replayed);
  void convolve(const Layer& layer, std::size_t steps);
  void run_value_head(const model::DeltaNetSpec& spec, std::size_t head, const RowSpan& span,
                      RecurrentState::Layer& state, std::size_t replayed, Scratch& scratch);
  void keep_inputs(const model::DeltaNetSpec& spec, const RowSpan& span, RecurrentState::Layer& state,
                   std::size_t replayed);
  /// attended_ times the sigmoid of the gates in queries_.
  void apply_output_gate(const model::AttentionSpec& attention, std::int64_t rows);
  void reserve_attention(const model::AttentionSpec& attention, std::size_t rows);
  /// q_, k_ and v_, normalized; where outputs are gated, the gates stay in queries_.
  void project_queries(const Layer& layer, const RowBuffer& x, std::int64_t rows);
  void reserve_mlp(const model::LayerSpec& layer, std::size_t rows);
  void reserve_latent(const model::AttentionSpec& attention, std::size_t rows);
  void read_latent_maps(const model::AttentionSpec& attention, Latent& latent) const;
  /// q_ and k_ from the layer's input: queries in the latent space, and the latents that are keys and values.
  void project_into_latent(const Layer& layer, const RowBuffer& x, std::int64_t rows);
  /// unpacked_ = the heads' outputs from attended_, which is in the latent space.
  void project_out_of_latent(const Layer& layer, std::int64_t rows);
  /// Each stretch of the norm's size of a row alone; nothing where there is no norm.
  void normalize(const Norm& norm, RowBuffer& x, std::int64_t rows, RowBuffer& y);
  /// The residual as a part reads it: normalized, or as it is.
  const RowBuffer& normalized(const Norm& norm, std::int64_t rows);
  /// y = mlp(x); gate_ and up_ are overwritten.
  void compute_mlp(const Mlp& mlp, const model::MlpSpec& spec, const RowBuffer& x, std::int64_t rows,
                   RowBuffer& y);
  /// gate_ = the activation of gate_ and up_.
  void activate(const model::MlpSpec& spec, std::int64_t rows);
  /// choices_ from router_logits_.
  void route(const Layer& layer, std::int64_t rows);
  /// update_ = the mixture of experts of x.
  void mix_experts(const Layer& layer, const RowBuffer& x, std::int64_t rows);
  /// chosen_output_'s rows of one expert's choices.
  void run_expert(const Layer& layer, std::size_t expert, const RowBuffer& x, std::int64_t rows);
  struct Product {
    const Linear* map;
    RowBuffer* y;
  };
  /// y_i = W_i x for the maps of one site, at most three.
  void multiply(const RowBuffer& x, std::int64_t rows, std::initializer_list<Product> products);
  void add_residual(std::int64_t rows);
  std::uint64_t linear_bytes() const;
  template <class F>
  void for_each_linear(F&& f) const;
  /// f(row) for each of `rows` rows, divided among the threads.
  template <class F>
  void for_rows(std::int64_t rows, F&& f) {
    pool_->for_pieces(static_cast<std::size_t>(rows), kRowsPerPiece,
                      [&](std::size_t begin, std::size_t end, int) {
                        for (std::size_t r = begin; r < end; ++r) f(r);
                      });
  }

  const model::Model* model_;
  ComputeMode mode_;
  KvCache* cache_;
  ThreadPool* pool_;
  const kernels::KernelTable* kernels_;

  PackedArena arena_;
  const model::Weight* embedding_ = nullptr;
  const model::Weight* positions_ = nullptr;  // learned ones; null: none
  std::vector<Layer> layers_;
  std::vector<int> recurrent_index_;  // by layer: recurrent layers before it
  Norm final_norm_;
  Linear head_;

  // Workspace, a row a position.
  RowBuffer residual_, normed_;                // hidden_size
  RowBuffer q_, k_, v_;                        // heads * head_dim
  RowBuffer compressed_, queries_, unpacked_;  // latent attention: q_a's rows, q_b's, heads · value_dim
  RowBuffer attended_;                         // num_heads * head_dim
  RowBuffer gate_, up_;                        // intermediate_size of the layer or expert
  RowBuffer update_;                           // hidden_size: what a sublayer adds
  RowBuffer last_;                             // wanted rows only: hidden_size
  RowBuffer logits_;                           // wanted rows only: vocab_size
  struct DeltaNetBuffers {
    RowBuffer fused, fused_gates, mixed, z, out, b, a;  // by row
    RowBuffer window, convolved, gates;                 // by position of a span, replayed ones first
  };
  DeltaNetBuffers delta_;
  std::vector<Rotation> rotations_;  // by the spec's ropes
  // Of mixtures of experts. Choice row · per_token + rank is a row's choice of that rank.
  RowBuffer router_logits_;             // number of experts
  RowBuffer gathered_, expert_output_;  // hidden_size; an expert's rows
  RowBuffer chosen_output_;             // hidden_size; by choice
  std::vector<Choice> choices_;
  std::vector<std::size_t> of_expert_;  // numbers of the choices of one expert
  LinearInput input_;
  ForwardObserver* observer_ = nullptr;  // of the step that is computed
  int block_ = 0;                        // that is computed
  std::vector<HeadTask> attention_tasks_, store_tasks_;
  std::vector<Scratch> scratch_;  // by worker
  std::vector<LinearScratch> linear_scratch_;
};

}  // namespace wring::engine
