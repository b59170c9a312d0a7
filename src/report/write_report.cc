// Writing a report: one page and one set of numbers, three files.
#include "report/write_report.h"

#include <nlohmann/json.hpp>
#include <system_error>

#include "base/atomic_file.h"
#include "base/error.h"
#include "report/html.h"
#include "report/study_page.h"

namespace wring::report {

ReportFiles write_report(const lab::StudyResults& study, const std::filesystem::path& folder,
                         Language language) {
  if (study.candidates.empty())
    throw Error(ErrorCode::kInternal, "a report needs at least the source's results");
  const ReportFiles paths{folder / "report.html", folder / "report.md", folder / "report.json"};
  const nlohmann::json data = report_json(study);
  const Page page = study_page(study, language);
  std::error_code fault;
  std::filesystem::create_directories(folder, fault);
  if (fault) throw_errno(fault.value(), "making the report's folder", folder.string());
  write_file_atomically(paths.html, to_html(page, data));
  write_file_atomically(paths.markdown, to_markdown(page));
  write_file_atomically(paths.json, data.dump(1) + "\n");
  return paths;
}

}  // namespace wring::report
