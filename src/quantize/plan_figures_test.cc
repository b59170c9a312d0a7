// The plan of a 4B hybrid, from its configuration alone, has the sizes that were published for its files:
// payloads of 8.413 (BF16), 3.289 (Q4_K), 3.453 (Q4_K_M), 3.177 (IQ4_XS), 3.119 (INT4) GB, and their bits a
// weight.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "quantize/plan.h"

namespace wring::quantize {
namespace {

using formats::QuantType;

/// Qwen 3.5's: three Gated DeltaNet layers, then one of gated attention.
model::ModelSpec hybrid_4b() {
  model::ModelConfig c;
  c.model_type = "qwen3_5_text";
  c.vocab_size = 248320;
  c.hidden_size = 2560;
  c.intermediate_size = 9216;
  c.num_hidden_layers = 32;
  for (int i = 0; i < 32; ++i) {
    c.layer_types.push_back(i % 4 == 3 ? model::LayerType::kFullAttention
                                       : model::LayerType::kLinearAttention);
  }
  c.num_attention_heads = 16;
  c.num_key_value_heads = 4;
  c.head_dim = 256;
  c.linear_num_key_heads = 16;
  c.linear_num_value_heads = 32;
  c.linear_key_head_dim = c.linear_value_head_dim = 128;
  c.linear_conv_kernel_dim = 4;
  c.max_position_embeddings = 262144;
  c.rms_norm_eps = 1e-6;
  c.rope.rope_theta = 1e7;
  c.rope.partial_rotary_factor = 0.25;
  c.tie_word_embeddings = true;
  return model::make_spec(c);
}

std::map<QuantType, int> types_of_matrices(const QuantPlan& plan) {
  std::map<QuantType, int> types;
  for (const PlannedTensor& t : plan.tensors) {
    if (t.role == TensorRole::kBlockMatrix) ++types[t.used];
  }
  return types;
}

struct Figures {
  const char* recipe;
  double payload_gb, bits;
};

class PublishedFigures : public ::testing::TestWithParam<Figures> {};
INSTANTIATE_TEST_SUITE_P(Hybrid4B, PublishedFigures,
                         ::testing::Values(Figures{"bf16", 8.413, 16.004}, Figures{"q4_k", 3.289, 6.255},
                                           Figures{"q4_k_m", 3.453, 6.569}, Figures{"iq4_xs", 3.177, 6.043},
                                           Figures{"int4-rtn", 3.119, 5.934}),
                         [](const auto& figures) {
                           return std::string(figures.param.recipe) == "int4-rtn" ? "int4"
                                                                                  : figures.param.recipe;
                         });

TEST_P(PublishedFigures, FollowFromTheConfiguration) {
  const QuantPlan plan = make_plan(hybrid_4b(), parse_recipe(GetParam().recipe), {});
  EXPECT_EQ(plan.matrices(), 200U);
  EXPECT_EQ(plan.matrix_weights(), 3565158400U);
  EXPECT_NEAR(static_cast<double>(plan.payload_bytes()) * 1e-9, GetParam().payload_gb, 0.0005);
  EXPECT_NEAR(plan.file_bits(), GetParam().bits, 0.0005);
  EXPECT_LT(plan.peak_bytes(), 16'000'000'000U);
}

TEST(MixedTypes, FusedMapsAndValuesShareOneCounter) {
  const QuantPlan plan = make_plan(hybrid_4b(), parse_recipe("q4_k_m"), {});
  EXPECT_EQ(types_of_matrices(plan),
            (std::map<QuantType, int>{{QuantType::kQ4_K, 168}, {QuantType::kQ6_K, 32}}));
  int down = 0, fused = 0, values = 0;
  for (const PlannedTensor& t : plan.tensors) {
    if (t.used != QuantType::kQ6_K) continue;
    down += t.name.ends_with("down_proj.weight") ? 1 : 0;
    fused += t.name.ends_with("in_proj_qkv.weight") ? 1 : 0;
    values += t.name.ends_with("v_proj.weight") ? 1 : 0;
  }
  EXPECT_EQ(down, 16);
  EXPECT_EQ(fused, 12);
  EXPECT_EQ(values, 4);
  EXPECT_EQ(gguf_file_type(plan), 15U);
}

TEST(MixedTypes, AreTheOuterEighthsAndEveryThirdBetween) {
  const QuantPlan plan = make_plan(hybrid_4b(), parse_recipe("q4_k_m"), {});
  std::vector<int> layers;
  for (const PlannedTensor& t : plan.tensors) {
    if (t.name.ends_with("down_proj.weight") && t.used == QuantType::kQ6_K) layers.push_back(t.layer);
  }
  EXPECT_THAT(layers, ::testing::ElementsAre(0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31));
}

TEST(MixedTypes, DeployedFilesHaveTheTiedHeadInQ6K) {
  PlanOptions options;
  options.deploy = true;
  const QuantPlan plan = make_plan(hybrid_4b(), parse_recipe("q4_k_m+imatrix"), options);
  EXPECT_TRUE(plan.importance);
  EXPECT_EQ(plan.tensors.front().role, TensorRole::kEmbedding);
  EXPECT_EQ(plan.tensors.front().used, QuantType::kQ6_K);
}

}  // namespace
}  // namespace wring::quantize
