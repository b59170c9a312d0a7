// Models of every shape through the files that are written of them: experts, latent attention, Gated
// DeltaNet, tensors that hold several maps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "engine/engine.h"
#include "formats/json.h"
#include "quantize/gguf_metadata.h"
#include "quantize/testing.h"

namespace wring::quantize {
namespace {

namespace fs = std::filesystem;
using formats::GgufReader;
using formats::QuantType;
using testing::all_logits;
using testing::data;
using testing::error_of;
using ::testing::HasSubstr;
using testing::ScratchFolder;

/// A model of tests/data, or a small random one.
fs::path family_source(const std::string& name, const ScratchFolder& scratch) {
  if (fs::exists(data("arch/" + name))) return data("arch/" + name);
  testing::write_random_model(scratch / "source", testing::small_moe_config(name));
  return scratch / "source";
}

/// The largest difference, in standard deviations of `b`.
double worst_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double worst = 0, squares = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
    squares += static_cast<double>(b[i]) * b[i];
  }
  return worst / std::sqrt(squares / static_cast<double>(b.size()));
}

class Family : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, Family,
                         ::testing::Values("mixtral", "qwen3_moe", "exaone_moe", "deepseek_v3", "qwen3_5",
                                           "qwen3_5_moe_text", "phi3", "gpt2", "gpt_oss"));

TEST_P(Family, ComputesTheSameFromGguf) {
  const ScratchFolder scratch;
  const model::Model source = model::Model::open(family_source(GetParam(), scratch));
  testing::to_gguf_file(source, QuantType::kF32, scratch / "m.gguf");
  const std::vector<float> want = all_logits(source), got = all_logits(scratch / "m.gguf");
  // Value heads lie in another order there, so sums over them have another.
  if (model::is_recurrent(source.spec())) {
    EXPECT_LT(worst_distance(got, want), 1e-5);
  } else {
    EXPECT_EQ(got, want);
  }
  // A copy of the copy is the same to the byte, its source's metadata included.
  testing::to_gguf_file(model::Model::open(scratch / "m.gguf"), QuantType::kF32, scratch / "again.gguf");
  const GgufReader first = GgufReader::open(scratch / "m.gguf"),
                   second = GgufReader::open(scratch / "again.gguf");
  ASSERT_EQ(first.tensors().size(), second.tensors().size());
  for (const formats::TensorInfo& t : first.tensors()) {
    const formats::TensorInfo* other = second.find(t.name);
    ASSERT_NE(other, nullptr) << t.name;
    EXPECT_EQ(other->shape, t.shape) << t.name;
    EXPECT_TRUE(std::ranges::equal(other->data, t.data)) << t.name;
  }
  for (const auto& [key, entry] : first.metadata()) {
    ASSERT_TRUE(second.has(key)) << key;
    EXPECT_EQ(second.metadata().at(key).value, entry.value) << key;
  }
}

TEST_P(Family, ComputesTheSameFromAFolder) {
  const ScratchFolder scratch;
  const model::Model source = model::Model::open(family_source(GetParam(), scratch));
  testing::to_hf_folder(source, QuantType::kF32, scratch / "hf");
  EXPECT_EQ(all_logits(scratch / "hf"), all_logits(source));
  const auto published = formats::SafetensorsReader::open(source.path()),
             written = formats::SafetensorsReader::open(scratch / "hf");
  ASSERT_EQ(written.tensors().size(), published.tensors().size());
  for (const formats::TensorInfo& t : published.tensors()) {
    const formats::TensorInfo* found = written.find(t.name);
    ASSERT_NE(found, nullptr) << t.name;
    EXPECT_EQ(found->shape, t.shape) << t.name;
    EXPECT_TRUE(std::ranges::equal(found->data, t.data)) << t.name;
  }
  if (!fs::exists(data("arch/" + GetParam()))) return;
  // Weights of tests/data are values of BF16, but for decays and choices, which stay F32.
  testing::to_hf_folder(source, QuantType::kBF16, scratch / "bf16");
  EXPECT_EQ(all_logits(scratch / "bf16"), all_logits(source));
}

TEST(Families, Qwen3NextGoesToAFolderAlone) {
  const ScratchFolder scratch;
  const model::Model source = model::Model::open(data("arch/qwen3_next"));
  testing::to_hf_folder(source, QuantType::kF32, scratch / "hf");
  EXPECT_EQ(all_logits(scratch / "hf"), all_logits(source));
  const Error error = error_of([&] { testing::to_gguf_file(source, QuantType::kF32, scratch / "m.gguf"); });
  EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
  EXPECT_THAT(error.what(), HasSubstr("qwen3_next"));
}

