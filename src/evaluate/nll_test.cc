// Documents end to end: known distributions through every path, then the engine on a tiny model.
#include "evaluate/nll.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/error.h"
#include "base/mapped_file.h"
#include "engine/engine.h"
#include "engine/scheduler.h"
#include "evaluate/engine_scorer.h"
#include "evaluate/summary.h"
#include "evaluate/testing.h"

namespace wring::evaluate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::KnownScorer;

Document document(const std::string& id, std::vector<TokenId> ids) {
  Document d;
  d.id = id;
  d.domain = "d";
  d.sha256 = "sha-" + id;
  d.scored_bytes = static_cast<std::int64_t>(ids.size());
  d.ids = std::move(ids);
  return d;
}

// Ids that mostly follow one another modulo `vocab`, so that KnownScorer is right and wrong in turn.
std::vector<Document> some_documents(int vocab) {
  std::vector<Document> documents;
  for (int d = 0; d < 5; ++d) {
    std::vector<TokenId> ids;
    for (int i = 0; i < 40 + 7 * d; ++i) ids.push_back((i + (i % 5 == 0 ? d : 0)) % vocab);
    documents.push_back(document("doc" + std::to_string(d), std::move(ids)));
  }
  return documents;
}

std::vector<DocumentResult> run_all(Scorer& scorer, const std::vector<Document>& documents,
                                    const Reference* reference,
                                    KlPositions positions = KlPositions::kThirtyTwo,
                                    ThreadPool* pool = nullptr) {
  DocumentRun run;
  run.documents = documents;
  for (std::size_t i = 0; i < documents.size(); ++i) run.which.push_back(i);
  run.reference = reference;
  run.positions = positions;
  run.pool = pool;
  std::vector<DocumentResult> results;
  run_documents(scorer, run, silent_progress(), "test", [&](std::size_t number, DocumentResult r) {
    EXPECT_EQ(number, results.size());  // in order, whatever the scorer's
    results.push_back(std::move(r));
  });
  return results;
}

ReferenceKey key_for(const std::vector<Document>& documents,
                     KlPositions positions = KlPositions::kThirtyTwo) {
  return {"model", tokenized_hash(documents), "exact", positions};
}

TEST(RunDocuments, NllIsTheSumOverAllTokensButTheFirst) {
  KnownScorer scorer(11, 3.0F);
  const std::vector<Document> documents = {document("a", {3, 4, 5, 9})};
  const auto results = run_all(scorer, documents, nullptr);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].tokens, 3);
  const double expected = -(2 * (3.0 - scorer.normalizer()) + (0.0 - scorer.normalizer()));
  EXPECT_NEAR(results[0].nll_sum, expected, 1e-12);
  EXPECT_TRUE(results[0].kl.empty());
}

TEST(RunDocuments, DivergencesOfKnownDistributions) {
  constexpr int kVocab = 11;
  KnownScorer reference_scorer(kVocab, 3.0F), scorer(kVocab, 1.0F);
  const auto documents = some_documents(kVocab);
  for (const KlPositions positions : {KlPositions::kThirtyTwo, KlPositions::kAll}) {
    const Reference reference =
        record_reference(reference_scorer, documents, key_for(documents, positions), {}, silent_progress());
    const auto results = run_all(scorer, documents, &reference, positions);
    // The same at every position: one likely token, the others equal.
    const double p = std::exp(3.0 - reference_scorer.normalizer()), q = std::exp(1.0 - scorer.normalizer());
    const double kl = p * std::log(p / q) + (1 - p) * std::log((1 - p) / (1 - q));
    for (std::size_t d = 0; d < documents.size(); ++d) {
      const std::size_t expected =
          positions == KlPositions::kAll
              ? documents[d].ids.size() - 1
              : kl_positions(static_cast<std::int64_t>(documents[d].ids.size()), positions).size();
      ASSERT_EQ(results[d].kl.size(), expected);
      for (const double v : results[d].kl) EXPECT_NEAR(v, kl, 1e-12);
      EXPECT_EQ(results[d].same_top, static_cast<std::int64_t>(expected));
      EXPECT_LE(results[d].worst_tokens.size(), kWorstTokensPerDocument);
    }
    const auto base = reference_results(reference, documents);
    const EvalSummary s = summarize(results, base);
    EXPECT_GT(s.against->delta_nll.mean, 0);
    EXPECT_NEAR(s.against->kl->mean.mean, kl, 1e-12);
  }
}

