#include "quantize/block_feedback.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/kernel_table.h"
#include "quantize/block_quantizer.h"
#include "quantize/calibration_run.h"
#include "quantize/expert_coverage.h"
#include "quantize/hessian.h"
#include "quantize/tensor_reader.h"

namespace wring::quantize {
namespace {

constexpr std::size_t kDocumentsAtOnce =
    2;  // through a block: enough rows for its products, little workspace

bool has_hessian(model::Site site) {
  using model::Site;
  return site != Site::kKept && site != Site::kLatentKeys && site != Site::kLatentValues;
}

std::vector<float> read_rows_of(const TensorReader& reader, std::size_t first, std::size_t count,
                                std::size_t columns) {
  std::vector<float> values(count * columns), scratch;
  for (std::size_t r = 0; r < count; ++r) reader.read(first + r, values.data() + r * columns, scratch);
  return values;
}

}  // namespace

BlockFeedback::BlockFeedback(const model::Model& source, const QuantPlan& plan,
                             std::span<const std::vector<engine::TokenId>> documents,
                             const FeedbackOptions& options, int threads)
    : model_(model::Model::open(source.path())),
      engine_(model_, {.threads = threads}),
      plan_(&plan),
      options_(options) {
  std::size_t tokens = 0;
  for (const std::vector<engine::TokenId>& d : documents) {
    if (d.empty()) continue;
    documents_.emplace_back(d);
    tokens += d.size();
  }
  require_calibration_tokens(tokens);
  const auto hidden = static_cast<std::size_t>(model_.spec().hidden_size);
  residual_.resize(tokens * hidden);
  std::size_t at = 0;
  for (const auto& d : documents_) {
    engine_.embed(std::span(&d, 1), std::span(residual_).subspan(at, d.size() * hidden));
    at += d.size() * hidden;
  }
}

bool BlockFeedback::covers(const PlannedTensor& p) const {
  return p.role == TensorRole::kBlockMatrix && has_hessian(p.site) && has_grid(p.used);
}

BlockFeedback::Rounded BlockFeedback::take(std::size_t index, ProgressSink& progress) {
  const int layer = plan_->tensors.at(index).layer;
  while (next_layer_ <= layer) compute_block(next_layer_++, progress);
  const auto found = rounded_.find(index);
  if (found == rounded_.end())
    throw Error(ErrorCode::kInternal,
                fmt::format("{} is not of the block computed last", plan_->tensors[index].name));
  Rounded rounded = std::move(found->second);
  rounded_.erase(found);
  return rounded;
}

void BlockFeedback::run_block(int layer, engine::ForwardObserver* observer, ProgressSink& progress) {
  const auto hidden = static_cast<std::size_t>(model_.spec().hidden_size);
  std::vector<float> passing;
  std::size_t at = 0;
  for (std::size_t d = 0; d < documents_.size(); d += kDocumentsAtOnce) {
    progress.throw_if_cancelled();
    const auto some = std::span(documents_).subspan(d, std::min(kDocumentsAtOnce, documents_.size() - d));
    std::size_t size = 0;
    for (const auto& document : some) size += document.size() * hidden;
    std::span<float> stream = std::span(residual_).subspan(at, size);
    at += size;
    if (observer != nullptr) {  // only to be watched: what goes on is computed with the rounded block
      passing.assign(stream.begin(), stream.end());
      stream = passing;
    }
    engine_.forward_block(layer, some, stream, observer);
  }
}

void BlockFeedback::compute_block(int layer, ProgressSink& progress) {
  rounded_.clear();
  progress.update("rounding blocks", static_cast<std::uint64_t>(layer), model_.spec().layers.size(),
                  "blocks");
  HessianCollector hessians(layer, engine_.pool());
  run_block(layer, &hessians, progress);
  for (std::size_t i = 0; i < plan_->tensors.size(); ++i) {
    const PlannedTensor& p = plan_->tensors[i];
    if (p.layer != layer || !covers(p)) continue;
    progress.throw_if_cancelled();
    Rounded rounded = round(p, hessians);
    replace_weights(p, rounded.bytes);
    rounded_.insert_or_assign(i, std::move(rounded));
  }
  run_block(layer, nullptr, progress);
  for (const std::string& name : replaced_) model_.restore(name);
  replaced_.clear();
}

BlockFeedback::Rounded BlockFeedback::round(const PlannedTensor& p, const HessianCollector& hessians) {
  const TensorReader reader(model_, p);
  const auto columns = static_cast<std::size_t>(p.columns), matrices = static_cast<std::size_t>(p.matrices()),
             rows = static_cast<std::size_t>(p.rows) / matrices;
  const std::size_t row_bytes = formats::bytes_of(p.used, 1, columns);
  Rounded out;
  out.bytes.resize(matrices * rows * row_bytes);
  out.report.planned = p;
  ThreadPool& pool = engine_.pool();
  double lost = 0, all = 0, output = 0;
  for (std::size_t m = 0; m < matrices; ++m) {
    const std::vector<float> weights = read_rows_of(reader, m * rows, rows, columns);
    const std::span<std::byte> bytes = std::span(out.bytes).subspan(m * rows * row_bytes, rows * row_bytes);
    const Hessian* h = hessians.find(p.site, static_cast<int>(m));
    const bool few = h == nullptr || (matrices > 1 && h->tokens < kLeastExpertTokens);
    std::vector<float> importance;
    if (!few && plan_->importance) {
      for (std::size_t c = 0; c < columns; ++c) {
        const std::size_t source = p.column_order.empty() ? c : static_cast<std::size_t>(p.column_order[c]);
        importance.push_back(static_cast<float>(h->at(source, source)));
      }
    }
    const RowQuantizer quantizer(p.used, columns, importance);
    pool.for_pieces(rows, 8, [&](std::size_t begin, std::size_t end, int) {
      for (std::size_t r = begin; r < end; ++r)
        quantizer.quantize(weights.data() + r * columns, bytes.data() + r * row_bytes);
    });
    const MatrixGrid grid = grid_of_blocks(p.used, bytes, rows, columns);
    if (!few) {
      if (const auto factor = factor_inverse(*h, p.column_order, options_.damping, options_.order)) {
        if (factor->damping > options_.damping)
          warnings_.push_back(fmt::format("{}: damped by {} of the mean", p.name, factor->damping));
        set_codes(p.used, round_with_feedback(weights, grid, *factor, pool), bytes, columns);
      } else {
        warnings_.push_back(
            fmt::format("{}: its Hessian is not positive definite, rounded without feedback", p.name));
      }
    }
    std::vector<float> values(weights.size());
    for (std::size_t r = 0; r < rows; ++r)
      kernels::kernels().dequantize(p.used, bytes.data() + r * row_bytes, values.data() + r * columns,
                                    columns);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double w = weights[i], d = w - static_cast<double>(values[i]);
      all += w * w;
      lost += d * d;
    }
    if (!few)
      output += output_error(weights, values, *h, p.column_order, pool) / static_cast<double>(matrices);
  }
  out.report.square_sum = all;
  out.report.relative_error = all > 0 ? std::sqrt(lost / all) : 0;
  out.report.weighted_error = std::sqrt(output);
  return out;
}

