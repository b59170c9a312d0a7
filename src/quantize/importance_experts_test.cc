// Importance of models with experts, latent attention and Gated DeltaNet: whose inputs are summed, in which
// order, and what becomes of experts that saw few tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "quantize/expert_coverage.h"
#include "quantize/importance.h"
#include "quantize/testing.h"

namespace wring::quantize {
namespace {

using engine::TokenId;
using testing::data;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ScratchFolder;

/// 9 documents of 20 and more tokens: more than a group.
std::vector<std::vector<TokenId>> some_texts() {
  std::vector<std::vector<TokenId>> out;
  for (std::size_t d = 0; d < 9; ++d) {
    out.emplace_back();
    for (std::size_t i = 0; i < 20 + 3 * d; ++i)
      out.back().push_back(static_cast<TokenId>((d * 31 + i * i * 7) % 96));
  }
  return out;
}

double tokens_of(const std::vector<std::vector<TokenId>>& texts) {
  double n = 0;
  for (const auto& t : texts) n += static_cast<double>(t.size());
  return n;
}

formats::Imatrix importance_of_model(const model::Model& m, int threads = 2) {
  engine::EngineOptions options;
  options.threads = threads;
  engine::Engine engine(m, options);
  return collect_importance(engine, some_texts(), "test", silent_progress());
}

double sum_of(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

TEST(ExpertImportance, EachTokenCountsForTheExpertsItWasSentTo) {
  const model::Model m = model::Model::open(data("arch/exaone_moe"));
  const formats::Imatrix imatrix = importance_of_model(m);
  const double tokens = tokens_of(some_texts());
  for (const std::string blk : {"blk.1.", "blk.3."}) {
    const formats::ImatrixEntry &gate = imatrix.entries.at(blk + "ffn_gate_exps.weight"),
                                &down = imatrix.entries.at(blk + "ffn_down_exps.weight"),
                                &shared = imatrix.entries.at(blk + "ffn_gate_shexp.weight");
    ASSERT_EQ(gate.counts.size(), 8U);
    EXPECT_EQ(gate.counts, down.counts);
    EXPECT_EQ(sum_of(gate.counts), tokens * 3);
    EXPECT_THAT(shared.counts, ElementsAre(static_cast<float>(tokens)));
    EXPECT_EQ(gate.sum_squares.size(), 8U * 64);
    EXPECT_EQ(down.sum_squares.size(), 8U * 16);
    // The shared expert sees each token once, the others together three times.
    for (std::size_t c = 0; c < 64; ++c) {
      double all = 0;
      for (std::size_t e = 0; e < 8; ++e) all += static_cast<double>(gate.sum_squares[e * 64 + c]);
      EXPECT_NEAR(all, 3.0 * shared.sum_squares[c], 1e-4 * all) << c;
    }
    EXPECT_EQ(imatrix.entries.at(blk + "ffn_up_exps.weight").sum_squares, gate.sum_squares);
  }
  EXPECT_FALSE(imatrix.entries.contains("blk.1.ffn_gate_inp.weight"));
  EXPECT_TRUE(imatrix.entries.contains("blk.0.ffn_gate.weight"));  // the dense layer
}

TEST(ExpertImportance, DoesNotDependOnThreads) {
  for (const char* name : {"exaone_moe", "deepseek_v3", "qwen3_5"}) {
    const model::Model m = model::Model::open(data(std::string("arch/") + name));
    const formats::Imatrix one = importance_of_model(m, 1), three = importance_of_model(m, 3);
    ASSERT_EQ(one.entries.size(), three.entries.size());
    for (const auto& [key, entry] : one.entries) {
      EXPECT_EQ(entry.sum_squares, three.entries.at(key).sum_squares) << key;
      EXPECT_EQ(entry.counts, three.entries.at(key).counts) << key;
    }
  }
}

// GGUF has k_b and v_b instead of kv_b, and value heads in another order: entries are those of its tensors,
// whatever the model was read from.
TEST(ExpertImportance, IsInGgufsFormFromEitherFile) {
  for (const char* name : {"exaone_moe", "deepseek_v3", "qwen3_5"}) {
    const formats::Imatrix hf = importance_of_model(model::Model::open(data(std::string("arch/") + name))),
                           gguf = importance_of_model(
                               model::Model::open(data(std::string("gguf/") + name + ".gguf")));
    ASSERT_EQ(hf.entries.size(), gguf.entries.size()) << name;
    for (const auto& [key, entry] : hf.entries) {
      ASSERT_TRUE(gguf.entries.contains(key)) << key;
      const formats::ImatrixEntry& other = gguf.entries.at(key);
      EXPECT_EQ(other.counts, entry.counts) << key;
      ASSERT_EQ(other.sum_squares.size(), entry.sum_squares.size()) << key;
      for (std::size_t i = 0; i < entry.sum_squares.size(); ++i)
        EXPECT_NEAR(other.sum_squares[i], entry.sum_squares[i], 1e-3 * entry.sum_squares[i]) << key << i;
    }
  }
}

TEST(ExpertImportance, LatentAttentionHasEntriesByHead) {
  const model::Model m = model::Model::open(data("arch/deepseek_v3"));
  const formats::Imatrix imatrix = importance_of_model(m);
  const auto tokens = static_cast<float>(tokens_of(some_texts()));
  const formats::ImatrixEntry &k = imatrix.entries.at("blk.0.attn_k_b.weight"),
                              &v = imatrix.entries.at("blk.0.attn_v_b.weight"),
                              &q = imatrix.entries.at("blk.0.attn_q_b.weight");
  EXPECT_THAT(k.counts, ElementsAre(tokens, tokens, tokens, tokens));
  EXPECT_EQ(k.sum_squares.size(), 4U * 16);
  EXPECT_EQ(v.sum_squares.size(), 4U * 32);
  EXPECT_THAT(q.counts, ElementsAre(tokens));
  EXPECT_EQ(q.sum_squares.size(), 48U);
  // A normalized row's squares sum to its size, where the norm's weights are near 1.
  EXPECT_GT(sum_of(q.sum_squares), 0.25 * tokens * 48);
}

TEST(ExpertImportance, Qwen3NextHasNoNamesForIt) {
  const model::Model m = model::Model::open(data("arch/qwen3_next"));
  const Error error = testing::error_of([&] { importance_of_model(m); });
  EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
  EXPECT_THAT(error.what(), HasSubstr("qwen3_next"));
}

/// The bytes of expert `e` in a stacked tensor.
std::span<const std::byte> expert_bytes(const formats::GgufReader& file, const std::string& name,
                                        std::size_t e, std::size_t experts) {
  const std::span<const std::byte> all = file.find(name)->data;
  return all.subspan(e * (all.size() / experts), all.size() / experts);
}

TEST(ExpertImportance, AnExpertThatSawFewTokensIsRoundedWithoutIt) {
  const ScratchFolder scratch;
  testing::write_random_model(scratch / "hf", testing::small_moe_config("qwen3_moe"));
  const model::Model m = model::Model::open(scratch / "hf");
  formats::Imatrix imatrix = importance_of_model(m);
  // Expert 2 saw nothing, expert 4 one token fewer than is enough.
  for (const char* map : {"gate", "up", "down"}) {
    formats::ImatrixEntry& entry = imatrix.entries.at(std::string("blk.0.ffn_") + map + "_exps.weight");
    for (std::size_t e = 0; e < 6; ++e) entry.counts[e] = 100;
    entry.counts[2] = 0;
    entry.counts[4] = 63;
    std::fill_n(entry.sum_squares.begin() + 2 * 256, 256, 0.0F);
    formats::ImatrixEntry& other = imatrix.entries.at(std::string("blk.1.ffn_") + map + "_exps.weight");
    for (float& c : other.counts) c = 64;
  }
  const QuantizeReport plain = testing::to_quantized_file(m, "q4_k", scratch / "plain.gguf"),
                       weighted = testing::to_quantized_file(m, "q4_k+imatrix", scratch / "w.gguf", &imatrix);
  EXPECT_THAT(plain.warnings, ::testing::Not(::testing::Contains(HasSubstr("experts"))));
  EXPECT_THAT(weighted.warnings, ::testing::Contains(HasSubstr("2 of 12 experts")));
  EXPECT_THAT(weighted.warnings, ::testing::Contains(HasSubstr("blk.0 expert 2 (0), blk.0 expert 4 (63)")));
  const auto a = formats::GgufReader::open(scratch / "plain.gguf"),
             b = formats::GgufReader::open(scratch / "w.gguf");
  for (const char* name : {"blk.0.ffn_gate_exps.weight", "blk.0.ffn_down_exps.weight"}) {
    for (std::size_t e = 0; e < 6; ++e) {
      const bool same = std::ranges::equal(expert_bytes(a, name, e, 6), expert_bytes(b, name, e, 6));
      EXPECT_EQ(same, e == 2 || e == 4) << name << " " << e;
    }
  }
  const model::Model written = model::Model::open(scratch / "w.gguf");
  for (const model::Weight& w : written.weights()) {
    for (const float v : testing::values_of(written, w.name)) ASSERT_TRUE(std::isfinite(v)) << w.name;
  }
}

TEST(ExpertImportance, AnExpertThatIsNeverChosenBreaksNothing) {
  const ScratchFolder scratch;
  // A router whose row for expert 3 is far below all others: what it reads has a positive mean.
  const auto never_third = [](const std::string& name, std::vector<float>& values) {
    if (name.find("post_attention_layernorm") != std::string::npos) std::ranges::fill(values, 1.0F);
    if (name.find("embed_tokens") != std::string::npos) {
      for (float& v : values) v = std::abs(v) + 0.01F;
    }
    if (name.find("o_proj") != std::string::npos || name.find("down_proj") != std::string::npos) {
      for (float& v : values) v *= 0.01F;
    }
    if (name.ends_with("block_sparse_moe.gate.weight")) std::fill_n(values.begin() + 3 * 256, 256, -1.0F);
  };
  testing::write_random_model(scratch / "hf", testing::small_moe_config("mixtral"), never_third);
  const model::Model m = model::Model::open(scratch / "hf");
  const formats::Imatrix imatrix = importance_of_model(m);
  EXPECT_EQ(imatrix.entries.at("blk.0.ffn_gate_exps.weight").counts[3], 0);
  EXPECT_EQ(sum_of(imatrix.entries.at("blk.0.ffn_gate_exps.weight").counts), 2 * tokens_of(some_texts()));
  const ExpertCoverage coverage = expert_coverage(imatrix);
  EXPECT_EQ(coverage.experts, 12U);
  EXPECT_EQ(coverage.least, 0U);
  const QuantizeReport report = testing::to_quantized_file(m, "iq4_xs+imatrix", scratch / "m.gguf", &imatrix);
  EXPECT_THAT(report.warnings, ::testing::Contains(HasSubstr("blk.0 expert 3 (0)")));
  EXPECT_TRUE(std::isfinite(*report.weighted_error));
  const model::Model written = model::Model::open(scratch / "m.gguf");
  for (const model::Weight& w : written.weights()) {
    for (const float v : testing::values_of(written, w.name)) ASSERT_TRUE(std::isfinite(v)) << w.name;
  }
}

TEST(ExpertCoverage, CountsDownProjectionsByLayerAndNumber) {
  formats::Imatrix imatrix;
  imatrix.entries["blk.10.ffn_down_exps.weight"] = {{1, 1}, {5, 700}};
  imatrix.entries["blk.2.ffn_down_exps.weight"] = {{1, 1}, {64, 63}};
  imatrix.entries["blk.2.ffn_gate_exps.weight"] = {{1, 1}, {64, 63}};
  imatrix.entries["blk.0.attn_k_b.weight"] = {{1, 1}, {1, 1}};
  imatrix.entries["blk.x.ffn_down_exps.weight"] = {{1}, {1}};
  const ExpertCoverage coverage = expert_coverage(imatrix);
  EXPECT_EQ(coverage.experts, 4U);
  EXPECT_EQ(coverage.least, 5U);
  EXPECT_EQ(coverage.median, 63.5);
  ASSERT_EQ(coverage.few.size(), 2U);
  EXPECT_EQ(coverage.few[0].layer, 2);
  EXPECT_EQ(coverage.few[0].expert, 1);
  EXPECT_EQ(coverage.few[1].layer, 10);
  EXPECT_EQ(coverage.few[1].tokens, 5U);
  EXPECT_THAT(few_tokens_text(coverage, 1), ::testing::EndsWith("blk.2 expert 1 (63) and 1 more"));
  EXPECT_EQ(expert_coverage({}).experts, 0U);
}

}  // namespace
}  // namespace wring::quantize