TEST(Families, AFusedFolderIsWrittenWithExpertsSingly) {
  const ScratchFolder scratch;
  testing::write_random_model(scratch / "singly", testing::small_moe_config("qwen3_moe"));
  // The same with experts.gate_up_proj (experts, 2 · rows, columns) and experts.down_proj.
  const auto singly = formats::SafetensorsReader::open(scratch / "singly");
  fs::create_directory(scratch / "fused");
  fs::copy_file(scratch / "singly" / "config.json", scratch / "fused" / "config.json");
  formats::SafetensorsWriter writer(scratch / "fused" / "model.safetensors");
  std::vector<std::vector<std::span<const std::byte>>> pieces;
  const std::vector<std::uint64_t> gate_up = {6, 512, 256}, down = {6, 256, 256};
  for (const formats::TensorInfo& t : singly.tensors()) {
    if (t.name.find(".experts.") != std::string::npos) continue;
    writer.declare(t.name, t.type, t.shape);
    pieces.push_back({t.data});
  }
  for (const std::string layer : {"0", "1"}) {
    const std::string p = "model.layers." + layer + ".mlp.experts.";
    const auto data_of = [&](int expert, const char* map) {
      return singly.find(p + std::to_string(expert) + "." + map + ".weight")->data;
    };
    writer.declare(p + "gate_up_proj", QuantType::kF32, gate_up);
    writer.declare(p + "down_proj", QuantType::kF32, down);
    std::vector<std::span<const std::byte>> both, downs;
    for (int e = 0; e < 6; ++e) {
      both.insert(both.end(), {data_of(e, "gate_proj"), data_of(e, "up_proj")});
      downs.push_back(data_of(e, "down_proj"));
    }
    pieces.insert(pieces.end(), {both, downs});
  }
  writer.begin_data();
  for (const auto& tensor : pieces) {
    for (const std::span<const std::byte> piece : tensor) writer.write(piece);
  }
  writer.commit();
  testing::to_hf_folder(model::Model::open(scratch / "fused"), QuantType::kF32, scratch / "out");
  const auto out = formats::SafetensorsReader::open(scratch / "out");
  ASSERT_EQ(out.tensors().size(), singly.tensors().size());
  for (const formats::TensorInfo& t : singly.tensors()) {
    ASSERT_NE(out.find(t.name), nullptr) << t.name;
    EXPECT_TRUE(std::ranges::equal(out.find(t.name)->data, t.data)) << t.name;
  }
}

TEST(Families, OfAVisionModelTheTextModelIsWritten) {
  const ScratchFolder scratch;
  testing::write_random_model(scratch / "text", testing::small_moe_config("qwen3_moe"));
  fs::create_directory(scratch / "whole");
  fs::copy_file(scratch / "text" / "model.safetensors", scratch / "whole" / "model.safetensors");
  const nlohmann::json text = nlohmann::json::parse(testing::small_moe_config("qwen3_moe"));
  const nlohmann::json whole = {
      {"model_type", "some_vl"}, {"architectures", {"SomeForConditionalGeneration"}}, {"text_config", text}};
  write_file_atomically(scratch / "whole" / "config.json", whole.dump());
  testing::to_hf_folder(model::Model::open(scratch / "whole"), QuantType::kF32, scratch / "out");
  const nlohmann::json written = formats::read_json_file(scratch / "out" / "config.json");
  EXPECT_EQ(written["model_type"], "qwen3_moe");
  EXPECT_EQ(written["architectures"], nlohmann::json{"SomeForCausalLM"});
  EXPECT_EQ(all_logits(scratch / "out"), all_logits(scratch / "text"));
}

// tests/data/gguf holds what llama.cpp's converter makes of the same models.
class AgainstLlamaCpp : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, AgainstLlamaCpp, ::testing::Values("exaone_moe", "deepseek_v3", "qwen3_5"));

