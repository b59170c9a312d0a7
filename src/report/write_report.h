// The three files of a report: report.html, report.md and report.json, each written whole or not at all.
#pragma once

#include <filesystem>

#include "lab/study_results.h"
#include "report/json_report.h"
#include "report/study_tables.h"
#include "report/texts.h"

namespace wring::report {

struct ReportFiles {
  std::filesystem::path html, markdown, json;
};

/// Errors: kIo; kInternal for a study without candidates.
ReportFiles write_report(const lab::StudyResults& study, const std::filesystem::path& folder,
                         Language language = Language::kEnglish);

}  // namespace wring::report
