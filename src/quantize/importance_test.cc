#include "quantize/importance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "quantize/testing.h"

namespace wring::quantize {
namespace {

using engine::TokenId;
using testing::error_of;
using testing::ScratchFolder;
using testing::values_of;

std::vector<std::vector<TokenId>> documents(std::size_t count) {
  std::vector<std::vector<TokenId>> out;
  for (std::size_t d = 0; d < count; ++d) {
    out.emplace_back();
    for (std::size_t i = 0; i < 20 + 7 * (d % 5); ++i)
      out.back().push_back(static_cast<TokenId>((d * 31 + i * i * 7) % 96));
  }
  return out;
}

formats::Imatrix collect(const model::Model& model, const std::vector<std::vector<TokenId>>& texts,
                         int threads) {
  engine::EngineOptions options;
  options.threads = threads;
  engine::Engine engine(model, options);
  return collect_importance(engine, texts, "test.txt", silent_progress());
}

TEST(Importance, IsTheSumOfSquaredInputs) {
  const ScratchFolder scratch;
  testing::write_small_llama(scratch / "hf");
  const model::Model model = model::Model::open(scratch / "hf");
  const auto texts = documents(11);
  const formats::Imatrix imatrix = collect(model, texts, 2);

  // The input of q, k and v in the first block is the normed embedding: computed here in float64.
  const std::vector<float> embedding = values_of(model, "model.embed_tokens.weight"),
                           norm = values_of(model, "model.layers.0.input_layernorm.weight");
  std::vector<double> expected(256, 0.0);
  std::size_t tokens = 0;
  for (const auto& text : texts) {
    for (const TokenId id : text) {
      const float* row = embedding.data() + 256 * id;
      double squares = 0;
      for (int c = 0; c < 256; ++c) squares += static_cast<double>(row[c]) * row[c];
      const double scale = 1 / std::sqrt(squares / 256 + 1e-5);
      for (std::size_t c = 0; c < 256; ++c) expected[c] += std::pow(row[c] * scale * norm[c], 2);
      ++tokens;
    }
  }
  for (const char* name : {"blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight"}) {
    const formats::ImatrixEntry& entry = imatrix.entries.at(name);
    ASSERT_EQ(entry.sum_squares.size(), 256U);
    for (std::size_t c = 0; c < 256; ++c)
      EXPECT_NEAR(entry.sum_squares[c], expected[c], 1e-5 * expected[c]) << c;
    EXPECT_THAT(entry.counts, ::testing::ElementsAre(static_cast<float>(tokens)));
  }
  EXPECT_EQ(imatrix.entries.size(), 7U);
  EXPECT_EQ(imatrix.entries.at("blk.0.ffn_down.weight").sum_squares.size(), 512U);
  EXPECT_EQ(imatrix.chunk_count, 11U);
  EXPECT_EQ(imatrix.chunk_size, 48U);
}

TEST(Importance, DoesNotDependOnThreads) {
  const ScratchFolder scratch;
  testing::write_small_llama(scratch / "hf");
  const model::Model model = model::Model::open(scratch / "hf");
  const formats::Imatrix one = collect(model, documents(19), 1), three = collect(model, documents(19), 3);
  for (const auto& [name, entry] : one.entries)
    EXPECT_EQ(entry.sum_squares, three.entries.at(name).sum_squares) << name;
}

TEST(Importance, SurvivesTheFile) {
  const ScratchFolder scratch;
  testing::write_small_llama(scratch / "hf");
  const model::Model model = model::Model::open(scratch / "hf");
  const formats::Imatrix made = collect(model, documents(3), 1);
  formats::write_imatrix(made, scratch / "i.gguf");
  const formats::Imatrix read = formats::read_imatrix(scratch / "i.gguf");
  ASSERT_EQ(read.entries.size(), made.entries.size());
  for (const auto& [name, entry] : made.entries) {
    EXPECT_EQ(read.entries.at(name).sum_squares, entry.sum_squares);
    EXPECT_EQ(read.entries.at(name).counts, entry.counts);
  }
  EXPECT_EQ(read.datasets, made.datasets);
  EXPECT_EQ(read.chunk_count, 3U);
}

TEST(Importance, TooFewTokensAreRefusedWithBothCounts) {
  const ScratchFolder scratch;
  testing::write_small_llama(scratch / "hf");
  const model::Model model = model::Model::open(scratch / "hf");
  const Error error = error_of([&] { collect(model, {{1, 2, 3}, {}}, 1); });
  EXPECT_EQ(error.code(), ErrorCode::kBadInput);
  EXPECT_THAT(error.what(), ::testing::HasSubstr("3 tokens"));
  EXPECT_THAT(error.what(), ::testing::HasSubstr("16"));
}

}  // namespace
}  // namespace wring::quantize
