// The English table. A language is one such table; the compiler counts its entries.
#include "report/texts.h"

#include <array>
#include <utility>

namespace wring::report {
namespace {

using Entry = std::pair<Text, std::string_view>;

constexpr std::array kEnglish = std::to_array<Entry>({
    {Text::kTitle, "{}: what a smaller file costs"},
    {Text::kSubtitle,
     "{} candidates against the {} source, {} documents, {} scored tokens, {} compute mode. Every number "
     "below leads to "
     "rows of the ledger with root hash {}."},
    {Text::kQuantizedSource,
     "The source is itself quantized ({}). Differences are against that file, not against the model it was "
     "made from, "
     "and favour candidates whose grid lies near its own."},

    {Text::kGlance, "At a glance"},
    {Text::kQuality, "How well the next token is still predicted"},
    {Text::kSizeAndSpeed, "Size, speed, memory"},
    {Text::kTails, "Beyond the mean: documents that lost more"},
    {Text::kDomains, "By domain"},
    {Text::kWorst, "Where it went wrong most"},
    {Text::kConditions, "How it was measured"},
    {Text::kNotMeasured, "What was not measured"},
    {Text::kTerms, "How to read the terms"},

    {Text::kSmallestLoss,
     "Smallest loss among the candidates: {}, ΔNLL {} (95 % interval). The probability given to the token "
     "that came is "
     "{} of the source's in the geometric mean."},
    {Text::kSmallestFile, "Smallest file: {}, {} instead of {} ({})."},
    {Text::kFastestDecode,
     "Highest median decode rate in this run: {}, {} tokens/s (source {}), {} tokens in, {} at a time."},
    {Text::kNotTold,
     "These pairs are not told apart by these documents (the interval of their difference holds 0): {}."},
    {Text::kAllTold,
     "All pairs of candidates are told apart by these documents, without correction for their number."},
    {Text::kLossBelowResolution,
     "Not distinguishable from the source on these documents (the interval of ΔNLL holds 0): {}."},

    {Text::kModel, "model"},
    {Text::kType, "type"},
    {Text::kFile, "file MB"},
    {Text::kBitsPerWeight, "bits/weight"},
    {Text::kBitsPerWeightFile, "bits/weight, file"},
    {Text::kNll, "NLL"},
    {Text::kPpl, "PPL"},
    {Text::kDeltaNll, "ΔNLL [95 %]"},
    {Text::kRetained, "R %"},
    {Text::kPValue, "p (Holm)"},
    {Text::kKlMean, "KL mean"},
    {Text::kKlMedian, "median"},
    {Text::kKlP95, "p95"},
    {Text::kKlP99, "KL p99"},
    {Text::kKlP999, "p99.9"},
    {Text::kKlMax, "max"},
    {Text::kSameTop, "same top %"},
    {Text::kRmsDeltaP, "RMS Δp %"},
    {Text::kBitsPerByte, "bits/byte"},
    {Text::kPrompt, "tokens in"},
    {Text::kBatch, "at a time"},
    {Text::kTtft, "first token ms [min, max]"},
    {Text::kPrefill, "prefill tok/s [min, max]"},
    {Text::kDecode, "decode tok/s [min, max]"},
    {Text::kPrefillMedian, "prefill tok/s"},
    {Text::kDecodeMedian, "decode tok/s"},
    {Text::kMemory, "weights+KV+work MB"},
    {Text::kQuantizeSeconds, "made in s"},
    {Text::kMatrixError, "matrix error"},
    {Text::kMatrixWeightedError, "weighted"},
    {Text::kMeanDelta, "mean ΔNLL"},
    {Text::kP50, "p50"},
    {Text::kP95, "p95"},
    {Text::kP99, "p99"},
    {Text::kMax, "largest"},
    {Text::kDomain, "domain"},
    {Text::kDocuments, "documents"},
    {Text::kTokens, "tokens"},
    {Text::kDocument, "document"},
    {Text::kPosition, "position"},
    {Text::kToken, "token"},
    {Text::kContext, "after"},
    {Text::kSourceNll, "source NLL"},
    {Text::kItem, "item"},
    {Text::kValue, "value"},
    {Text::kMeaning, "meaning"},
    {Text::kPair, "pair"},
    {Text::kReference, "reference"},

    {Text::kDeltaChart,
     "Increase of NLL over the source, nats a token; whiskers are 95 % intervals over documents. Left is "
     "better; 0 is the "
     "source."},
    {Text::kSizeChart,
     "File size against mean KL divergence from the source; whiskers are 95 % intervals over documents. The "
     "lower left is "
     "better; the source itself lies at 0."},
    {Text::kQualityNote,
     "Negative log-likelihood over all tokens of a document but its first, natural logarithm, lower is "
     "better. ΔNLL, R and p "
     "are against the source in the same engine and mode."},
    {Text::kKlNote,
     "KL(source ‖ candidate) in nats over the whole vocabulary at {} positions. Same top: share of them at "
     "which both put the "
     "same token first. RMS Δp: root mean square change of the probability of the token that came."},
    {Text::kPairNote,
     "ΔNLL of the first minus the second on the same documents, with its own paired 95 % interval, not "
     "corrected for the "
     "number of pairs. An interval that holds 0 ranks neither."},
    {Text::kSizeNote,
     "1 MB = 10⁶ bytes, weight files only. Bits per weight are given over the quantized matrices and over "
     "the whole file: "
     "embeddings, norms and (unless the recipe says otherwise) the head stay at the source's precision. "
     "Matrix error: relative "
     "error of the quantized matrices' weights. Weighted: the same with every input column counted by its "
     "importance, root "
     "mean square over the matrices. A recipe with +imatrix lets columns go that inputs hardly reach: its "
     "matrix error may "
     "be large where the weighted one, which the model feels, is small."},
    {Text::kSpeedNote,
     "Median of the runs with the smallest and largest observed, which is not a confidence interval. First "
     "token: from the "
     "request to its first token, sampling included. The last column adds up the weights' bytes, KV cache "
     "and "
     "work space of the "
     "engine; it is no measured peak of the process. Weights of files read in place are counted though the "
     "system may share "
     "or drop them."},
    {Text::kTailsNote,
     "ΔNLL of whole documents, sorted: 95 % of the documents lie at or below p95. It says nothing of the "
     "probability that an "
     "answer fails. With {} documents p99 lies between the two worst."},
    {Text::kDomainNote, "ΔNLL with paired 95 % intervals over the documents of each domain."},
    {Text::kWorstDocumentsNote,
     "The documents of each candidate with the largest ΔNLL, at most {} of its 20 recorded ones."},
    {Text::kWorstTokensNote,
     "The tokens of each candidate whose NLL rose most, at most {} of those recorded (5 a document at most). "
     "Examples of how "
     "it fails, not a sample."},

    {Text::kConditionModel, "model"},
    {Text::kConditionHash, "model content hash"},
    {Text::kConditionDocuments, "documents"},
    {Text::kConditionDocumentsValue, "{} of {} planned, {} scored tokens, {} bytes of text"},
    {Text::kConditionContext, "context"},
    {Text::kConditionPositions, "KL positions"},
    {Text::kConditionPositions32, "32 fixed ones a document, ⌊(i+1)(T−1)/33⌋ for i = 0 … 31"},
    {Text::kConditionPositionsAll, "every position"},
    {Text::kConditionCalibration, "calibration"},
    {Text::kConditionCalibrationValue, "{} documents, {} tokens, disjoint from the evaluated ones"},
    {Text::kConditionMode, "compute mode of the evaluation"},
    {Text::kConditionModeExact,
     "exact: weights dequantized on the fly, float32 activations and cache. It shows what the format loses."},
    {Text::kConditionModePacked,
     "packed: integer products of the stored codes with activations in 8-bit codes. It shows what a user "
     "gets."},
    {Text::kConditionMachine, "machine"},
    {Text::kConditionMachineValue, "{}, CPU level {}, {} threads"},
    {Text::kConditionPeaks, "measured limits"},
    {Text::kConditionPeaksValue,
     "{:.1f} GB/s read bandwidth, {:.1f} · 10⁹ float32 and {:.1f} · 10⁹ byte multiply-adds a second"},
    {Text::kConditionSpeed, "speed"},
    {Text::kConditionSpeedValue,
     "{} tokens in, {} out, {} at a time; {} warm-ups, {} runs, candidates interleaved in one sitting, equal "
     "token ids; packed mode: integer products of the stored codes with activations in 8-bit codes"},
    {Text::kConditionStatistics, "intervals"},
    {Text::kConditionStatisticsValue,
     "paired percentile bootstrap over documents, {} resamples, {:.0f} %, seed {}; p-values corrected over "
     "the candidates "
     "(Holm)"},
    {Text::kConditionBuild, "build"},
    {Text::kConditionProtocol, "protocol"},
    {Text::kConditionRows, "ledger"},
    {Text::kConditionRowsValue, "{} rows, root hash {}"},
    {Text::kConditionFiles, "XXH3 of {}"},

    {Text::kMissingTasks,
     "Questions, instructions, free replies: none was asked. NLL and KL say how closely the source's "
     "predictions are kept, not "
     "how many tasks are solved; the two can rank candidates differently."},
    {Text::kMissingFewDocuments,
     "More documents: with only {}, percentile intervals tend to be too narrow, and per-domain ones more so. "
     "Do not rank "
     "candidates by them; run the standard preset."},
    {Text::kMissingOneRun,
     "Another calibration set or another quantization run: intervals cover the choice of evaluated documents "
     "only."},
    {Text::kMissingCorpus, "Other texts: these documents need not resemble your traffic."},
    {Text::kMissingContext, "Contexts longer than {} tokens."},
    {Text::kMissingPositions,
     "KL at the other positions: {} were taken, so p99.9 and the maximum rest on very few of them."},
    {Text::kMissingPackedQuality,
     "What packed mode adds: speed is measured in it, and the rounding of activations to 8-bit codes is not "
     "in "
     "these divergences. `wring eval --compute packed` measures it."},
    {Text::kMissingNoSpeed, "Speed."},
    {Text::kMissingSpeedShape, "Speed at other prompt lengths, batch sizes or on other machines."},
    {Text::kMissingServer,
     "Latency of a whole server: network, queueing and tokenization are outside of all timings."},
    {Text::kMissingContamination,
     "Whether the model saw these texts in training: equal texts are excluded from calibration by hash, "
     "similar ones are not."},

    {Text::kTermNll,
     "NLL: mean of −ln p over the tokens that came, p being the probability the model gave them. p = 80 % "
     "costs 0.223, 40 % "
     "0.916, 10 % 2.303. PPL = exp(NLL)."},
    {Text::kTermDelta, "ΔNLL: NLL of the candidate minus NLL of the source on the same tokens."},
    {Text::kTermRetained,
     "R = 100·exp(−ΔNLL) %: geometric mean of candidate to source probability of the tokens that came. It is "
     "not a share of "
     "right answers."},
    {Text::kTermKl,
     "KL: how far the candidate's whole next-token distribution lies from the source's; 0 means equal. It "
     "does not ask who is "
     "right."},
    {Text::kTermSameTop,
     "Same top: how often greedy decoding would have taken the same token, given the same text before it."},
    {Text::kTermInterval,
     "95 % interval: how far the difference moves when the documents are drawn again. It does not cover all "
     "future use."},
    {Text::kTermHolm,
     "p (Holm): chance of so large a ΔNLL on either side if there were none, corrected for the number of "
     "candidates."},
    {Text::kTermUnits,
     "bits/byte: NLL per byte of text, in bits, so that models with other tokenizers compare."},
});

constexpr bool is_complete(const auto& table) {
  if (table.size() != static_cast<std::size_t>(Text::kCount)) return false;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].first != static_cast<Text>(i)) return false;
  }
  return true;
}
static_assert(is_complete(kEnglish), "every text once, in the order of the enumeration");

}  // namespace

std::string_view language_code(Language) {
  return "en";
}

std::string_view text(Language, Text key) {
  return kEnglish[static_cast<std::size_t>(key)].second;
}

}  // namespace wring::report
