#include "quantize/write_coded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/mapped_file.h"
#include "formats/json.h"
#include "quantize/testing.h"

namespace wring::quantize {
namespace {

namespace fs = std::filesystem;
using formats::QuantType;
using formats::SafetensorsReader;
using ::testing::Contains;
using testing::data;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ScratchFolder;
using testing::values_of;

QuantPlan coded_plan(const model::Model& model, const std::string& recipe, PlanOptions options = {}) {
  ThreadPool pool(2);
  return testing::settled_plan(model, make_plan(model.spec(), parse_recipe(recipe), options), pool);
}

QuantizeReport to_coded_folder(const model::Model& model, const std::string& recipe, const fs::path& out,
                               PlanOptions options = {}, const LargestInputs* inputs = nullptr) {
  ThreadPool pool(2);
  return write_coded(model, coded_plan(model, recipe, options), inputs, out, pool, silent_progress());
}

std::vector<std::string> ignored_in(const fs::path& folder) {
  return formats::read_json_file(folder / "config.json")["quantization_config"]["ignore"];
}

fs::path shared_fixtures() {
  return fs::path(WRING_SOURCE_DIR) / ".." / "shared" / "fixtures";
}

/// What compressed-tensors 0.20.1 made of the same BF16 weights.
TEST(WriteCoded, GivesTheLibrarysBytes) {
  const fs::path quant = shared_fixtures() / "quant";
  if (!fs::exists(quant)) GTEST_SKIP() << "no shared fixtures";
  const ScratchFolder scratch;
  const model::Model source = model::Model::open(quant / "llama_q_bf16");
  for (const auto& [recipe, theirs] : {std::pair{"int4-rtn", "int4_sym_g128"}, std::pair{"nvfp4", "nvfp4"}}) {
    to_coded_folder(source, recipe, scratch / recipe);
    const auto ours = SafetensorsReader::open(scratch / recipe);
    const auto want = SafetensorsReader::open(quant / theirs);
    for (const formats::TensorInfo& t : want.tensors()) {
      if (t.name.ends_with("input_global_scale")) continue;  // of their calibration
      const formats::TensorInfo* found = ours.find(t.name);
      ASSERT_NE(found, nullptr) << t.name;
      EXPECT_EQ(found->type, t.type) << t.name;
      EXPECT_TRUE(std::ranges::equal(found->data, t.data)) << t.name;
    }
  }
}

class CodedRecipes : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, CodedRecipes, ::testing::Values("int4-rtn", "fp8", "nvfp4"),
                         [](const auto& recipe) {
                           const std::string name = recipe.param;
                           return name.substr(0, name.find('-'));
                         });

TEST_P(CodedRecipes, EveryArchitectureOfLinearMapsIsWrittenAndReadBack) {
  for (const char* name :
       {"llama", "qwen2", "phi3", "gemma3", "olmo2", "exaone_moe", "deepseek_v3", "qwen3_5", "qwen3_next"}) {
    const ScratchFolder scratch;
    const model::Model source = model::Model::open(data(std::string("arch/") + name));
    PlanOptions options;
    if (std::string_view(GetParam()) == "int4-rtn") options.group = 32;
    const QuantizeReport report = to_coded_folder(source, GetParam(), scratch / "out", options);
    const model::Model back = model::Model::open(scratch / "out");
    EXPECT_TRUE(back.is_quantized()) << name;
    EXPECT_LT(report.relative_error, std::string_view(GetParam()) == "fp8" ? 0.04 : 0.15) << name;
    EXPECT_GT(report.relative_error, 0.001) << name;
    // write_coded() has compared codes; what stays is the source's, rounded to BF16.
    EXPECT_EQ(values_of(back, source.spec().final_norm.name + ".weight"),
              values_of(source, source.spec().final_norm.name + ".weight"))
        << name;
  }
}

TEST_P(CodedRecipes, ExpertsAreWrittenSinglyAndRoutersAreIgnored) {
  const ScratchFolder scratch;
  testing::write_random_model(scratch / "hf", testing::small_moe_config("qwen3_5_moe_text"));
  to_coded_folder(model::Model::open(scratch / "hf"), GetParam(), scratch / "out");
  const auto file = SafetensorsReader::open(scratch / "out");
  EXPECT_NE(file.find("model.layers.1.mlp.experts.5.down_proj.weight_scale"), nullptr);
  EXPECT_EQ(file.find("model.layers.1.mlp.gate.weight")->type, QuantType::kBF16);
  const std::vector<std::string> ignored = ignored_in(scratch / "out");
  for (const char* module :
       {"lm_head", "model.layers.0.linear_attn.in_proj_a", "model.layers.0.linear_attn.in_proj_b",
        "model.layers.1.mlp.gate", "model.layers.1.mlp.shared_expert_gate"})
    EXPECT_THAT(ignored, Contains(module));
  EXPECT_THAT(ignored, Not(Contains(HasSubstr("down_proj"))));
}

TEST(WriteCoded, Nvfp4SharesItsNumberAmongMapsOfOneInput) {
  const ScratchFolder scratch;
  testing::write_small_llama(scratch / "hf", [](const std::string& name, std::vector<float>& values) {
    if (name.ends_with("k_proj.weight")) values[5] = 1.0F;
  });
  to_coded_folder(model::Model::open(scratch / "hf"), "nvfp4", scratch / "out");
  const auto file = SafetensorsReader::open(scratch / "out");
  const auto number = [&](const std::string& map) {
    float value = 0;
    std::memcpy(&value, file.find("model.layers.0." + map + ".weight_global_scale")->data.data(), 4);
    return value;
  };
  EXPECT_EQ(number("self_attn.q_proj"), 2688.0F);
  EXPECT_EQ(number("self_attn.v_proj"), 2688.0F);
  EXPECT_EQ(number("mlp.gate_proj"), number("mlp.up_proj"));
  EXPECT_GT(number("self_attn.o_proj"), 2688.0F);
}

TEST(WriteCoded, CalibratedNvfp4HoldsTheRangeOfInputs) {
  const ScratchFolder scratch;
  testing::write_small_llama(scratch / "hf");
  const model::Model source = model::Model::open(scratch / "hf");
  engine::Engine engine(source, {});
  const std::vector<std::vector<engine::TokenId>> documents = {{1, 2, 3, 4, 5, 6, 7, 8, 9},
                                                               {9, 8, 7, 6, 5, 4, 3}};
  const LargestInputs inputs = find_largest_inputs(engine, documents, "texts", silent_progress());
  PlanOptions options;
  options.coded_inputs = true;
  to_coded_folder(source, "nvfp4", scratch / "out", options, &inputs);
  const auto file = SafetensorsReader::open(scratch / "out");
  const formats::TensorInfo* stored = file.find("model.layers.0.mlp.down_proj.input_global_scale");
  ASSERT_NE(stored, nullptr);
  float number = 0;
  std::memcpy(&number, stored->data.data(), 4);
  EXPECT_GT(inputs.of(0, model::Site::kDown), 0);
  EXPECT_EQ(number, 448.0F * 6.0F / inputs.of(0, model::Site::kDown));
  const auto config = formats::read_json_file(scratch / "out" / "config.json");
  EXPECT_EQ(config["quantization_config"]["config_groups"]["group_0"]["input_activations"]["dynamic"],
            "local");
  EXPECT_EQ(model::Model::open(scratch / "out").config().quantization.activations(), "FP4");
}

TEST(WriteCoded, GroupsThatDoNotDivideStayBf16) {
  const ScratchFolder scratch;
  const model::Model source = model::Model::open(data("arch/llama"));  // hidden 64
  PlanOptions options;
  const QuantPlan plan = coded_plan(source, "int4-rtn", options);
  for (const PlannedTensor& t : plan.tensors) {
    if (!t.name.ends_with("q_proj.weight")) continue;
    EXPECT_FALSE(t.codes.has_value());
    EXPECT_TRUE(t.substituted());
    EXPECT_THAT(t.reason, HasSubstr("64"));
  }
  to_coded_folder(source, "int4-rtn", scratch / "out", options);
  EXPECT_THAT(ignored_in(scratch / "out"), Contains("model.layers.0.self_attn.q_proj"));
  options.strict = true;
  EXPECT_EQ(error_of([&] { make_plan(source.spec(), parse_recipe("int4-rtn"), options); }).code(),
            ErrorCode::kNotSupported);
}

TEST(WriteCoded, WhatHasNoLinearModulesIsRefusedByName) {
  for (const char* name : {"gpt2", "gpt_oss"}) {
    const model::ModelSpec spec = model::make_spec(model::read_hf_config(data(std::string("arch/") + name)));
    const Error error = error_of([&] { make_plan(spec, parse_recipe("fp8"), {}); });
    EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
    EXPECT_THAT(error.what(), HasSubstr(name));
  }
}

TEST(WriteCoded, OptionsThatChangeNothingAreErrors) {
  const model::ModelSpec spec = model::make_spec(model::read_hf_config(data("arch/llama")));
  PlanOptions deploy, group, keep;
  deploy.deploy = true;
  group.group = 64;
  keep.keep = {parse_keep_rule("*.v_proj=q8_0")};
  EXPECT_EQ(error_of([&] { make_plan(spec, parse_recipe("fp8"), deploy); }).code(), ErrorCode::kUsage);
  EXPECT_EQ(error_of([&] { make_plan(spec, parse_recipe("q4_k"), group); }).code(), ErrorCode::kUsage);
  EXPECT_EQ(error_of([&] { make_plan(spec, parse_recipe("fp8"), keep); }).code(), ErrorCode::kNotSupported);
}

TEST(WriteCoded, KeptMatricesAreIgnored) {
  const ScratchFolder scratch;
  testing::write_small_llama(scratch / "hf");
  PlanOptions options;
  options.keep = {parse_keep_rule("*.v_proj=bf16")};
  to_coded_folder(model::Model::open(scratch / "hf"), "int4-rtn", scratch / "out", options);
  EXPECT_THAT(ignored_in(scratch / "out"), Contains("model.layers.0.self_attn.v_proj"));
  EXPECT_EQ(SafetensorsReader::open(scratch / "out").find("model.layers.0.self_attn.v_proj.weight")->type,
            QuantType::kBF16);
}

/// A vision-language checkpoint in miniature: the text model nested, two tensors beside it.
void write_nested(const fs::path& flat, const fs::path& nested) {
  testing::write_random_model(flat, testing::small_moe_config("qwen3_5_moe_text"));
  nlohmann::json config = {{"architectures", {"Qwen3_5MoeForConditionalGeneration"}},
                           {"model_type", "qwen3_5_moe"},
                           {"image_token_id", 90},
                           {"text_config", formats::read_json_file(flat / "config.json")}};
  fs::create_directories(nested);
  write_file_atomically(nested / "config.json", config.dump());
  write_file_atomically(nested / "preprocessor_config.json", "{}");
  const auto source = SafetensorsReader::open(flat);
  formats::SafetensorsWriter writer(nested / "model.safetensors");
  const std::vector<float> beside(64, 0.125F);
  for (const formats::TensorInfo& t : source.tensors()) {
    const std::string name =
        t.name.starts_with("model.") ? "model.language_model." + t.name.substr(6) : t.name;
    writer.declare(name, t.type, t.shape);
  }
  const std::vector<std::uint64_t> shape = {8, 8};
  for (const char* name : {"model.visual.merger.weight", "mtp.fc.weight"})
    writer.declare(name, QuantType::kF32, shape);
  writer.begin_data();
  for (const formats::TensorInfo& t : source.tensors()) writer.write(t.data);
  for (int i = 0; i < 2; ++i) writer.write(std::as_bytes(std::span(beside)));
  writer.commit();
}

TEST(WriteCoded, WhatLiesBesideATextModelIsCopied) {
  const ScratchFolder scratch;
  write_nested(scratch / "flat", scratch / "vl");
  to_coded_folder(model::Model::open(scratch / "vl"), "fp8", scratch / "out");
  const auto file = SafetensorsReader::open(scratch / "out");
  ASSERT_NE(file.find("model.visual.merger.weight"), nullptr);
  EXPECT_EQ(file.find("mtp.fc.weight")->type, QuantType::kF32);
  EXPECT_TRUE(std::ranges::equal(file.find("mtp.fc.weight")->data,
                                 SafetensorsReader::open(scratch / "vl").find("mtp.fc.weight")->data));
  EXPECT_NE(file.find("model.language_model.layers.0.mlp.experts.2.up_proj.weight_scale"), nullptr);
  EXPECT_THAT(ignored_in(scratch / "out"),
              ::testing::AllOf(Contains("model.visual.merger"), Contains("mtp.fc"),
                               Contains("model.language_model.layers.0.mlp.gate")));
  const auto config = formats::read_json_file(scratch / "out" / "config.json");
  EXPECT_EQ(config["image_token_id"], 90);
  EXPECT_EQ(config["text_config"]["model_type"], "qwen3_5_moe_text");
  EXPECT_TRUE(fs::exists(scratch / "out" / "preprocessor_config.json"));
  EXPECT_EQ(testing::all_logits(scratch / "out").size(), testing::all_logits(scratch / "flat").size());
}

TEST(WriteCoded, AQuantizedFolderIsQuantizedAgainAndAGgufToo) {
  const ScratchFolder scratch;
  testing::write_small_llama(scratch / "hf");
  const model::Model source = model::Model::open(scratch / "hf");
  to_coded_folder(source, "fp8", scratch / "fp8");
  to_coded_folder(model::Model::open(scratch / "fp8"), "int4-rtn", scratch / "int4");
  const auto config = formats::read_json_file(scratch / "int4" / "config.json");
  EXPECT_EQ(config["quantization_config"]["format"], "pack-quantized");
  testing::to_gguf_file(source, QuantType::kBF16, scratch / "m.gguf");
  to_coded_folder(source, "nvfp4", scratch / "direct");
  to_coded_folder(model::Model::open(scratch / "m.gguf"), "nvfp4", scratch / "by_gguf");
  EXPECT_EQ(testing::all_logits(scratch / "by_gguf"), testing::all_logits(scratch / "direct"));
}

TEST(WriteCoded, TheFolderHoldsACardAndSums) {
  const ScratchFolder scratch;
  testing::write_small_llama(scratch / "hf");
  to_coded_folder(model::Model::open(scratch / "hf"), "int4-rtn", scratch / "out");
  const std::string card = read_text_file(scratch / "out" / "README.md", 1 << 20);
  EXPECT_THAT(card, HasSubstr("int4-rtn"));
  EXPECT_THAT(card, HasSubstr("4.1"));
  EXPECT_THAT(card, HasSubstr(model::Model::open(scratch / "hf").content_hash()));
  const std::string sums = read_text_file(scratch / "out" / "SHA256SUMS", 1 << 20);
  EXPECT_THAT(sums, HasSubstr(sha256_hex(read_text_file(scratch / "out" / "model.safetensors", 1 << 30)) +
                              "  model.safetensors\n"));
  EXPECT_THAT(sums, HasSubstr("  README.md\n"));
}

TEST(WriteCoded, CodesOfAnotherChoiceAreWrittenAsChosen) {
  const ScratchFolder scratch;
  testing::write_small_llama(scratch / "hf");
  const model::Model source = model::Model::open(scratch / "hf");
  ThreadPool pool(2);
  const CodeChooser zeros = [](const PlannedTensor&, std::span<const float> weights, CodedScales&) {
    return std::vector<std::uint8_t>(weights.size(), 8);
  };
  const QuantizeReport report = write_coded(source, coded_plan(source, "int4-rtn"), nullptr, scratch / "out",
                                            pool, silent_progress(), zeros);
  EXPECT_DOUBLE_EQ(report.relative_error, 1.0);
  for (const float v : values_of(model::Model::open(scratch / "out"), "model.layers.0.mlp.up_proj.weight"))
    ASSERT_EQ(v, 0.0F);
}

TEST(WriteCoded, NothingIsLeftBehindOnAnError) {
  const ScratchFolder scratch;
  testing::write_small_llama(scratch / "hf");
  const model::Model source = model::Model::open(scratch / "hf");
  ThreadPool pool(2);
  const CodeChooser fails = [](const PlannedTensor&, std::span<const float>,
                               CodedScales&) -> std::vector<std::uint8_t> {
    throw Error(ErrorCode::kCancelled, "stopped");
  };
  EXPECT_EQ(error_of([&] {
              write_coded(source, coded_plan(source, "fp8"), nullptr, scratch / "out", pool,
                          silent_progress(), fails);
            }).code(),
            ErrorCode::kCancelled);
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch / "."), fs::directory_iterator()), 1);  // hf
}

}  // namespace
}  // namespace wring::quantize