TEST_P(AgainstLlamaCpp, NamesShapesBytesAndNumbersAreTheSame) {
  const ScratchFolder scratch;
  testing::to_gguf_file(model::Model::open(data("arch/" + GetParam())), QuantType::kBF16, scratch / "m.gguf");
  const auto ours = GgufReader::open(scratch / "m.gguf"),
             theirs = GgufReader::open(data("gguf/" + GetParam() + ".gguf"));
  EXPECT_EQ(ours.tensors().size(), theirs.tensors().size());
  for (const formats::TensorInfo& t : theirs.tensors()) {
    const formats::TensorInfo* found = ours.find(t.name);
    ASSERT_NE(found, nullptr) << t.name;
    EXPECT_EQ(found->shape, t.shape) << t.name;
    if (found->type != t.type) {
      EXPECT_TRUE(t.name.find("ssm_alpha") != std::string::npos ||
                  t.name.find("ssm_beta") != std::string::npos)
          << t.name;
      EXPECT_EQ(found->type, QuantType::kF32);
    } else {
      EXPECT_TRUE(std::ranges::equal(found->data, t.data)) << t.name;
    }
  }
  for (const auto& [key, entry] : theirs.metadata()) {
    if (key.starts_with("general.") || key.starts_with("tokenizer.")) continue;
    if (key.ends_with("nextn_predict_layers") || key.ends_with("rope.scaling.type")) continue;  // 0 and none
    ASSERT_TRUE(ours.has(key)) << key;
    EXPECT_EQ(ours.metadata().at(key).kind, entry.kind) << key;
    EXPECT_EQ(ours.metadata().at(key).value, entry.value) << key;
  }
}

// --- quantized
// ---------------------------------------------------------------------------------------------------------------

TEST(Families, ExpertsAreQuantizedAndRoutersAreNot) {
  const ScratchFolder scratch;
  testing::write_random_model(scratch / "hf", testing::small_moe_config("qwen3_5_moe_text"));
  const model::Model source = model::Model::open(scratch / "hf");
  const std::vector<float> want = all_logits(source);
  // Random routers have near ties: a token that changes its expert is far off, so the mean is looked at.
  const auto mean_distance = [&](const std::vector<float>& got) {
    double error = 0, all = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      error += std::pow(static_cast<double>(got[i]) - want[i], 2);
      all += std::pow(static_cast<double>(want[i]), 2);
    }
    return std::sqrt(error / all);
  };
  for (const auto& [recipe, type, weights, outputs] :
       {std::tuple{"q8_0", QuantType::kQ8_0, 0.01, 0.03}, std::tuple{"q4_k", QuantType::kQ4_K, 0.1, 0.6}}) {
    const QuantizeReport report = testing::to_quantized_file(source, recipe, scratch / "m.gguf");
    EXPECT_LT(report.relative_error, weights);
    EXPECT_LT(mean_distance(all_logits(scratch / "m.gguf")), outputs);
    const auto file = GgufReader::open(scratch / "m.gguf");
    for (const char* name : {"blk.0.ffn_gate_exps.weight", "blk.1.ffn_down_exps.weight",
                             "blk.0.ffn_up_shexp.weight", "blk.0.attn_qkv.weight"})
      EXPECT_EQ(file.find(name)->type, type) << name;
    for (const char* name : {"blk.0.ffn_gate_inp.weight", "blk.0.ffn_gate_inp_shexp.weight",
                             "blk.0.ssm_conv1d.weight", "blk.0.ssm_a"})
      EXPECT_EQ(file.find(name)->type, QuantType::kF32) << name;
    for (const char* name : {"blk.0.ssm_alpha.weight", "blk.0.ssm_beta.weight"})
      EXPECT_EQ(file.find(name)->type, QuantType::kBF16) << name;
  }
}

TEST(Families, RulesOfTypesKnowStacksByEitherName) {
  const model::Model source = model::Model::open(data("arch/exaone_moe"));
  PlanOptions options;
  options.keep = {parse_keep_rule("*.experts.down_proj=bf16"), parse_keep_rule("blk.2.ffn_up_exps=f16")};
  const QuantPlan plan = make_plan(source.spec(), parse_recipe("q8_0"), options);
  for (const PlannedTensor& t : plan.tensors) {
    if (t.name == "model.layers.2.mlp.experts.up_proj.weight") {
      EXPECT_EQ(t.asked, QuantType::kF16);
    }
    if (t.name == "model.layers.1.mlp.experts.up_proj.weight") {
      EXPECT_EQ(t.asked, QuantType::kQ8_0);
    }
    if (t.name.ends_with("experts.down_proj.weight") && t.role == TensorRole::kBlockMatrix && t.stacked > 0) {
      EXPECT_EQ(t.asked, QuantType::kBF16);
    }
  }
  // Routers are no rule's business.
  options.keep = {parse_keep_rule("*.mlp.gate=q8_0")};
  EXPECT_EQ(error_of([&] { make_plan(source.spec(), parse_recipe("q8_0"), options); }).code(),
            ErrorCode::kUsage);
}

