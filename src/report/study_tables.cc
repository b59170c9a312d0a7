// Rows and cells of a study's tables.
#include "report/study_tables.h"

#include <algorithm>

#include "report/numbers.h"

namespace wring::report {
namespace {

using evaluate::Comparison;
using lab::CandidateResult;
using lab::StudyResults;

const std::string kDash = "–";

class Columns {
 public:
  explicit Columns(Language language) : language_(language) {}
  Columns& left(Text key) {
    columns_.push_back({std::string(text(language_, key)), Align::kLeft});
    return *this;
  }
  Columns& right(Text key) {
    columns_.push_back({std::string(text(language_, key)), Align::kRight});
    return *this;
  }
  Columns& right(std::string title) {
    columns_.push_back({std::move(title), Align::kRight});
    return *this;
  }
  Table table() const { return Table(columns_); }

 private:
  Language language_;
  std::vector<Column> columns_;
};

std::string percent(double share, int digits) {
  return fixed(100 * share, digits);
}

// Below the number of resamples nothing can be told.
std::string p_value(double p) {
  return p < 0.001 ? "< 0.001" : fmt::format("{:.3f}", p);
}

std::string spread(const lab::Spread& s) {
  const int digits = s.median < 100 ? 1 : 0;
  return fmt::format("{:.{}f} [{:.{}f}, {:.{}f}]", s.median, digits, s.low, digits, s.high, digits);
}

std::string rate(const lab::Spread& s) {
  return fixed(s.median, s.median < 100 ? 1 : 0);
}

std::uint64_t total(const engine::Engine::Memory& m) {
  return m.weights_bytes + m.kv_bytes + m.workspace_bytes;
}

const Comparison* against(const CandidateResult& c) {
  return c.eval.against ? &*c.eval.against : nullptr;
}

const evaluate::KlSummary* kl_of(const CandidateResult& c) {
  const Comparison* a = against(c);
  return a != nullptr && a->kl ? &*a->kl : nullptr;
}

// What a token or context looks like on one line.
std::string visible(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "⏎";
    } else if (c == '\t') {
      out += "⇥";
    } else if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F) {
      out += c;
    }
  }
  return out;
}

}  // namespace

Table study_table(const StudyResults& study, Language language) {
  Table t = Columns(language)
                .left(Text::kModel)
                .right(Text::kFile)
                .right(Text::kBitsPerWeight)
                .right(Text::kNll)
                .right(Text::kDeltaNll)
                .right(Text::kRetained)
                .right(Text::kKlMean)
                .right(Text::kKlP99)
                .right(Text::kSameTop)
                .right(Text::kPrefillMedian)
                .right(Text::kDecodeMedian)
                .right(Text::kMemory)
                .table();
  for (const CandidateResult& c : study.candidates) {
    const Comparison* a = against(c);
    const evaluate::KlSummary* kl = kl_of(c);
    const lab::SpeedRow* speed = c.speeds.empty() ? nullptr : &c.speeds.front();
    t.add_row({c.name, megabytes(c.file_bytes), fixed(c.bits_per_weight, 2), fixed(c.eval.nll, 4),
               a == nullptr ? kDash : with_interval(a->delta_nll),
               a == nullptr ? kDash : fixed(a->retained, 2),
               kl == nullptr ? kDash : significant(kl->mean.mean),
               kl == nullptr ? kDash : significant(kl->p99), kl == nullptr ? kDash : percent(kl->same_top, 1),
               speed == nullptr ? kDash : rate(speed->prefill_tokens_per_s),
               speed == nullptr ? kDash : rate(speed->decode_tokens_per_s),
               speed == nullptr ? kDash : megabytes(total(speed->memory))});
  }
  return t;
}

Table quality_table(const StudyResults& study, Language language) {
  Table t = Columns(language)
                .left(Text::kModel)
                .right(Text::kNll)
                .right(Text::kPpl)
                .right(Text::kDeltaNll)
                .right(Text::kRetained)
                .right(Text::kPValue)
                .right(Text::kBitsPerByte)
                .table();
  for (const CandidateResult& c : study.candidates) {
    const Comparison* a = against(c);
    t.add_row({c.name, fixed(c.eval.nll, 4), fixed(c.eval.ppl, 4),
               a == nullptr ? kDash : with_interval(a->delta_nll),
               a == nullptr ? kDash : fixed(a->retained, 2),
               a == nullptr ? kDash : p_value(a->delta_nll.p_value), fixed(c.eval.bits_per_byte, 4)});
  }
  return t;
}

