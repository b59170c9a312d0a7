// README.md and SHA256SUMS of a quantized folder.
#pragma once

#include <filesystem>
#include <string>

#include "model/model.h"
#include "quantize/plan.h"
#include "quantize/tensor_stream.h"

namespace wring::quantize {

/// What the folder `out` holds, what it was made from and how, what was kept, how to run it. Reads the source
/// once for its hash.
std::string model_card(const model::Model& source, const QuantPlan& plan, const QuantizeReport& report,
                       const std::filesystem::path& out);

/// Lines of `sha256sum` over the folder's files, by name. Errors: kIo.
std::string sha256_sums(const std::filesystem::path& folder);

}  // namespace wring::quantize
