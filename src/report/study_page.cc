// Sections and sentences of a study's page. Sentences that name a winner name its conditions too, and pairs
// that the documents do not tell apart are listed instead of ranked.
#include "report/study_page.h"

#include <algorithm>

#include "report/numbers.h"
#include "report/study_tables.h"

namespace wring::report {
namespace {

using lab::CandidateResult;
using lab::StudyResults;

constexpr std::size_t kShownDocuments = 3;
constexpr std::size_t kShownTokens = 4;
// Percentile intervals of means undercover noticeably below about this many units.
constexpr std::int64_t kFewDocuments = 30;

class Builder {
 public:
  Builder(const StudyResults& study, Language language) : study_(study), language_(language) {
    for (const CandidateResult& c : study.candidates) {
      if (c.eval.against) compared_.push_back(&c);
    }
  }

  Page page() {
    Page page;
    page.language = language_code(language_);
    page.title = say(Text::kTitle, study_.model);
    const evaluate::EvalSummary& source = study_.candidates.front().eval;
    page.subtitle = say(Text::kSubtitle, compared_.size(), study_.candidates.front().type, source.documents,
                        grouped(source.tokens), study_.compute_mode, study_.root_hash.substr(0, 16));
    page.sections = {glance(), quality(), size_and_speed(), tails()};
    if (source.domains.size() > 1) page.sections.push_back(domains());
    page.sections.push_back(worst());
    page.sections.push_back({say(Text::kConditions), {TableBlock{conditions_table(study_, language_), ""}}});
    page.sections.push_back({say(Text::kNotMeasured), {List{not_measured()}}});
    page.sections.push_back({say(Text::kTerms), {terms()}});
    return page;
  }

 private:
  template <class... Args>
  std::string say(Text key, Args&&... args) const {
    return fill(language_, key, std::forward<Args>(args)...);
  }

  const CandidateResult& source() const { return study_.candidates.front(); }

  List findings() const {
    List list;
    if (study_.already_quantized) list.items.push_back(say(Text::kQuantizedSource, source().type));
    if (compared_.empty()) return list;
    const auto loss = [](const CandidateResult* c) { return c->eval.against->delta_nll.mean; };
    const CandidateResult& best = **std::ranges::min_element(compared_, {}, loss);
    list.items.push_back(say(Text::kSmallestLoss, best.name, with_interval(best.eval.against->delta_nll),
                             fixed(best.eval.against->retained, 2) + " %"));
    const CandidateResult& small =
        **std::ranges::min_element(compared_, {}, [](const CandidateResult* c) { return c->file_bytes; });
    list.items.push_back(say(Text::kSmallestFile, small.name, megabytes(small.file_bytes) + " MB",
                             megabytes(source().file_bytes) + " MB",
                             percent_of(small.file_bytes, source().file_bytes)));
    add_fastest(list);
    add_pairs(list);
    return list;
  }

  static std::string percent_of(std::uint64_t part, std::uint64_t whole) {
    return fixed(100 * static_cast<double>(part) / static_cast<double>(whole), 1) + " %";
  }

  void add_fastest(List& list) const {
    const auto decode = [](const CandidateResult* c) { return c->speeds.front().decode_tokens_per_s.median; };
    std::vector<const CandidateResult*> timed;
    std::ranges::copy_if(compared_, std::back_inserter(timed),
                         [](const CandidateResult* c) { return !c->speeds.empty(); });
    if (timed.empty() || source().speeds.empty()) return;
    const CandidateResult& fast = **std::ranges::max_element(timed, {}, decode);
    const lab::SpeedRow& row = fast.speeds.front();
    list.items.push_back(say(Text::kFastestDecode, fast.name, fixed(decode(&fast), 1),
                             fixed(decode(&source()), 1), row.prompt, row.batch));
  }

  void add_pairs(List& list) const {
    std::vector<std::string> level, close;
    for (const CandidateResult* c : compared_) {
      const evaluate::Interval& d = c->eval.against->delta_nll;
      if (d.low <= 0 && d.high >= 0) level.push_back(c->name);
    }
    if (!level.empty()) {
      list.items.push_back(say(Text::kLossBelowResolution, fmt::format("{}", fmt::join(level, ", "))));
    }
    for (const lab::PairResult& p : study_.pairs) {
      if (p.delta_nll.low <= 0 && p.delta_nll.high >= 0) close.push_back(p.first + " / " + p.second);
    }
    if (study_.pairs.empty()) return;
    list.items.push_back(close.empty() ? say(Text::kAllTold)
                                       : say(Text::kNotTold, fmt::format("{}", fmt::join(close, ", "))));
  }