Table kl_table(const StudyResults& study, Language language) {
  Table t = Columns(language)
                .left(Text::kModel)
                .right(Text::kKlMean)
                .right(Text::kKlMedian)
                .right(Text::kKlP95)
                .right(Text::kP99)
                .right(Text::kKlP999)
                .right(Text::kKlMax)
                .right(Text::kSameTop)
                .right(Text::kRmsDeltaP)
                .table();
  for (const CandidateResult& c : study.candidates) {
    const evaluate::KlSummary* kl = kl_of(c);
    if (kl == nullptr) continue;
    t.add_row({c.name,
               fmt::format("{} [{}, {}]", significant(kl->mean.mean), significant(kl->mean.low),
                           significant(kl->mean.high)),
               significant(kl->p50), significant(kl->p95), significant(kl->p99), significant(kl->p999),
               significant(kl->max), percent(kl->same_top, 1), percent(kl->rms_delta_p, 2)});
  }
  return t;
}

Table size_table(const StudyResults& study, Language language) {
  Table t = Columns(language)
                .left(Text::kModel)
                .left(Text::kType)
                .right(Text::kFile)
                .right(Text::kBitsPerWeight)
                .right(Text::kBitsPerWeightFile)
                .right(Text::kMatrixError)
                .right(Text::kMatrixWeightedError)
                .right(Text::kQuantizeSeconds)
                .table();
  for (const CandidateResult& c : study.candidates) {
    t.add_row({c.name, c.type, megabytes(c.file_bytes), fixed(c.bits_per_weight, 3),
               fixed(c.file_bits_per_weight, 3), c.relative_error ? significant(*c.relative_error) : kDash,
               c.weighted_error ? significant(*c.weighted_error) : kDash,
               c.quantize_seconds ? fixed(*c.quantize_seconds, 1) : kDash});
  }
  return t;
}

Table speed_table(const StudyResults& study, Language language) {
  Table t = Columns(language)
                .left(Text::kModel)
                .right(Text::kPrompt)
                .right(Text::kBatch)
                .right(Text::kTtft)
                .right(Text::kPrefill)
                .right(Text::kDecode)
                .right(Text::kMemory)
                .table();
  for (const CandidateResult& c : study.candidates) {
    for (const lab::SpeedRow& s : c.speeds) {
      t.add_row({c.name, fmt::format("{}", s.prompt), fmt::format("{}", s.batch), spread(s.ttft_ms),
                 spread(s.prefill_tokens_per_s), spread(s.decode_tokens_per_s), megabytes(total(s.memory))});
    }
  }
  return t;
}

Table tails_table(const StudyResults& study, Language language) {
  Table t = Columns(language)
                .left(Text::kModel)
                .right(Text::kMeanDelta)
                .right(Text::kP50)
                .right(Text::kP95)
                .right(Text::kP99)
                .right(Text::kMax)
                .table();
  for (const CandidateResult& c : study.candidates) {
    const Comparison* a = against(c);
    if (a == nullptr) continue;
    const evaluate::Tails& d = a->document_delta;
    t.add_row({c.name, signed_fixed(a->delta_nll.mean, 4), signed_fixed(d.p50, 4), signed_fixed(d.p95, 4),
               signed_fixed(d.p99, 4), signed_fixed(d.max, 4)});
  }
  return t;
}

Table domain_table(const StudyResults& study, Language language) {
  Columns columns(language);
  columns.left(Text::kDomain).right(Text::kDocuments).right(Text::kTokens).right(Text::kSourceNll);
  for (const CandidateResult& c : study.candidates) {
    if (against(c) != nullptr) columns.right(c.name);
  }
  Table t = columns.table();
  if (study.candidates.empty()) return t;
  for (const evaluate::DomainSummary& d : study.candidates.front().eval.domains) {
    std::vector<std::string> row = {d.domain, grouped(d.documents), grouped(d.tokens), fixed(d.nll, 4)};
    for (const CandidateResult& c : study.candidates) {
      if (against(c) == nullptr) continue;
      const auto same = std::find_if(c.eval.domains.begin(), c.eval.domains.end(),
                                     [&](const evaluate::DomainSummary& o) { return o.domain == d.domain; });
      row.push_back(same == c.eval.domains.end() || !same->delta_nll ? kDash
                                                                     : with_interval(*same->delta_nll));
    }
    t.add_row(std::move(row));
  }
  return t;
}

