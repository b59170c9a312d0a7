#include "cli/show_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "report/json_report.h"
#include "report/study_tables.h"
#include "report/write_report.h"

namespace wring::cli {

void show_report(const lab::StudyResults& results, const std::filesystem::path& folder, bool json) {
  const report::ReportFiles files = report::write_report(results, folder);
  if (json) {
    print_json(nlohmann::json{{"dir", folder.string()},
                              {"report", files.html.string()},
                              {"table", report::report_json(results).at("table")}});
  } else {
    print(fmt::format("{}\nreport: {}\n", report::study_table(results).to_text(), files.html.string()));
  }
}

}  // namespace wring::cli