void BlockFeedback::replace_weights(const PlannedTensor& p, std::span<const std::byte> bytes) {
  const auto columns = static_cast<std::size_t>(p.columns);
  const std::size_t row_bytes = formats::bytes_of(p.used, 1, columns);
  std::vector<std::vector<float>> values;
  std::vector<std::size_t> ends;
  std::size_t end = 0;
  for (const std::string& name : p.weights) {
    values.emplace_back(model_.weight(name).elements());
    end += values.back().size() / columns;
    ends.push_back(end);
  }
  std::vector<float> row(columns);
  for (std::size_t r = 0; r < static_cast<std::size_t>(p.rows); ++r) {
    kernels::kernels().dequantize(p.used, bytes.data() + r * row_bytes, row.data(), columns);
    const std::size_t source = p.row_order.empty() ? r : static_cast<std::size_t>(p.row_order[r]);
    const auto weight = static_cast<std::size_t>(std::ranges::upper_bound(ends, source) - ends.begin());
    float* out = values[weight].data() + (source - (weight == 0 ? 0 : ends[weight - 1])) * columns;
    for (std::size_t c = 0; c < columns; ++c)
      out[p.column_order.empty() ? c : static_cast<std::size_t>(p.column_order[c])] = row[c];
  }
  for (std::size_t w = 0; w < p.weights.size(); ++w) {
    model_.replace(p.weights[w], std::move(values[w]));
    replaced_.push_back(p.weights[w]);
  }
}

}  // namespace wring::quantize
