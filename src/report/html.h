// The page as one self-contained HTML file: style, script, Chart.js and the numbers are inlined, nothing is
// fetched.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "report/page.h"

namespace wring::report {

/// `data`: the study as report_json() gives it; the charts are drawn from it.
std::string to_html(const Page& page, const nlohmann::json& data);

}  // namespace wring::report