// --- what GGUF cannot say
// ----------------------------------------------------------------------------------------------------

TEST(Refusals, WhatLlamaCppWouldComputeOtherwiseIsRefused) {
  const auto config = [](const char* name) {
    return model::read_hf_config(data(std::string("arch/") + name));
  };
  const auto refused = [](const model::ModelConfig& c, const char* what) {
    const Error error = error_of([&] { refuse_another_computation(c); });
    EXPECT_EQ(error.code(), ErrorCode::kNotSupported) << what;
    EXPECT_THAT(error.what(), HasSubstr(c.model_type)) << what;
  };
  const model::ModelConfig exaone = config("exaone_moe"), deepseek = config("deepseek_v3"),
                           qwen = config("qwen3_5");
  for (const model::ModelConfig& c : {exaone, deepseek, qwen, config("phi3")})
    EXPECT_NO_THROW(refuse_another_computation(c)) << c.model_type;
  model::ModelConfig c = exaone;
  c.sparse_layers = {true, false, true, true};
  refused(c, "a dense layer behind one with experts");
  c = exaone;
  c.layer_types[1] = model::LayerType::kFullAttention;
  refused(c, "another pattern of windows");
  c = deepseek;
  c.attention_bias = true;
  refused(c, "biases of latent attention");
  c = qwen;
  c.layer_types[0] = model::LayerType::kFullAttention;
  refused(c, "recurrent layers without an interval");

  const ScratchFolder scratch;
  testing::write_random_model(scratch / "moe", testing::small_moe_config("qwen3_moe"));
  const model::ModelConfig moe = model::read_hf_config(scratch / "moe");
  EXPECT_NO_THROW(refuse_another_computation(moe));
  c = moe;
  c.norm_topk_prob = false;
  refused(c, "weights that are not normalized");
  c = moe;
  c.sparse_layers = {false, true};
  refused(c, "a dense layer");
  c = moe;
  c.routed_scaling_factor = 2;
  refused(c, "scaled weights");
}

/// A folder of tests/data with other fields in its config.json.
model::Model edited_model(const std::string& name, const ScratchFolder& scratch,
                          const nlohmann::json& changes) {
  nlohmann::json config = formats::read_json_file(data("arch/" + name) / "config.json");
  config.update(changes);
  fs::create_directory(scratch / "edited");
  write_file_atomically(scratch / "edited" / "config.json", config.dump());
  fs::copy_file(data("arch/" + name) / "model.safetensors", scratch / "edited" / "model.safetensors");
  return model::Model::open(scratch / "edited");
}

TEST(Families, LongropeGoesAlong) {
  const ScratchFolder scratch;
  std::vector<double> shorts(12, 1.0), longs(12, 3.0);
  longs[3] = 2.5;
  const model::Model source = edited_model("phi3", scratch,
                                           {{"original_max_position_embeddings", 32},
                                            {"rope_parameters",
                                             {{"rope_type", "longrope"},
                                              {"rope_theta", 10000.0},
                                              {"short_factor", shorts},
                                              {"long_factor", longs},
                                              {"attention_factor", 1.25}}}});
  testing::to_gguf_file(source, QuantType::kF32, scratch / "m.gguf");
  const model::Model written = model::Model::open(scratch / "m.gguf");
  EXPECT_EQ(written.spec().ropes[0].long_inverse_frequencies,
            source.spec().ropes[0].long_inverse_frequencies);
  EXPECT_EQ(written.spec().ropes[0].long_from, 32);
  EXPECT_EQ(all_logits(written), all_logits(source));
}

TEST(Families, YarnOfLatentAttentionGoesAlong) {
  const ScratchFolder scratch;
  const nlohmann::json yarn = {{"rope_type", "yarn"}, {"rope_theta", 10000.0},
                               {"factor", 4.0},       {"original_max_position_embeddings", 128},
                               {"mscale", 0.7},       {"mscale_all_dim", 0.7}};
  const model::Model source = edited_model("deepseek_v3", scratch, {{"rope_parameters", yarn}});
  testing::to_gguf_file(source, QuantType::kF32, scratch / "m.gguf");
  EXPECT_LT(worst_distance(all_logits(scratch / "m.gguf"), all_logits(source)), 1e-5);
  // Sharpened positions beside sharpened scores have no key.
  model::ModelConfig c = source.config();
  c.rope.attention_factor = 1.1;
  EXPECT_EQ(error_of([&] { refuse_another_computation(c); }).code(), ErrorCode::kNotSupported);
}

