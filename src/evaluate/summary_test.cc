// Summaries of results whose numbers are known.
#include "evaluate/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace wring::evaluate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

DocumentResult result(const std::string& id, const std::string& domain, std::int64_t tokens, double nll_sum) {
  DocumentResult r;
  r.id = id;
  r.domain = domain;
  r.sha256 = "sha-" + id;
  r.tokens = tokens;
  r.bytes = tokens * 4;
  r.nll_sum = nll_sum;
  return r;
}

class SummaryTest : public ::testing::Test {
 protected:
  std::vector<DocumentResult> reference_ = {result("a", "ko", 100, 200), result("b", "en", 300, 300),
                                            result("c", "en", 100, 100)};
  std::vector<DocumentResult> candidate_ = {result("c", "en", 100, 104), result("a", "ko", 100, 210),
                                            result("b", "en", 300, 306)};
};

TEST_F(SummaryTest, PoolsOverTokens) {
  const EvalSummary s = summarize(reference_, {});
  EXPECT_EQ(s.documents, 3);
  EXPECT_EQ(s.tokens, 500);
  EXPECT_DOUBLE_EQ(s.nll, 1.2);
  EXPECT_NEAR(s.ppl, std::exp(1.2), 1e-12);
  EXPECT_NEAR(s.bits_per_byte, 600 / std::log(2.0) / 2000, 1e-12);
  ASSERT_EQ(s.domains.size(), 2U);
  EXPECT_EQ(s.domains[0].domain, "en");
  EXPECT_DOUBLE_EQ(s.domains[0].nll, 1.0);
  EXPECT_EQ(s.domains[1].tokens, 100);
  EXPECT_FALSE(s.against.has_value());
}

TEST_F(SummaryTest, ComparesPairedByIdInAnyOrder) {
  const EvalSummary s = summarize(candidate_, reference_);
  ASSERT_TRUE(s.against.has_value());
  const Comparison& c = *s.against;
  EXPECT_DOUBLE_EQ(c.delta_nll.mean, 20.0 / 500);
  EXPECT_GE(c.delta_nll.low, 0.02);
  EXPECT_LE(c.delta_nll.high, 0.10 + 1e-12);
  EXPECT_NEAR(c.retained, 100 * std::exp(-0.04), 1e-10);
  EXPECT_FALSE(c.kl.has_value());
  ASSERT_EQ(c.worst_documents.size(), 3U);
  EXPECT_EQ(c.worst_documents[0].id, "a");
  EXPECT_DOUBLE_EQ(c.worst_documents[0].delta_nll, 0.1);
  EXPECT_EQ(c.worst_documents[1].id, "c");
  EXPECT_DOUBLE_EQ(c.document_delta.max, 0.1);
  EXPECT_DOUBLE_EQ(c.document_delta.p50, 0.04);
  EXPECT_NEAR(s.domains[0].delta_nll->mean, 10.0 / 400, 1e-15);
}

TEST_F(SummaryTest, AModelAgainstItselfIsExactlyZero) {
  for (DocumentResult& r : reference_) {
    r.kl = {0, 0};
    r.same_top = 2;
  }
  const Comparison c = *summarize(reference_, reference_).against;
  EXPECT_EQ(c.delta_nll.mean, 0);
  EXPECT_EQ(c.delta_nll.low, 0);
  EXPECT_EQ(c.delta_nll.high, 0);
  EXPECT_EQ(c.retained, 100);
  EXPECT_EQ(c.kl->mean.mean, 0);
  EXPECT_EQ(c.kl->max, 0);
  EXPECT_EQ(c.kl->same_top, 1);
}

TEST_F(SummaryTest, KlIsOverPositionsAndItsTailToo) {
  candidate_[0].kl = {0.0, 0.1};
  candidate_[1].kl = {0.2, 0.3};
  candidate_[2].kl = {0.4};
  candidate_[0].same_top = 2;
  candidate_[1].same_top = 1;
  candidate_[1].delta_p_squares = 0.05;
  const KlSummary kl = *summarize(candidate_, reference_).against->kl;
  EXPECT_DOUBLE_EQ(kl.mean.mean, 0.2);
  EXPECT_DOUBLE_EQ(kl.p50, 0.2);
  EXPECT_NEAR(kl.p95, 0.38, 1e-12);
  EXPECT_EQ(kl.max, 0.4);
  EXPECT_EQ(kl.positions, 5);
  EXPECT_DOUBLE_EQ(kl.same_top, 0.6);
  EXPECT_DOUBLE_EQ(kl.rms_delta_p, 0.1);
}

