#include "quantize/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quantize/testing.h"

namespace wring::quantize {
namespace {

using formats::QuantType;
using testing::error_of;
using ::testing::HasSubstr;

/// The bench model's shape, without weights: what --dry-run has.
model::ModelSpec bench_spec(std::int64_t hidden = 768, bool tied = false) {
  model::ModelConfig c;
  c.model_type = "llama";
  c.vocab_size = 49152;
  c.hidden_size = hidden;
  c.intermediate_size = 1536;
  c.num_hidden_layers = 30;
  c.num_attention_heads = 12;
  c.num_key_value_heads = 4;
  c.head_dim = 64;
  c.max_position_embeddings = 8192;
  c.rms_norm_eps = 1e-5;
  c.tie_word_embeddings = tied;
  return model::make_spec(c);
}

const PlannedTensor& tensor(const QuantPlan& plan, const std::string& name) {
  for (const PlannedTensor& t : plan.tensors) {
    if (t.name == name) return t;
  }
  throw Error(ErrorCode::kInternal, name);
}

TEST(Recipe, NamesTypeAndImportance) {
  EXPECT_EQ(parse_recipe("q4_k").type, QuantType::kQ4_K);
  EXPECT_FALSE(parse_recipe("q4_k").importance);
  EXPECT_TRUE(parse_recipe("q4_k+imatrix").importance);
  for (const std::string& name : recipe_names()) EXPECT_EQ(parse_recipe(name).name, name);
}

TEST(Recipe, RefusesUnknownOnesByName) {
  const Error unknown = error_of([] { parse_recipe("q9_z"); });
  EXPECT_EQ(unknown.code(), ErrorCode::kNotSupported);
  EXPECT_THAT(unknown.what(), HasSubstr("q9_z"));
  EXPECT_THAT(unknown.what(), HasSubstr("q4_k+imatrix"));
  EXPECT_EQ(error_of([] { parse_recipe("bf16+imatrix"); }).code(), ErrorCode::kUsage);
}

TEST(Plan, QuantizesTheBlocksMatricesOnly) {
  const QuantPlan plan = make_plan(bench_spec(), parse_recipe("q4_k"), {});
  EXPECT_EQ(plan.tensors.size(), 1 + 30 * 9 + 1 + 1U);
  EXPECT_EQ(tensor(plan, "model.layers.29.mlp.down_proj.weight").used, QuantType::kQ4_K);
  EXPECT_EQ(tensor(plan, "model.embed_tokens.weight").used, QuantType::kBF16);
  EXPECT_EQ(tensor(plan, "lm_head.weight").used, QuantType::kBF16);
  EXPECT_THAT(tensor(plan, "lm_head.weight").reason, HasSubstr("--deploy"));
  EXPECT_EQ(tensor(plan, "model.norm.weight").used, QuantType::kF32);
  EXPECT_DOUBLE_EQ(plan.block_matrix_bits(), 4.5);
  // 30 blocks of 5,111,808 weights at 4.5 bits, two BF16 matrices of 49,152 × 768, 61 norms of 768 in F32.
  const std::uint64_t blocks = 30 * 5111808ULL, ends = 2 * 49152ULL * 768;
  EXPECT_EQ(plan.payload_bytes(), blocks * 9 / 16 + ends * 2 + 61 * 768 * 4);
  EXPECT_NEAR(plan.file_bits(),
              8.0 * static_cast<double>(plan.payload_bytes()) / static_cast<double>(blocks + ends + 61 * 768),
              1e-9);
  EXPECT_GT(plan.estimated_seconds(), 0);
  EXPECT_GT(plan.working_bytes(), 0U);
}

TEST(Plan, DeployTakesEmbeddingAndHeadToo) {
  PlanOptions options;
  options.deploy = true;
  const QuantPlan plan = make_plan(bench_spec(), parse_recipe("q4_k"), options);
  EXPECT_EQ(tensor(plan, "model.embed_tokens.weight").used, QuantType::kQ4_K);
  EXPECT_EQ(tensor(plan, "lm_head.weight").used, QuantType::kQ6_K);
  const QuantPlan tied = make_plan(bench_spec(768, true), parse_recipe("q4_k"), options);
  EXPECT_EQ(tensor(tied, "model.embed_tokens.weight").used, QuantType::kQ6_K);
  EXPECT_EQ(tensor(make_plan(bench_spec(), parse_recipe("q8_0"), options), "lm_head.weight").used,
            QuantType::kQ8_0);
  EXPECT_EQ(error_of([&] { make_plan(bench_spec(), parse_recipe("bf16"), options); }).code(),
            ErrorCode::kUsage);
}

TEST(Plan, RowsThatDoNotDivideFallBackAndSaySo) {
  const QuantPlan plan = make_plan(bench_spec(576), parse_recipe("q4_k"), {});
  const PlannedTensor& q = tensor(plan, "model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(q.asked, QuantType::kQ4_K);
  EXPECT_EQ(q.used, QuantType::kQ8_0);
  EXPECT_THAT(q.reason, HasSubstr("576"));
  EXPECT_EQ(tensor(plan, "model.layers.0.mlp.down_proj.weight").used, QuantType::kQ4_K);
  EXPECT_GT(plan.block_matrix_bits(), 4.5);
  EXPECT_EQ(
      tensor(make_plan(bench_spec(72), parse_recipe("q8_0"), {}), "model.layers.0.mlp.up_proj.weight").used,
      QuantType::kBF16);
}

TEST(Plan, StrictRefusesASubstitution) {
  PlanOptions options;
  options.strict = true;
  const Error error = error_of([&] { make_plan(bench_spec(576), parse_recipe("q4_k"), options); });
  EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
  EXPECT_THAT(error.what(), HasSubstr("model.layers.0.self_attn.q_proj.weight"));
  EXPECT_THAT(error.what(), HasSubstr("576"));
  EXPECT_NO_THROW(make_plan(bench_spec(768), parse_recipe("q4_k"), options));
}

TEST(Plan, KeepRulesMatchEitherName) {
  PlanOptions options;
  options.keep = {parse_keep_rule("*.v_proj=q8_0"), parse_keep_rule("blk.3.ffn_down=bf16"),
                  parse_keep_rule("model.layers.0.self_attn.v_proj.weight=q6_k")};
  const QuantPlan plan = make_plan(bench_spec(), parse_recipe("q4_k"), options);
  EXPECT_EQ(tensor(plan, "model.layers.7.self_attn.v_proj.weight").used, QuantType::kQ8_0);
  EXPECT_EQ(tensor(plan, "model.layers.0.self_attn.v_proj.weight").used,
            QuantType::kQ6_K);  // the last rule counts
  EXPECT_EQ(tensor(plan, "model.layers.3.mlp.down_proj.weight").used, QuantType::kBF16);
  EXPECT_EQ(tensor(plan, "model.layers.13.mlp.down_proj.weight").used, QuantType::kQ4_K);
}

TEST(Plan, KeepRulesThatDoNothingAreErrors) {
  PlanOptions options;
  options.keep = {parse_keep_rule("*.w_proj=q8_0")};
  EXPECT_EQ(error_of([&] { make_plan(bench_spec(), parse_recipe("q4_k"), options); }).code(),
            ErrorCode::kUsage);
  EXPECT_EQ(error_of([] { parse_keep_rule("*.v_proj"); }).code(), ErrorCode::kUsage);
  EXPECT_EQ(error_of([] { parse_keep_rule("*.v_proj=q2_k"); }).code(), ErrorCode::kNotSupported);
}

TEST(Plan, WhatFloat16CannotHoldStaysInBf16) {
  QuantPlan plan = make_plan(bench_spec(), parse_recipe("q4_k"), {});
  std::vector<float> magnitudes(plan.tensors.size(), 1.0F);
  magnitudes[2] = 1e30F;  // q of block 0
  magnitudes[0] = 1e30F;  // the embedding is BF16 anyway
  QuantPlan strict = plan;
  settle_plan(plan, magnitudes);
  EXPECT_TRUE(plan.settled);
  EXPECT_EQ(plan.tensors[2].used, QuantType::kBF16);
  EXPECT_THAT(plan.tensors[2].reason, HasSubstr("1e+30"));
  EXPECT_EQ(plan.tensors[3].used, QuantType::kQ4_K);
  strict.strict = true;
  EXPECT_EQ(error_of([&] { settle_plan(strict, magnitudes); }).code(), ErrorCode::kNotSupported);
}

}  // namespace
}  // namespace wring::quantize
