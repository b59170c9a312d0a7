// Calibration as two commands need it: texts in, importance or the range of inputs out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/model_files.h"
#include "formats/imatrix.h"
#include "quantize/largest_inputs.h"

namespace wring::cli {

/// The documents of `texts` as ids, each cut at `context` tokens (0: 1,024, or the model's context if that is
/// less).
std::vector<std::vector<engine::TokenId>> calibration_documents(const engine::ModelFiles& files,
                                                                const std::vector<std::string>& texts,
                                                                std::int64_t context);

/// Σ x² over the same documents.
formats::Imatrix calibrate(const engine::ModelFiles& files, const std::vector<std::string>& texts,
                           std::int64_t context, int threads);

/// The largest magnitude of each map's inputs over the same documents.
quantize::LargestInputs calibrate_inputs(const engine::ModelFiles& files,
                                         const std::vector<std::string>& texts, std::int64_t context,
                                         int threads);

}  // namespace wring::cli
