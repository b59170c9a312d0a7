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
  const bool grid = p.codes ? p.codes->kind != CodeKind::kFp8 : has_grid(p.used);
  return p.role == TensorRole::kBlockMatrix && has_hessian(p.site) && grid;
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

BlockFeedback::Rounded BlockFeedback::take(const PlannedTensor& planned, ProgressSink& progress) {
  const auto same = [&](const PlannedTensor& p) { return p.name == planned.name; };
  return take(static_cast<std::size_t>(std::ranges::find_if(plan_->tensors, same) - plan_->tensors.begin()),
              progress);
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
    std::vector<float> values;
    Rounded rounded = round(p, hessians, values);
    replace_weights(p, values);
    rounded_.insert_or_assign(i, std::move(rounded));
  }
  run_block(layer, nullptr, progress);
  for (const std::string& name : replaced_) model_.restore(name);
  replaced_.clear();
}

std::optional<InverseFactor> BlockFeedback::factor_of(const PlannedTensor& p, const Hessian& h) {
  std::optional<InverseFactor> factor = factor_inverse(h, p.column_order, options_.damping, options_.order);
  if (!factor) {
    warnings_.push_back(
        fmt::format("{}: its Hessian is not positive definite, rounded without feedback", p.name));
  } else if (factor->damping > options_.damping) {
    warnings_.push_back(fmt::format("{}: damped by {} of the mean", p.name, factor->damping));
  }
  return factor;
}

std::vector<float> BlockFeedback::round_blocks(const PlannedTensor& p, std::span<const float> weights,
                                               const Hessian* h, std::span<std::byte> blocks) {
  const auto columns = static_cast<std::size_t>(p.columns);
  const std::size_t rows = weights.size() / columns, row_bytes = formats::bytes_of(p.used, 1, columns);
  std::vector<float> importance;
  if (h != nullptr && plan_->importance) {
    for (std::size_t c = 0; c < columns; ++c) {
      const std::size_t source = p.column_order.empty() ? c : static_cast<std::size_t>(p.column_order[c]);
      importance.push_back(static_cast<float>(h->at(source, source)));
    }
  }
  const RowQuantizer quantizer(p.used, columns, importance);
  engine_.pool().for_pieces(rows, 8, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t r = begin; r < end; ++r)
      quantizer.quantize(weights.data() + r * columns, blocks.data() + r * row_bytes);
  });
  const std::optional<InverseFactor> factor = h != nullptr ? factor_of(p, *h) : std::nullopt;
  if (factor) {
    const MatrixGrid grid = grid_of_blocks(p.used, blocks, rows, columns);
    set_codes(p.used, round_with_feedback(weights, grid, *factor, engine_.pool()), blocks, columns);
  }
  std::vector<float> values(weights.size());
  for (std::size_t r = 0; r < rows; ++r)
    kernels::kernels().dequantize(p.used, blocks.data() + r * row_bytes, values.data() + r * columns,
                                  columns);
  return values;
}

