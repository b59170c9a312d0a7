// Every sentence and heading of a report, in one table a language. Numbers enter through fmt's {} places,
// which a translation may reorder ({1} before {0}).
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace wring::report {

enum class Language { kEnglish };
std::string_view language_code(Language language);  // "en"

enum class Text {
  kTitle,
  kSubtitle,
  kQuantizedSource,
  // Sections.
  kGlance,
  kQuality,
  kSizeAndSpeed,
  kTails,
  kDomains,
  kWorst,
  kConditions,
  kNotMeasured,
  kTerms,
  // At a glance.
  kSmallestLoss,
  kSmallestFile,
  kFastestDecode,
  kNotTold,
  kAllTold,
  kLossBelowResolution,
  // Columns.
  kModel,
  kType,
  kFile,
  kBitsPerWeight,
  kBitsPerWeightFile,
  kNll,
  kPpl,
  kDeltaNll,
  kRetained,
  kPValue,
  kKlMean,
  kKlMedian,
  kKlP95,
  kKlP99,
  kKlP999,
  kKlMax,
  kSameTop,
  kRmsDeltaP,
  kBitsPerByte,
  kPrompt,
  kBatch,
  kTtft,
  kPrefill,
  kDecode,
  kPrefillMedian,
  kDecodeMedian,
  kMemory,
  kQuantizeSeconds,
  kMatrixError,
  kMatrixWeightedError,
  kMeanDelta,
  kP50,
  kP95,
  kP99,
  kMax,
  kDomain,
  kDocuments,
  kTokens,
  kDocument,
  kPosition,
  kToken,
  kContext,
  kSourceNll,
  kItem,
  kValue,
  kMeaning,
  kPair,
  kReference,
  // Notes and captions.
  kDeltaChart,
  kSizeChart,
  kQualityNote,
  kKlNote,
  kPairNote,
  kSizeNote,
  kSpeedNote,
  kTailsNote,
  kDomainNote,
  kWorstDocumentsNote,
  kWorstTokensNote,
  // How it was measured.
  kConditionModel,
  kConditionHash,
  kConditionDocuments,
  kConditionDocumentsValue,
  kConditionContext,
  kConditionPositions,
  kConditionPositions32,
  kConditionPositionsAll,
  kConditionCalibration,
  kConditionCalibrationValue,
  kConditionMode,
  kConditionModeExact,
  kConditionModePacked,
  kConditionMachine,
  kConditionMachineValue,
  kConditionPeaks,
  kConditionPeaksValue,
  kConditionSpeed,
  kConditionSpeedValue,
  kConditionStatistics,
  kConditionStatisticsValue,
  kConditionBuild,
  kConditionProtocol,
  kConditionRows,
  kConditionRowsValue,
  kConditionFiles,
  // What was not measured.
  kMissingTasks,
  kMissingFewDocuments,
  kMissingOneRun,
  kMissingCorpus,
  kMissingContext,
  kMissingPositions,
  kMissingPackedQuality,
  kMissingNoSpeed,
  kMissingSpeedShape,
  kMissingServer,
  kMissingContamination,
  // Terms.
  kTermNll,
  kTermDelta,
  kTermRetained,
  kTermKl,
  kTermSameTop,
  kTermInterval,
  kTermHolm,
  kTermUnits,
  kCount,
};

/// The text as it stands in the table.
std::string_view text(Language language, Text key);

/// The text with its {} places filled.
template <class... Args>
std::string fill(Language language, Text key, Args&&... args) {
  return fmt::format(fmt::runtime(text(language, key)), args...);
}

}  // namespace wring::report
