#include "quantize/importance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "model/arch.h"

namespace wring::quantize {
namespace {

constexpr std::size_t kStrip = 64;  // columns whose sums one call keeps at hand

/// sums[c] += Σ over rows of x², for the columns begin … end.
void add_squares(const engine::Rows& inputs, std::size_t begin, std::size_t end, double* sums) {
  std::array<double, kStrip> strip;
  const std::size_t n = end - begin;
  std::copy_n(sums + begin, n, strip.begin());
  for (std::int64_t r = 0; r < inputs.count; ++r) {
    const float* row = inputs.data + static_cast<std::size_t>(r) * inputs.stride + begin;
    for (std::size_t c = 0; c < n; ++c) {
      const double x = row[c];
      strip[c] += x * x;
    }
  }
  std::copy_n(strip.begin(), n, sums + begin);
}

}  // namespace

ImportanceCollector::ImportanceCollector(const model::ModelSpec& spec, ThreadPool& pool)
    : model_type_(spec.model_type), pool_(&pool), sums_(spec.layers.size() * model::kSites) {
  if (model::find_architecture(spec.model_type).gguf_architecture.empty()) {
    throw Error(
        ErrorCode::kNotSupported,
        fmt::format("importance is kept under names of GGUF, which {} models have none in", spec.model_type));
  }
  for (PlannedTensor& t : planned_tensors(spec, FileForm::kGguf)) {
    if (t.role != TensorRole::kBlockMatrix) continue;
    Sums& sums = sums_[index_of(t.layer, t.site)];
    const auto matrices = static_cast<std::size_t>(t.matrices());
    sums.columns = static_cast<std::size_t>(t.columns);
    sums.group.assign(matrices * sums.columns, 0.0);
    sums.total = sums.group;
    sums.group_tokens.assign(matrices, 0);
    sums.total_tokens = sums.group_tokens;
    matrices_.push_back(std::move(t));
  }
}

void ImportanceCollector::on_input(int layer, model::Site site, int matrix, const engine::Rows& inputs) {
  Sums& sums = sums_[index_of(layer, site)];
  const auto m = static_cast<std::size_t>(matrix);
  double* const group = sums.group.data() + m * sums.columns;
  pool_->for_pieces(sums.columns, kStrip,
                    [&](std::size_t begin, std::size_t end, int) { add_squares(inputs, begin, end, group); });
  sums.group_tokens[m] += static_cast<std::uint64_t>(inputs.count);
}

void ImportanceCollector::merge() {
  for (Sums& s : sums_) {
    for (std::size_t c = 0; c < s.total.size(); ++c) s.total[c] += s.group[c];
    for (std::size_t m = 0; m < s.total_tokens.size(); ++m) s.total_tokens[m] += s.group_tokens[m];
    std::ranges::fill(s.group, 0.0);
    std::ranges::fill(s.group_tokens, 0);
  }
}

formats::ImatrixEntry ImportanceCollector::entry_of(const PlannedTensor& tensor) const {
  const Sums& sums = sums_[index_of(tensor.layer, tensor.site)];
  formats::ImatrixEntry entry;
  for (std::size_t m = 0; m < sums.total_tokens.size(); ++m) {
    for (std::size_t c = 0; c < sums.columns; ++c) {
      const std::size_t column =
          tensor.column_order.empty() ? c : static_cast<std::size_t>(tensor.column_order[c]);
      const double v = sums.total[m * sums.columns + column];
      const auto narrow = static_cast<float>(v);
      if (!std::isfinite(narrow)) {
        throw Error(ErrorCode::kBadInput, fmt::format("the squared inputs of {} sum to {}", tensor.name, v),
                    {}, "the model overflows on the calibration texts");
      }
      entry.sum_squares.push_back(narrow);
    }
    entry.counts.push_back(static_cast<float>(sums.total_tokens[m]));
  }
  return entry;
}

formats::Imatrix ImportanceCollector::result() const {
  formats::Imatrix imatrix;
  for (const PlannedTensor& t : matrices_) imatrix.entries.emplace(gguf_name_of(model_type_, t), entry_of(t));
  return imatrix;
}

formats::Imatrix collect_importance(engine::Engine& engine,
                                    std::span<const std::vector<engine::TokenId>> documents,
                                    const std::string& source, ProgressSink& progress) {
  std::uint64_t longest = 0;
  for (const auto& document : documents) longest = std::max<std::uint64_t>(longest, document.size());
  ImportanceCollector collector(engine.model().spec(), engine.pool());
  run_calibration(engine, documents, source, collector, progress, [&] { collector.merge(); });
  formats::Imatrix imatrix = collector.result();
  imatrix.datasets = {source};
  imatrix.chunk_count = static_cast<std::uint32_t>(documents.size());
  imatrix.chunk_size = static_cast<std::uint32_t>(longest);
  return imatrix;
}

}  // namespace wring::quantize