TEST(RunDocuments, AResumedRunMayLeaveDocumentsOut) {
  KnownScorer scorer(7, 2.0F);
  const auto documents = some_documents(7);
  const Reference reference = record_reference(scorer, documents, key_for(documents), {}, silent_progress());
  DocumentRun run;
  run.documents = documents;
  run.which = {3, 1};
  run.reference = &reference;
  std::vector<std::string> ids;
  run_documents(scorer, run, silent_progress(), "test", [&](std::size_t number, DocumentResult r) {
    EXPECT_EQ(documents[number].id, r.id);
    for (const double v : r.kl) EXPECT_EQ(v, 0);
    EXPECT_TRUE(r.worst_tokens.empty());  // nothing became worse
    ids.push_back(r.id);
  });
  EXPECT_THAT(ids, ::testing::ElementsAre("doc3", "doc1"));
}

TEST(RunDocuments, AnotherVocabularyIsRefusedGivingBothSizes) {
  KnownScorer seven(7, 2.0F), eight(8, 2.0F);
  const auto documents = some_documents(7);
  const Reference reference = record_reference(seven, documents, key_for(documents), {}, silent_progress());
  try {
    run_all(eight, documents, &reference);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("7"), HasSubstr("8"), HasSubstr("vocabulary")));
  }
  EXPECT_THROW(run_all(seven, documents, &reference, KlPositions::kAll), Error);
}

class CacheTest : public ::testing::Test {
 protected:
  testing::Scratch scratch_;
  KnownScorer scorer_{9, 2.0F};
  std::vector<Document> documents_ = some_documents(9);
  ReferenceKey key_ = key_for(documents_);
};

TEST_F(CacheTest, FileAndMemoryHoldTheSame) {
  const Reference memory = record_reference(scorer_, documents_, key_, {}, silent_progress());
  EXPECT_FALSE(Reference::open(scratch_.path(), key_).has_value());
  record_reference(scorer_, documents_, key_, scratch_.path(), silent_progress());
  const auto file = Reference::open(scratch_.path(), key_);
  ASSERT_TRUE(file.has_value());
  ASSERT_EQ(file->documents(), documents_.size());
  for (std::size_t d = 0; d < documents_.size(); ++d) {
    EXPECT_EQ(file->scores(d).log_probs, memory.scores(d).log_probs);
    EXPECT_EQ(file->scores(d).top1, memory.scores(d).top1);
    ASSERT_EQ(file->rows(d), 32U);
    for (std::size_t i = 0; i < 32; ++i) {
      const auto position =
          kl_positions(static_cast<std::int64_t>(documents_[d].ids.size()), key_.positions)[i];
      const std::vector<float> expected =
          scorer_.row_after(documents_[d].ids[static_cast<std::size_t>(position)]);
      EXPECT_THAT(file->row(d, i), ::testing::ElementsAreArray(expected));
      EXPECT_THAT(memory.row(d, i), ::testing::ElementsAreArray(expected));
    }
  }
}

TEST_F(CacheTest, OtherInputsHaveOtherNames) {
  ReferenceKey other = key_;
  EXPECT_EQ(other.hash(), key_.hash());
  other.model_hash = "another";
  EXPECT_NE(other.hash(), key_.hash());
  other = key_;
  other.positions = KlPositions::kAll;
  EXPECT_NE(other.hash(), key_.hash());
  other = key_;
  other.compute_mode = "packed";
  EXPECT_NE(other.hash(), key_.hash());
  std::vector<Document> changed = documents_;
  changed[2].ids.back() = 0;
  changed[2].ids.front() = 8;
  EXPECT_NE(tokenized_hash(changed), tokenized_hash(documents_));
}