  Section glance() const {
    Section s{say(Text::kGlance), {findings(), TableBlock{study_table(study_, language_), ""}}};
    if (compared_.empty()) return s;
    s.blocks.push_back(Chart{"delta-nll", say(Text::kDeltaChart)});
    if (std::ranges::any_of(compared_, [](const auto* c) { return c->eval.against->kl.has_value(); })) {
      s.blocks.push_back(Chart{"size-kl", say(Text::kSizeChart)});
    }
    return s;
  }

  Section quality() const {
    Section s{say(Text::kQuality), {TableBlock{quality_table(study_, language_), say(Text::kQualityNote)}}};
    const Table kl = kl_table(study_, language_);
    if (!kl.rows().empty()) s.blocks.push_back(TableBlock{kl, say(Text::kKlNote, grouped(kl_positions()))});
    if (!study_.pairs.empty()) {
      Table pairs({{say(Text::kPair), Align::kLeft}, {say(Text::kDeltaNll), Align::kRight}});
      for (const lab::PairResult& p : study_.pairs) {
        pairs.add_row({p.first + " − " + p.second, with_interval(p.delta_nll)});
      }
      s.blocks.push_back(TableBlock{pairs, say(Text::kPairNote)});
    }
    return s;
  }

  std::int64_t kl_positions() const {
    for (const CandidateResult* c : compared_) {
      if (c->eval.against->kl) return c->eval.against->kl->positions;
    }
    return 0;
  }

  Section size_and_speed() const {
    Section s{say(Text::kSizeAndSpeed), {TableBlock{size_table(study_, language_), say(Text::kSizeNote)}}};
    const Table speed = speed_table(study_, language_);
    if (!speed.rows().empty()) s.blocks.push_back(TableBlock{speed, say(Text::kSpeedNote)});
    return s;
  }

  Section tails() const {
    return {say(Text::kTails),
            {TableBlock{tails_table(study_, language_), say(Text::kTailsNote, source().eval.documents)}}};
  }

  Section domains() const {
    return {say(Text::kDomains), {TableBlock{domain_table(study_, language_), say(Text::kDomainNote)}}};
  }

  Section worst() const {
    return {say(Text::kWorst),
            {TableBlock{worst_documents_table(study_, language_, kShownDocuments),
                        say(Text::kWorstDocumentsNote, kShownDocuments)},
             TableBlock{worst_tokens_table(study_, language_, kShownTokens),
                        say(Text::kWorstTokensNote, kShownTokens)}}};
  }

  std::vector<std::string> not_measured() const {
    std::vector<std::string> items = {say(Text::kMissingTasks)};
    if (source().eval.documents < kFewDocuments) {
      items.push_back(say(Text::kMissingFewDocuments, source().eval.documents));
    }
    items.push_back(say(Text::kMissingOneRun));
    items.push_back(say(Text::kMissingCorpus));
    items.push_back(say(Text::kMissingContext, grouped(study_.context)));
    if (study_.kl_positions != "all") items.push_back(say(Text::kMissingPositions, grouped(kl_positions())));
    if (source().speeds.empty()) {
      items.push_back(say(Text::kMissingNoSpeed));
    } else {
      if (study_.compute_mode == "exact") items.push_back(say(Text::kMissingPackedQuality));
      items.push_back(say(Text::kMissingSpeedShape));
      items.push_back(say(Text::kMissingServer));
    }
    items.push_back(say(Text::kMissingContamination));
    return items;
  }

  List terms() const {
    List list;
    for (const Text key : {Text::kTermNll, Text::kTermDelta, Text::kTermRetained, Text::kTermKl,
                           Text::kTermSameTop, Text::kTermInterval, Text::kTermHolm, Text::kTermUnits}) {
      list.items.push_back(say(key));
    }
    return list;
  }

  const StudyResults& study_;
  Language language_;
  std::vector<const CandidateResult*> compared_;
};

}  // namespace

Page study_page(const StudyResults& study, Language language) {
  return Builder(study, language).page();
}

}  // namespace wring::report