TEST_F(SummaryTest, WhatIsNotSharedIsRefusedByName) {
  const auto error = [&] {
    try {
      summarize(candidate_, reference_);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  candidate_[1].tokens = 99;
  EXPECT_THAT(error(), AllOf(HasSubstr("\"a\""), HasSubstr("99"), HasSubstr("100")));
  candidate_[1].id = "z";
  EXPECT_THAT(error(), HasSubstr("\"z\""));
  candidate_.pop_back();
  EXPECT_THAT(error(), AllOf(HasSubstr("2 documents"), HasSubstr("3")));
  EXPECT_THROW(summarize({}, {}), Error);
}

TEST_F(SummaryTest, OnlyTheWorstTwentyAreListed) {
  std::vector<DocumentResult> r, c;
  for (int i = 0; i < 30; ++i) {
    r.push_back(result(std::to_string(i), "d", 10, 10));
    c.push_back(result(std::to_string(i), "d", 10, 10 + i));
    for (int k = 0; k < 5; ++k)
      c.back().worst_tokens.push_back({std::to_string(i), k, "t", "c", i + 0.1 * k, 0});
  }
  const Comparison x = *summarize(c, r).against;
  ASSERT_EQ(x.worst_documents.size(), 20U);
  EXPECT_EQ(x.worst_documents.front().id, "29");
  EXPECT_EQ(x.worst_documents.back().id, "10");
  ASSERT_EQ(x.worst_tokens.size(), 20U);
  EXPECT_DOUBLE_EQ(x.worst_tokens.front().nll, 29.4);
}

TEST_F(SummaryTest, HolmAdjustsOverCandidates) {
  EvalSummary a = summarize(candidate_, reference_), b = a, base = summarize(reference_, {});
  const double p = a.against->delta_nll.p_value;
  EvalSummary* const all[] = {&base, &a, &b};
  adjust_for_candidates(all);
  EXPECT_DOUBLE_EQ(a.against->delta_nll.p_value, 2 * p);
}

TEST_F(SummaryTest, CandidatesAreComparedWithEachOther) {
  EXPECT_DOUBLE_EQ(delta_nll(candidate_, reference_).mean, 0.04);
  EXPECT_DOUBLE_EQ(delta_nll(reference_, candidate_).mean, -0.04);
}

TEST_F(SummaryTest, JsonHasThePromisedKeys) {
  candidate_[0].kl = candidate_[1].kl = candidate_[2].kl = {0.1};
  const nlohmann::json j = to_json(summarize(candidate_, reference_));
  for (const char* key : {"nll", "ppl", "tokens", "delta_nll", "kl", "same_top", "domains", "worst"}) {
    EXPECT_TRUE(j.contains(key)) << key;
  }
  for (const char* key : {"mean", "p50", "p95", "p99", "max"}) EXPECT_TRUE(j.at("kl").contains(key)) << key;
  EXPECT_EQ(j.at("worst").at(0).at("id"), "a");
  EXPECT_DOUBLE_EQ(j.at("domains").at("ko").at("delta_nll").at("mean").get<double>(), 0.1);
}

TEST(DocumentResult, SurvivesJsonToTheLastBit) {
  DocumentResult r = result("é", "ko", 1023, 1.0 / 3);
  r.kl = {0.1, 5e-324, 1.0 / 7};
  r.same_top = 2;
  r.delta_p_squares = 1e-17;
  r.worst_tokens = {{"é", 17, " token", "before", 9.25, 1.0 / 3}};
  const DocumentResult back = document_result_from_json(nlohmann::json::parse(to_json(r).dump()), "row");
  EXPECT_EQ(back.id, r.id);
  EXPECT_EQ(back.nll_sum, r.nll_sum);
  EXPECT_EQ(back.kl, r.kl);
  EXPECT_EQ(back.same_top, 2);
  EXPECT_EQ(back.delta_p_squares, r.delta_p_squares);
  ASSERT_EQ(back.worst_tokens.size(), 1U);
  EXPECT_EQ(back.worst_tokens[0].document, "é");
  EXPECT_EQ(back.worst_tokens[0].reference_nll, 1.0 / 3);

  nlohmann::json odd = to_json(r);
  odd["tokens"] = 0;
  EXPECT_THROW(document_result_from_json(odd, "row 7"), Error);
  odd = to_json(r);
  odd["kl"][1] = "x";
  EXPECT_THROW(document_result_from_json(odd, "row 7"), Error);
}

}  // namespace
}  // namespace wring::evaluate