TEST_F(CacheTest, EveryDamagedByteIsFoundAtTheLatestWhenItsRowIsRead) {
  record_reference(scorer_, documents_, key_, scratch_.path(), silent_progress());
  const auto path = reference_path(scratch_.path(), key_);
  const std::string whole = read_text_file(path, 1 << 30);
  const auto read_everything = [&] {
    const auto reference = Reference::open(scratch_.path(), key_);
    for (std::size_t d = 0; d < reference->documents(); ++d) {
      for (std::size_t i = 0; i < reference->rows(d); ++i) reference->row(d, i);
    }
  };
  EXPECT_NO_THROW(read_everything());
  for (std::size_t at = 0; at < whole.size(); at += 97) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    std::ofstream(path, std::ios::binary) << damaged;
    EXPECT_THROW(read_everything(), Error) << at;
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{20}, whole.size() - 1}) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    EXPECT_THROW(read_everything(), Error) << size;
  }
  std::ofstream(path, std::ios::binary) << whole << "x";
  EXPECT_THROW(read_everything(), Error);
}

class EngineTest : public ::testing::Test {
 protected:
  static std::string data(const std::string& name) {
    return std::string(WRING_SOURCE_DIR) + "/tests/data/arch/" + name;
  }
  EngineTest() {
    for (int d = 0; d < 3; ++d) {
      std::vector<TokenId> ids = {1};
      for (int i = 0; i < 60 + 40 * d; ++i) ids.push_back((i * 37 + d * 11) % 320);
      documents_.push_back(document("doc" + std::to_string(d), std::move(ids)));
    }
  }
  std::vector<Document> documents_;
  model::Model model_ = model::Model::open(data("llama"));
};

TEST_F(EngineTest, LogProbsAreTheSoftmaxOfTheEnginesRows) {
  engine::Engine e(model_, {engine::ComputeMode::kExact, 2, 0});
  EngineScorer scorer(e);
  struct Keep : ScoreSink {
    void on_logits(std::size_t, std::size_t first, std::span<const std::span<const float>> rows) override {
      EXPECT_EQ(first, kept.size());
      for (const auto row : rows) kept.emplace_back(row.begin(), row.end());
    }
    void on_scores(std::size_t, Scores s) override { scores = std::move(s); }
    std::vector<std::vector<float>> kept;
    Scores scores;
  } sink;
  const auto& ids = documents_[0].ids;
  ScoreRequest request{ids, 20, {0, 19, 25, static_cast<std::int64_t>(ids.size()) - 1}};
  scorer.score(std::span(&request, 1), sink, silent_progress(), "test");
  ASSERT_EQ(sink.scores.log_probs.size(), ids.size() - 20);
  ASSERT_EQ(sink.kept.size(), 4U);
  for (const std::size_t k : {1U, 2U}) {
    const auto position = static_cast<std::size_t>(request.logits_at[k]);
    const std::vector<float>& row = sink.kept[k];
    double sum = 0;
    for (const float v : row) sum += std::exp(static_cast<double>(v));
    const std::size_t i = position + 1 - 20;
    EXPECT_NEAR(sink.scores.log_probs[i], row[static_cast<std::size_t>(ids[position + 1])] - std::log(sum),
                1e-6);
    EXPECT_EQ(sink.scores.top1[i], std::max_element(row.begin(), row.end()) - row.begin());
  }
}

TEST_F(EngineTest, AModelAgainstItselfHasNoDivergenceAtAll) {
  engine::Engine e(model_, {engine::ComputeMode::kExact, 2, 0});
  EngineScorer scorer(e);
  const Reference reference =
      record_reference(scorer, documents_, key_for(documents_, KlPositions::kAll), {}, silent_progress());
  const auto results = run_all(scorer, documents_, &reference, KlPositions::kAll, &e.pool());
  const EvalSummary s = summarize(results, reference_results(reference, documents_));
  EXPECT_EQ(s.against->delta_nll.mean, 0);
  EXPECT_EQ(s.against->kl->max, 0);
  EXPECT_EQ(s.against->kl->same_top, 1);
  EXPECT_EQ(s.against->kl->rms_delta_p, 0);
}