TEST(Families, DeepSeekV2GoesAlongUnlessItsGroupsDiffer) {
  const ScratchFolder scratch;
  nlohmann::json config = {{"model_type", "deepseek_v2"},
                           {"vocab_size", 96},
                           {"hidden_size", 64},
                           {"intermediate_size", 96},
                           {"moe_intermediate_size", 32},
                           {"num_hidden_layers", 2},
                           {"num_attention_heads", 4},
                           {"num_key_value_heads", 4},
                           {"q_lora_rank", nullptr},
                           {"kv_lora_rank", 32},
                           {"qk_nope_head_dim", 16},
                           {"qk_rope_head_dim", 8},
                           {"v_head_dim", 24},
                           {"n_routed_experts", 8},
                           {"n_shared_experts", 2},
                           {"num_experts_per_tok", 3},
                           {"norm_topk_prob", false},
                           {"routed_scaling_factor", 1.5},
                           {"first_k_dense_replace", 1},
                           {"topk_method", "greedy"},
                           {"n_group", 1},
                           {"topk_group", 1},
                           {"scoring_func", "softmax"},
                           {"hidden_act", "silu"},
                           {"tie_word_embeddings", false},
                           {"max_position_embeddings", 128},
                           {"rms_norm_eps", 1e-6},
                           {"rope_theta", 10000.0}};
  testing::write_random_model(scratch / "hf", config.dump());
  const model::Model source = model::Model::open(scratch / "hf");
  testing::to_gguf_file(source, QuantType::kF32, scratch / "m.gguf");
  const model::Model written = model::Model::open(scratch / "m.gguf");
  EXPECT_EQ(written.config().model_type, "deepseek_v2");
  EXPECT_EQ(all_logits(written), all_logits(source));
  model::ModelConfig c = source.config();
  c.n_group = 4;
  c.topk_group = 2;
  EXPECT_EQ(error_of([&] { refuse_another_computation(c); }).code(), ErrorCode::kNotSupported);
}

TEST(SameComputation, SeesEveryNumberOfTheNewParts) {
  const auto spec_of = [](const char* name) {
    return model::make_spec(model::read_hf_config(data(std::string("arch/") + name)));
  };
  const auto differs = [](const model::ModelSpec& a, auto&& change, const char* what) {
    model::ModelSpec b = a;
    change(b.layers[1]);
    EXPECT_TRUE(model::same_computation(a, a));
    EXPECT_FALSE(model::same_computation(a, b)) << what;
  };
  const model::ModelSpec moe = spec_of("exaone_moe"), latent = spec_of("deepseek_v3"),
                         recurrent = spec_of("qwen3_5");
  using model::LayerSpec;
  differs(
      moe, [](LayerSpec& l) { l.moe->per_token = 2; }, "per_token");
  differs(
      moe, [](LayerSpec& l) { l.moe->normalize = false; }, "normalize");
  differs(
      moe, [](LayerSpec& l) { l.moe->scale = 1; }, "scale");
  differs(
      moe, [](LayerSpec& l) { l.moe->groups = 2; }, "groups");
  differs(
      moe, [](LayerSpec& l) { l.moe->scores = model::RouterScores::kSoftmax; }, "scores");
  differs(
      moe, [](LayerSpec& l) { l.moe->selection_bias.clear(); }, "selection_bias");
  differs(
      moe, [](LayerSpec& l) { l.moe->shared.reset(); }, "shared");
  differs(
      moe, [](LayerSpec& l) { l.moe->experts.pop_back(); }, "experts");
  differs(
      moe, [](LayerSpec& l) { l.moe.reset(); }, "moe");
  differs(
      latent, [](LayerSpec& l) { l.attention.latent->nope_dim = 8; }, "nope_dim");
  differs(
      latent, [](LayerSpec& l) { l.attention.latent->q_a.reset(); }, "q_a");
  differs(
      latent, [](LayerSpec& l) { l.attention.rotary_pairs = false; }, "rotary_pairs");
  differs(
      recurrent, [](LayerSpec& l) { l.delta_net->key_heads = 4; }, "key_heads");
  differs(
      recurrent, [](LayerSpec& l) { l.delta_net->norm.eps = 1; }, "norm");
  differs(
      recurrent, [](LayerSpec& l) { l.delta_net.reset(); }, "delta_net");
}

}  // namespace
}  // namespace wring::quantize
