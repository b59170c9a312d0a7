// Mixtures of experts (model/spec.h, MoeSpec): tokens are grouped by expert, so that each matrix is read once
// a step, and each token's outputs are summed in the order of its own choices.
#include <cstring>

#include "base/portable_math.h"
#include "engine/forward.h"

namespace wring::engine {

void Forward::route(const Layer& l, std::int64_t rows) {
  const model::MoeSpec& moe = *l.spec->moe;
  const std::size_t k = z(moe.per_token);
  pool_->for_pieces(z(rows), kRowsPerPiece, [&](std::size_t begin, std::size_t end, int worker) {
    for (std::size_t r = begin; r < end; ++r) {
      choose_experts(moe, {router_logits_.row(r), l.experts.size()}, l.selection_bias,
                     scratch_[z(worker)].router, std::span(choices_).subspan(r * k, k));
    }
  });
}

void Forward::run_expert(const Layer& l, std::size_t expert, const RowBuffer& x, std::int64_t rows) {
  const model::MoeSpec& moe = *l.spec->moe;
  const std::size_t k = z(moe.per_token), row_bytes = z(model_->spec().hidden_size) * sizeof(float);
  of_expert_.clear();
  for (std::size_t i = 0; i < z(rows) * k; ++i) {
    if (z(choices_[i].expert) == expert) of_expert_.push_back(i);
  }
  if (of_expert_.empty()) return;
  const auto count = static_cast<std::int64_t>(of_expert_.size());
  for (std::size_t i = 0; i < of_expert_.size(); ++i)
    std::memcpy(gathered_.row(i), x.row(of_expert_[i] / k), row_bytes);
  const int number = static_cast<int>(expert);
  show_input(model::Site::kExpertGateUp, gathered_.rows(count), number);
  compute_mlp(l.experts[expert], moe.experts[expert], gathered_, count, expert_output_);
  show_input(model::Site::kExpertDown, gate_.rows(count), number);
  for (std::size_t i = 0; i < of_expert_.size(); ++i)
    std::memcpy(chosen_output_.row(of_expert_[i]), expert_output_.row(i), row_bytes);
}

void Forward::mix_experts(const Layer& l, const RowBuffer& x, std::int64_t rows) {
  const model::MoeSpec& moe = *l.spec->moe;
  const std::size_t k = z(moe.per_token), hidden = z(model_->spec().hidden_size);
  router_logits_.reshape(moe.router.rows);
  multiply(x, rows, {{&l.router, &router_logits_}});
  route(l, rows);
  for (std::size_t e = 0; e < l.experts.size(); ++e) run_expert(l, e, x, rows);
  // One sum a token, in the order of its choices, whatever its batch mates chose.
  for_rows(rows, [&](std::size_t r) {
    std::memset(update_.row(r), 0, hidden * sizeof(float));
    for (std::size_t i = r * k; i < (r + 1) * k; ++i) {
      kernels_->scale(chosen_output_.row(i), hidden, choices_[i].weight);
      kernels_->add(update_.row(r), chosen_output_.row(i), hidden);
    }
  });
  if (!moe.shared) return;
  show_input(model::Site::kGateUp, x.rows(rows));
  compute_mlp(l.mlp, *moe.shared, x, rows, expert_output_);
  show_input(model::Site::kDown, gate_.rows(rows));
  if (moe.shared_gate) {
    router_logits_.reshape(1);
    multiply(x, rows, {{&l.shared_gate, &router_logits_}});
    for_rows(rows, [&](std::size_t r) {
      const double gate = static_cast<double>(router_logits_.row(r)[0]);
      kernels_->scale(expert_output_.row(r), hidden, static_cast<float>(1 / (1 + portable_exp(-gate))));
    });
  }
  for_rows(rows, [&](std::size_t r) { kernels_->add(update_.row(r), expert_output_.row(r), hidden); });
}

}  // namespace wring::engine
