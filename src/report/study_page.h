// A study as a page: what was found, with its conditions, and what was not measured.
#pragma once

#include "lab/study_results.h"
#include "report/page.h"
#include "report/texts.h"

namespace wring::report {

Page study_page(const lab::StudyResults& study, Language language);

}  // namespace wring::report
