#include "quantize/calibration_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "engine/scheduler.h"

namespace wring::quantize {

void require_calibration_tokens(std::uint64_t tokens) {
  if (tokens >= kLeastCalibrationTokens) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("the calibration texts hold {} tokens, too few: at least {} are needed", tokens,
                          kLeastCalibrationTokens));
}

void run_calibration(engine::Engine& engine, std::span<const std::vector<engine::TokenId>> documents,
                     const std::string& source, engine::ForwardObserver& observer, ProgressSink& progress,
                     const std::function<void()>& after_group) {
  std::uint64_t total = 0, done = 0;
  for (const auto& document : documents) total += document.size();
  with_context(source, [&] { require_calibration_tokens(total); });
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
    } while (scheduler.step(&observer));
    after_group();
  }
  progress.update("calibrating", done, total, "tokens");
}

}  // namespace wring::quantize