TEST_F(EngineTest, ThreadsChangeNoBit) {
  const model::Model other = model::Model::open(data("llama3_rope"));
  std::vector<std::vector<DocumentResult>> all;
  for (const int threads : {1, 3}) {
    engine::Engine a(model_, {engine::ComputeMode::kExact, threads, 0});
    EngineScorer reference_scorer(a);
    const Reference reference =
        record_reference(reference_scorer, documents_, key_for(documents_), {}, silent_progress());
    engine::Engine b(other, {engine::ComputeMode::kExact, threads, 0});
    EngineScorer scorer(b);
    all.push_back(run_all(scorer, documents_, &reference, KlPositions::kThirtyTwo, &b.pool()));
  }
  for (std::size_t d = 0; d < documents_.size(); ++d) {
    EXPECT_EQ(all[0][d].nll_sum, all[1][d].nll_sum);
    EXPECT_EQ(all[0][d].kl, all[1][d].kl);
    EXPECT_EQ(all[0][d].delta_p_squares, all[1][d].delta_p_squares);
    EXPECT_GT(all[0][d].kl[0], 0.01);
    ASSERT_EQ(all[0][d].worst_tokens.size(), 5U);
    EXPECT_GE(all[0][d].worst_tokens[0].nll - all[0][d].worst_tokens[0].reference_nll,
              all[0][d].worst_tokens[4].nll - all[0][d].worst_tokens[4].reference_nll);
  }
}

TEST_F(EngineTest, BrokenRequestsAreRefused) {
  engine::Engine e(model_, {engine::ComputeMode::kExact, 1, 0});
  EngineScorer scorer(e);
  struct Nothing : ScoreSink {
    void on_logits(std::size_t, std::size_t, std::span<const std::span<const float>>) override {}
    void on_scores(std::size_t, Scores) override {}
  } sink;
  for (const ScoreRequest& bad :
       {ScoreRequest{{1}, 1, {}}, ScoreRequest{{1, 320}, 1, {}}, ScoreRequest{{1, -1}, 1, {}},
        ScoreRequest{{1, 2}, 2, {}}, ScoreRequest{{1, 2}, 0, {}}, ScoreRequest{{1, 2, 3}, 1, {1, 1}},
        ScoreRequest{{1, 2}, 1, {2}}}) {
    EXPECT_THROW(scorer.score(std::span(&bad, 1), sink, silent_progress(), "test"), Error);
  }
}

TEST_F(EngineTest, GeneratesWhatTheSchedulerWould) {
  engine::Engine e(model_, {engine::ComputeMode::kExact, 1, 0});
  EngineScorer scorer(e);
  const std::vector<GenerateRequest> requests = {{{1, 5, 9}, 6, {}, {}}, {{1, 7}, 4, {}, {}}};
  const auto replies = scorer.generate(requests, silent_progress());
  ASSERT_EQ(replies.size(), 2U);
  EXPECT_EQ(replies[0].size(), 6U);
  EXPECT_EQ(replies[1].size(), 4U);
  // A reply is the model's own argmax at every position, so it is its top1 when scored.
  ScoreRequest request{{1, 5, 9}, 3, {}};
  request.ids.insert(request.ids.end(), replies[0].begin(), replies[0].end());
  struct Keep : ScoreSink {
    void on_logits(std::size_t, std::size_t, std::span<const std::span<const float>>) override {}
    void on_scores(std::size_t, Scores s) override { scores = std::move(s); }
    Scores scores;
  } sink;
  scorer.score(std::span(&request, 1), sink, silent_progress(), "test");
  EXPECT_EQ(sink.scores.top1, replies[0]);
}

}  // namespace
}  // namespace wring::evaluate
