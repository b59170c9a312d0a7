// How `wring study` and `wring report` end: the report's files written, the table shown.
#pragma once

#include <filesystem>

#include "lab/study_results.h"

namespace wring::cli {

/// Writes the report into `folder` and prints the overview, or one JSON object with `dir`, `report` and
/// `table`.
void show_report(const lab::StudyResults& results, const std::filesystem::path& folder, bool json);

}  // namespace wring::cli
