// Documents through the model, for an observer of calibration to see.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "engine/engine.h"
#include "engine/observer.h"

namespace wring::quantize {

inline constexpr std::size_t kDocumentsPerGroup = 8;
/// Below this, columns that matter may look as if they did not.
inline constexpr std::size_t kLeastCalibrationTokens = 16;

/// Errors: kBadInput for fewer than kLeastCalibrationTokens.
void require_calibration_tokens(std::uint64_t tokens);

/// Runs `documents` (token ids, each at most the model's context) kDocumentsPerGroup at a time, then
/// `after_group`. `source` names the texts. Errors: kBadInput for fewer than kLeastCalibrationTokens tokens
/// in all; kCancelled.
void run_calibration(engine::Engine& engine, std::span<const std::vector<engine::TokenId>> documents,
                     const std::string& source, engine::ForwardObserver& observer, ProgressSink& progress,
                     const std::function<void()>& after_group);

}  // namespace wring::quantize
