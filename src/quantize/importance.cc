#include "quantize/importance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "engine/scheduler.h"
#include "model/names.h"

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
    : spec_(&spec), pool_(&pool), sums_(spec.layers.size() * model::kSites) {
  model::require_plain(spec, fmt::format("importance of {} models is not taken yet", spec.model_type));
  for (const model::LinearUse& use : model::block_linears(spec)) {
    Sums& sums = sums_of(use.layer, use.site);
    sums.group.assign(static_cast<std::size_t>(use.linear->columns), 0.0);
    sums.total = sums.group;
  }
}

ImportanceCollector::Sums& ImportanceCollector::sums_of(int layer, model::Site site) {
  return sums_[static_cast<std::size_t>(layer) * model::kSites + static_cast<std::size_t>(site)];
}

void ImportanceCollector::on_input(int layer, model::Site site, const engine::Rows& inputs) {
  Sums& sums = sums_of(layer, site);
  pool_->for_pieces(sums.group.size(), kStrip, [&](std::size_t begin, std::size_t end, int) {
    add_squares(inputs, begin, end, sums.group.data());
  });
  sums.group_tokens += static_cast<std::uint64_t>(inputs.count);
}

void ImportanceCollector::merge() {
  for (Sums& s : sums_) {
    for (std::size_t c = 0; c < s.total.size(); ++c) s.total[c] += s.group[c];
    s.total_tokens += s.group_tokens;
    std::ranges::fill(s.group, 0.0);
    s.group_tokens = 0;
  }
}

formats::Imatrix ImportanceCollector::result() const {
  formats::Imatrix imatrix;
  for (const model::LinearUse& use : model::block_linears(*spec_)) {
    const Sums& sums =
        sums_[static_cast<std::size_t>(use.layer) * model::kSites + static_cast<std::size_t>(use.site)];
    formats::ImatrixEntry entry;
    for (const double v : sums.total) {
      const auto narrow = static_cast<float>(v);
      if (!std::isfinite(narrow)) {
        throw Error(ErrorCode::kBadInput,
                    fmt::format("the squared inputs of {} sum to {}", use.linear->name, v), {},
                    "the model overflows on the calibration texts");
      }
      entry.sum_squares.push_back(narrow);
    }
    entry.counts = {static_cast<float>(sums.total_tokens)};
    imatrix.entries.emplace(model::gguf_name(spec_->model_type, use.linear->name + ".weight").value(),
                            std::move(entry));
  }
  return imatrix;
}

formats::Imatrix collect_importance(engine::Engine& engine,
                                    std::span<const std::vector<engine::TokenId>> documents,
                                    const std::string& source, ProgressSink& progress) {
  std::uint64_t total = 0, longest = 0, done = 0;
  for (const auto& document : documents) {
    total += document.size();
    longest = std::max<std::uint64_t>(longest, document.size());
  }
  if (total < kLeastCalibrationTokens) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("the calibration texts hold {} tokens, too few: at least {} are needed", total,
                            kLeastCalibrationTokens),
                source);
  }
  ImportanceCollector collector(engine.model().spec(), engine.pool());
  engine::SchedulerOptions options;
  options.max_sequences = static_cast<int>(kDocumentsPerGroup);
  for (std::size_t first = 0; first < documents.size(); first += kDocumentsPerGroup) {
    engine::Scheduler scheduler(engine, options);
    for (const auto& document :
         documents.subspan(first, std::min(kDocumentsPerGroup, documents.size() - first))) {
      if (document.empty()) continue;
      engine::Request request;
      request.prompt = document;
      request.on_finish = [&done, n = document.size()](engine::FinishReason) { done += n; };
      scheduler.submit(std::move(request));
    }
    do {
      progress.throw_if_cancelled();
      progress.update("calibrating", done, total, "tokens");
    } while (scheduler.step(&collector));
    collector.merge();
  }
  progress.update("calibrating", done, total, "tokens");
  formats::Imatrix imatrix = collector.result();
  imatrix.datasets = {source};
  imatrix.chunk_count = static_cast<std::uint32_t>(documents.size());
  imatrix.chunk_size = static_cast<std::uint32_t>(longest);
  return imatrix;
}

}  // namespace wring::quantize
