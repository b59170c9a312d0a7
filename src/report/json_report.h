// A study's numbers, unrounded, under stable keys: what scripts and the page's charts read.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "lab/study_results.h"

namespace wring::report {

/// "table" has one flat object a candidate, "candidates" everything.
nlohmann::json report_json(const lab::StudyResults& study);

}  // namespace wring::report
