// Windows as llama.cpp's perplexity tool cuts and scores them.
#include "evaluate/llama_protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "evaluate/testing.h"

namespace wring::evaluate {
namespace {

class LlamaProtocolTest : public ::testing::Test {
 protected:
  static TextSet texts(const std::string& text) { return {{{"t", "t", text, "t.txt", "sha"}}, {}}; }
  text::Tokenizer tokenizer_ =
      text::Tokenizer::from_hf(std::string(WRING_SOURCE_DIR) + "/tests/data/tokenizer/tok_llama");
};

TEST_F(LlamaProtocolTest, WindowsAreWholeAndOnlyTheirSecondHalfIsScored) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "word " + std::to_string(i * i) + ", ";
  const auto encoded = tokenizer_.encode(text, text::Specials::kPlain);
  const bool bos = tokenizer_.adds_bos();
  const std::size_t total = encoded.size() + (bos ? 1 : 0);
  const auto windows = llama_windows(texts(text), tokenizer_, 16, 512);
  ASSERT_EQ(windows.size(), total / 16);
  for (std::size_t w = 0; w < windows.size(); ++w) {
    ASSERT_EQ(windows[w].ids.size(), 16U);
    EXPECT_EQ(windows[w].first_scored, 9);  // the logits at 8 … 14 predict 9 … 15
    for (std::size_t i = 1; i < 16; ++i) EXPECT_EQ(windows[w].ids[i], encoded[w * 16 + i - (bos ? 1 : 0)]);
    if (bos) {
      EXPECT_EQ(windows[w].ids[0], *tokenizer_.bos());
    }
  }
  testing::KnownScorer scorer(tokenizer_.vocab_size(), 2.0F);
  const PerplexityResult r = llama_perplexity(scorer, windows, silent_progress());
  EXPECT_EQ(r.tokens, static_cast<std::int64_t>(windows.size()) * 7);
  double sum = 0;
  for (const ScoreRequest& w : windows) {
    for (std::size_t i = 9; i < 16; ++i) sum -= scorer.log_prob(w.ids[i - 1], w.ids[i]);
  }
  EXPECT_NEAR(r.nll, sum / static_cast<double>(r.tokens), 1e-12);
  EXPECT_NEAR(r.ppl, std::exp(r.nll), 1e-9);
}

TEST_F(LlamaProtocolTest, SeveralTextsAreJoined) {
  TextSet two = texts("alpha beta ");
  two.documents.push_back({"u", "u", "gamma delta epsilon", "u.txt", "sha"});
  const auto joined = llama_windows(two, tokenizer_, 4, 512);
  const auto one = llama_windows(texts("alpha beta gamma delta epsilon"), tokenizer_, 4, 512);
  ASSERT_EQ(joined.size(), one.size());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(joined[i].ids, one[i].ids);
}

TEST_F(LlamaProtocolTest, WindowsThatDoNotFitAreRefusedNamingBoth) {
  const auto error = [&](const std::string& text, std::int64_t n_ctx, std::int64_t most) {
    try {
      llama_windows(texts(text), tokenizer_, n_ctx, most);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(error("short", 512, 512), ::testing::HasSubstr("512"));
  EXPECT_THAT(error("short", 1024, 512),
              ::testing::AllOf(::testing::HasSubstr("1024"), ::testing::HasSubstr("512")));
  EXPECT_THAT(error("short", 3, 512), ::testing::HasSubstr("3"));
}

}  // namespace
}  // namespace wring::evaluate