std::vector<float> BlockFeedback::round_codes(const PlannedTensor& p, std::span<const float> weights,
                                              const Hessian* h, Rounded& rounded) {
  const auto columns = static_cast<std::size_t>(p.columns);
  ThreadPool& pool = engine_.pool();
  rounded.scales = fit_scales(*p.codes, weights, p.columns, p.largest, pool);
  if (options_.search && h != nullptr && p.codes->kind == CodeKind::kInt4) {
    std::vector<float> importance;
    for (std::size_t c = 0; c < columns; ++c) importance.push_back(static_cast<float>(h->at(c, c)));
    rounded.scales = search_int4_scales(*p.codes, weights, p.columns, importance, pool);
  }
  const CodedScales& scales = rounded.scales;
  MatrixGrid grid{
      weights.size() / columns, columns, static_cast<std::size_t>(scales.columns_per_scale), {}, {}, {}};
  for (const Level& level : levels(p.codes->kind)) grid.levels.push_back(level.value);
  for (std::size_t r = 0; r < grid.rows; ++r) {
    for (std::size_t c = 0; c < columns; c += grid.group)
      grid.scales.push_back(scales.of(static_cast<std::int64_t>(r), static_cast<std::int64_t>(c)));
  }
  grid.offsets.assign(grid.scales.size(), 0.0F);
  const std::optional<InverseFactor> factor = h != nullptr ? factor_of(p, *h) : std::nullopt;
  if (!factor) {
    rounded.codes = round_to_nearest(*p.codes, weights, p.columns, scales, pool);
    std::vector<float> values(rounded.codes.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = level_of(p.codes->kind, rounded.codes[i]) * grid.scales[i / grid.group];
    return values;
  }
  rounded.codes = round_with_feedback(weights, grid, *factor, pool);
  std::vector<float> values = values_of(grid, rounded.codes);
  for (std::uint8_t& code : rounded.codes) code = levels(p.codes->kind)[code].code;
  return values;
}

BlockFeedback::Rounded BlockFeedback::round(const PlannedTensor& p, const HessianCollector& hessians,
                                            std::vector<float>& values) {
  const TensorReader reader(model_, p);
  const auto columns = static_cast<std::size_t>(p.columns), matrices = static_cast<std::size_t>(p.matrices()),
             rows = static_cast<std::size_t>(p.rows) / matrices;
  const std::size_t bytes = p.codes ? 0 : rows * formats::bytes_of(p.used, 1, columns);
  const bool of_expert = p.site == model::Site::kExpertGateUp || p.site == model::Site::kExpertDown;
  Rounded out;
  out.bytes.resize(matrices * bytes);
  out.report.planned = p;
  double lost = 0, all = 0, output = 0;
  for (std::size_t m = 0; m < matrices; ++m) {
    const std::vector<float> weights = read_rows_of(reader, m * rows, rows, columns);
    const Hessian* h = hessians.find(p.site, p.expert >= 0 ? p.expert : static_cast<int>(m));
    if (h != nullptr && of_expert && h->tokens < kLeastExpertTokens) h = nullptr;
    const std::vector<float> rounded =
        p.codes ? round_codes(p, weights, h, out)
                : round_blocks(p, weights, h, std::span(out.bytes).subspan(m * bytes, bytes));
    for (std::size_t i = 0; i < rounded.size(); ++i) {
      const double w = weights[i], d = w - static_cast<double>(rounded[i]);
      all += w * w;
      lost += d * d;
    }
    if (h != nullptr)
      output +=
          output_error(weights, rounded, *h, p.column_order, engine_.pool()) / static_cast<double>(matrices);
    values.insert(values.end(), rounded.begin(), rounded.end());
  }
  out.report.square_sum = all;
  out.report.relative_error = all > 0 ? std::sqrt(lost / all) : 0;
  out.report.weighted_error = std::sqrt(output);
  return out;
}

void BlockFeedback::replace_weights(const PlannedTensor& p, std::span<const float> values) {
  const auto columns = static_cast<std::size_t>(p.columns);
  std::vector<std::vector<float>> by_weight;
  std::vector<std::size_t> ends;
  std::size_t end = 0;
  for (const std::string& name : p.weights) {
    by_weight.emplace_back(model_.weight(name).elements());
    end += by_weight.back().size() / columns;
    ends.push_back(end);
  }
  for (std::size_t r = 0; r < static_cast<std::size_t>(p.rows); ++r) {
    const std::size_t source = p.row_order.empty() ? r : static_cast<std::size_t>(p.row_order[r]);
    const auto weight = static_cast<std::size_t>(std::ranges::upper_bound(ends, source) - ends.begin());
    float* out = by_weight[weight].data() + (source - (weight == 0 ? 0 : ends[weight - 1])) * columns;
    for (std::size_t c = 0; c < columns; ++c)
      out[p.column_order.empty() ? c : static_cast<std::size_t>(p.column_order[c])] = values[r * columns + c];
  }
  for (std::size_t w = 0; w < p.weights.size(); ++w) {
    model_.replace(p.weights[w], std::move(by_weight[w]));
    replaced_.push_back(p.weights[w]);
  }
}

}  // namespace wring::quantize
