// The tables of a study, each from its results alone.
#pragma once

#include "lab/study_results.h"
#include "report/table.h"
#include "report/texts.h"

namespace wring::report {

/// One row a candidate: file, bits, NLL, ΔNLL, R, KL, same top, speed and memory at the first measured shape.
/// What a terminal shows at the end of a study.
Table study_table(const lab::StudyResults& study, Language language = Language::kEnglish);

Table quality_table(const lab::StudyResults& study, Language language);
Table kl_table(const lab::StudyResults& study, Language language);
Table size_table(const lab::StudyResults& study, Language language);
/// One row a candidate and shape.
Table speed_table(const lab::StudyResults& study, Language language);
Table tails_table(const lab::StudyResults& study, Language language);
/// One row a domain; one column a candidate.
Table domain_table(const lab::StudyResults& study, Language language);
Table worst_documents_table(const lab::StudyResults& study, Language language, std::size_t each);
Table worst_tokens_table(const lab::StudyResults& study, Language language, std::size_t each);
/// Conditions under which everything was measured: item, value.
Table conditions_table(const lab::StudyResults& study, Language language);

}  // namespace wring::report