Table worst_documents_table(const StudyResults& study, Language language, std::size_t each) {
  Table t = Columns(language)
                .left(Text::kModel)
                .left(Text::kDocument)
                .left(Text::kDomain)
                .right(Text::kNll)
                .right(Text::kMeanDelta)
                .table();
  for (const CandidateResult& c : study.candidates) {
    const Comparison* a = against(c);
    if (a == nullptr) continue;
    for (std::size_t i = 0; i < std::min(each, a->worst_documents.size()); ++i) {
      const evaluate::WorstDocument& d = a->worst_documents[i];
      t.add_row({c.name, d.id, d.domain, fixed(d.nll, 4), signed_fixed(d.delta_nll, 4)});
    }
  }
  return t;
}

Table worst_tokens_table(const StudyResults& study, Language language, std::size_t each) {
  Table t = Columns(language)
                .left(Text::kModel)
                .left(Text::kDocument)
                .right(Text::kPosition)
                .left(Text::kContext)
                .left(Text::kToken)
                .right(Text::kSourceNll)
                .right(Text::kNll)
                .table();
  for (const CandidateResult& c : study.candidates) {
    const Comparison* a = against(c);
    if (a == nullptr) continue;
    for (std::size_t i = 0; i < std::min(each, a->worst_tokens.size()); ++i) {
      const evaluate::WorstToken& w = a->worst_tokens[i];
      t.add_row({c.name, w.document, grouped(w.position), visible(w.context), visible(w.token),
                 fixed(w.reference_nll, 2), fixed(w.nll, 2)});
    }
  }
  return t;
}

Table conditions_table(const StudyResults& s, Language language) {
  Table t = Columns(language).left(Text::kItem).left(Text::kValue).table();
  const auto row = [&](Text item, std::string value) {
    t.add_row({std::string(text(language, item)), std::move(value)});
  };
  const auto list = [](const std::vector<int>& values) { return fmt::format("{}", fmt::join(values, ", ")); };
  row(Text::kConditionModel, fmt::format("{} ({}, {} parameters)", s.model, s.architecture,
                                         grouped(static_cast<std::int64_t>(s.parameters))));
  row(Text::kConditionHash, s.model_hash);
  if (!s.candidates.empty()) {
    const evaluate::EvalSummary& e = s.candidates.front().eval;
    row(Text::kConditionDocuments, fill(language, Text::kConditionDocumentsValue, e.documents,
                                        s.documents_planned, grouped(e.tokens), grouped(e.bytes)));
  }
  row(Text::kConditionContext, grouped(s.context));
  row(Text::kConditionPositions,
      std::string(text(
          language, s.kl_positions == "all" ? Text::kConditionPositionsAll : Text::kConditionPositions32)));
  row(Text::kConditionCalibration, s.calibration_documents == 0
                                       ? kDash
                                       : fill(language, Text::kConditionCalibrationValue,
                                              s.calibration_documents, grouped(s.calibration_tokens)));
  row(Text::kConditionMode,
      std::string(text(language,
                       s.compute_mode == "exact" ? Text::kConditionModeExact : Text::kConditionModePacked)));
  row(Text::kConditionMachine, fill(language, Text::kConditionMachineValue, s.cpu, s.cpu_level, s.threads));
  row(Text::kConditionPeaks,
      fill(language, Text::kConditionPeaksValue, s.read_bandwidth_gbps, s.fp32_gmacs, s.int8_gmacs));
  row(Text::kConditionSpeed, fill(language, Text::kConditionSpeedValue, list(s.speed.prompts),
                                  s.speed.generate, list(s.speed.batches), s.speed.warmups, s.speed.runs));
  row(Text::kConditionStatistics,
      fill(language, Text::kConditionStatisticsValue, grouped(evaluate::kResamples),
           100 * evaluate::kConfidence, evaluate::kBootstrapSeed));
  row(Text::kConditionBuild, s.build);
  row(Text::kConditionProtocol, s.protocol);
  row(Text::kConditionRows,
      fill(language, Text::kConditionRowsValue, grouped(static_cast<std::int64_t>(s.rows)), s.root_hash));
  for (const CandidateResult& c : s.candidates) {
    if (c.file_hash.empty()) continue;
    t.add_row({fill(language, Text::kConditionFiles, c.name), c.file_hash});
  }
  return t;
}

}  // namespace wring::report
