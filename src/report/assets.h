// Files compiled into the program by CMake (cmake/Embed.cmake), so that a report needs nothing beside itself.
#pragma once

#include <string_view>

namespace wring::report {

extern const std::string_view kChartJs;  // Chart.js 3.9.1 of Debian's libjs-chart.js, MIT licence in its head
extern const std::string_view kReportCss;  // assets/report.css
extern const std::string_view kReportJs;   // assets/report.js

}  // namespace wring::report
