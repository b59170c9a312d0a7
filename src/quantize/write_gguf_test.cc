#include "quantize/write_gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/mapped_file.h"
#include "engine/engine.h"
#include "formats/json.h"
#include "model/names.h"
#include "quantize/testing.h"

namespace wring::quantize {
namespace {

using formats::GgufReader;
using formats::QuantType;
using testing::data;
using testing::error_of;
using ::testing::HasSubstr;
using testing::ScratchFolder;
using testing::values_of;

QuantPlan settled(const model::Model& model, QuantPlan plan, ThreadPool& pool) {
  settle_plan(plan, largest_magnitudes(model, plan, pool, silent_progress()));
  return plan;
}

QuantizeReport quantize(const model::Model& model, const std::string& recipe,
                        const std::filesystem::path& out, int threads = 2,
                        const formats::Imatrix* imatrix = nullptr) {
  ThreadPool pool(threads);
  const QuantPlan plan = settled(model, make_plan(model.spec(), parse_recipe(recipe), {}), pool);
  return write_gguf(model, plan, imatrix, out, pool, silent_progress());
}

void convert(const model::Model& model, QuantType type, const std::filesystem::path& out) {
  ThreadPool pool(2);
  write_gguf(model, settled(model, make_convert_plan(model.spec(), type, FileForm::kGguf, 2), pool), nullptr,
             out, pool, silent_progress());
}

// Every weight must come back in the same place: head order of q and k, of their biases, tied and untied
// heads.
class ConvertedFixture : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Architectures, ConvertedFixture,
                         ::testing::Values("llama", "llama3_rope", "llama_linear_rope", "qwen2", "olmo2",
                                           "exaone4"));

TEST_P(ConvertedFixture, HasTheSameWeightsAndRotaryFrequencies) {
  const ScratchFolder scratch;
  const model::Model source = model::Model::open(data(std::string("arch/") + GetParam()));
  convert(source, QuantType::kF32, scratch / "m.gguf");
  const model::Model written = model::Model::open(scratch / "m.gguf");
  ASSERT_EQ(written.weights().size(), source.weights().size());
  for (const model::Weight& w : source.weights()) {
    if (w.name.ends_with(".bias")) continue;  // the next test
    EXPECT_EQ(values_of(written, w.name), values_of(source, w.name)) << w.name;
  }
  const std::vector<float>&a = source.spec().ropes[0].inverse_frequencies,
        &b = written.spec().ropes[0].inverse_frequencies;
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_FLOAT_EQ(a[i], b[i]) << i;
  EXPECT_EQ(written.config().max_position_embeddings, source.config().max_position_embeddings);
  EXPECT_EQ(written.config().tie_word_embeddings, source.config().tie_word_embeddings);
}

TEST(WriteGguf, PutsRotaryBiasesInPairsOrder) {
  const ScratchFolder scratch;
  const model::Model source = model::Model::open(data("arch/llama3_rope"));
  convert(source, QuantType::kF32, scratch / "m.gguf");
  const auto file = GgufReader::open(scratch / "m.gguf");
  const std::vector<float> ours = values_of(source, "model.layers.0.self_attn.k_proj.bias");
  const formats::TensorInfo& stored = *file.find("blk.0.attn_k.bias");
  const int head_dim = static_cast<int>(source.config().head_dim);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const auto place = static_cast<std::size_t>(model::paired_row(static_cast<std::int64_t>(i), head_dim));
    float value = 0;
    std::memcpy(&value, stored.data.data() + place * sizeof(float), sizeof value);
    EXPECT_EQ(value, ours[i]) << i;
  }
}

TEST_P(ConvertedFixture, ComputesTheSameLogits) {
  const ScratchFolder scratch;
  const model::Model source = model::Model::open(data(std::string("arch/") + GetParam()));
  convert(source, QuantType::kF32, scratch / "m.gguf");
  const std::vector<float> ours = testing::all_logits(source),
                           theirs = testing::all_logits(model::Model::open(scratch / "m.gguf"));
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_NEAR(ours[i], theirs[i], 1e-5) << i;
}

// gemma2 and gemma3 of tests/data with the query scale and layers that llama.cpp has in its code.
struct GemmaCase {
  const char* name;
  std::vector<std::string> layer_types;  // as llama.cpp has them
};
class Gemma : public ::testing::TestWithParam<GemmaCase> {
 protected:
  model::Model open(const ScratchFolder& scratch, const nlohmann::json& changes) {
    const std::filesystem::path from = data(std::string("arch/") + GetParam().name), to = scratch / "hf";
    std::filesystem::create_directory(to);
    nlohmann::json config = formats::read_json_file(from / "config.json");
    config.update(changes);
    write_file_atomically(to / "config.json", config.dump());
    std::filesystem::copy_file(from / "model.safetensors", to / "model.safetensors",
                               std::filesystem::copy_options::overwrite_existing);
    return model::Model::open(to);
  }
};
INSTANTIATE_TEST_SUITE_P(
    Both, Gemma,
    ::testing::Values(GemmaCase{"gemma2", {"sliding_attention", "full_attention", "sliding_attention"}},
                      GemmaCase{"gemma3", std::vector<std::string>(4, "sliding_attention")}));

TEST_P(Gemma, GoesWithTheOneInItsNorms) {
  const ScratchFolder scratch;
  const model::Model source =
      open(scratch, {{"query_pre_attn_scalar", 32}, {"layer_types", GetParam().layer_types}});
  convert(source, QuantType::kF32, scratch / "m.gguf");
  const model::Model written = model::Model::open(scratch / "m.gguf");
  const std::vector<float> ours = values_of(source, "model.norm.weight"),
                           theirs = values_of(written, "model.norm.weight");
  for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_EQ(theirs[i], ours[i] + 1);
  const std::vector<float> a = testing::all_logits(source), b = testing::all_logits(written);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-4) << i;
}

TEST_P(Gemma, IsRefusedWhereLlamaCppWouldComputeSomethingElse) {
  const ScratchFolder scratch;
  for (const nlohmann::json& changes :
       {nlohmann::json{{"query_pre_attn_scalar", 48}, {"layer_types", GetParam().layer_types}},
        nlohmann::json{
            {"query_pre_attn_scalar", 32},
            {"layer_types", std::vector<std::string>(GetParam().layer_types.size(), "full_attention")}}}) {
    const model::Model source = open(scratch, changes);
    try {
      convert(source, QuantType::kF32, scratch / "m.gguf");
      FAIL() << changes;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kNotSupported) << e.what();
    }
    EXPECT_FALSE(std::filesystem::exists(scratch / "m.gguf"));
  }
}

TEST(WriteGguf, MetadataIsWhatLlamaCppReads) {
  const ScratchFolder scratch;
  const model::Model linear = model::Model::open(data("arch/llama_linear_rope"));
  quantize(linear, "q8_0", scratch / "linear.gguf");
  const auto file = GgufReader::open(scratch / "linear.gguf");
  EXPECT_EQ(file.string("general.architecture"), "llama");
  EXPECT_EQ(file.string("general.name"), "llama_linear_rope");
  EXPECT_EQ(file.integer("general.file_type", 0, 100), 7);
  EXPECT_EQ(file.integer("general.quantization_version", 0, 9), 2);
  EXPECT_EQ(file.string("llama.rope.scaling.type"), "linear");
  EXPECT_EQ(file.number("llama.rope.scaling.factor"), 4.0);
  EXPECT_EQ(file.integer("llama.attention.key_length", 1, 999), linear.config().head_dim);
  EXPECT_EQ(file.integer("llama.vocab_size", 1, 9999), linear.config().vocab_size);
  EXPECT_EQ(file.string("tokenizer.ggml.model"), "none");
  EXPECT_EQ(file.find("rope_freqs.weight"), nullptr);
  EXPECT_EQ(file.find("output_norm.weight")->type, QuantType::kF32);

  const model::Model llama3 = model::Model::open(data("arch/llama3_rope"));
  convert(llama3, QuantType::kBF16, scratch / "llama3.gguf");
  const auto second = GgufReader::open(scratch / "llama3.gguf");
  EXPECT_FALSE(second.has("llama.rope.scaling.type"));
  EXPECT_EQ(second.find("rope_freqs.weight")->elements(),
            static_cast<std::uint64_t>(llama3.config().head_dim / 2));
}

TEST(WriteGguf, AGgufSourceKeepsItsTokenizerAndNames) {
  const ScratchFolder scratch;
  const model::Model source = model::Model::open(data("gguf/llama.gguf"));
  quantize(source, "q8_0", scratch / "m.gguf");
  const auto file = GgufReader::open(scratch / "m.gguf");
  EXPECT_EQ(file.string("general.name"), source.gguf()->string("general.name"));
  EXPECT_EQ(file.strings("tokenizer.ggml.tokens"), source.gguf()->strings("tokenizer.ggml.tokens"));
  EXPECT_EQ(file.string("tokenizer.chat_template"), source.gguf()->string("tokenizer.chat_template"));
  EXPECT_EQ(file.integer("general.file_type", 0, 100), 7);
}

TEST(WriteGguf, ReportsTheErrorOfEachTensor) {
  const ScratchFolder scratch;
  testing::write_small_llama(scratch / "hf", [](const std::string& name, std::vector<float>& values) {
    if (name.find("up_proj") == std::string::npos) return;
    for (std::size_t i = 0; i < values.size(); i += 256) values[i] = 20.0F;  // an outlier in each row
  });
  const model::Model source = model::Model::open(scratch / "hf");
  const QuantizeReport report = quantize(source, "q4_k", scratch / "m.gguf");
  const model::Model written = model::Model::open(scratch / "m.gguf");
  EXPECT_EQ(report.file_bytes, std::filesystem::file_size(scratch / "m.gguf"));
  double worst = 0;
  for (const TensorReport& t : report.tensors) {
    const std::vector<float> x = values_of(source, t.planned.name), back = values_of(written, t.planned.name);
    double error = 0, all = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      error += std::pow(static_cast<double>(x[i]) - back[i], 2);
      all += std::pow(static_cast<double>(x[i]), 2);
    }
    EXPECT_NEAR(t.relative_error, std::sqrt(error / all), 1e-9) << t.planned.name;
    if (t.planned.role == TensorRole::kBlockMatrix) worst = std::max(worst, t.relative_error);
    if (t.planned.role == TensorRole::kVector) {
      EXPECT_EQ(t.relative_error, 0);
    }
  }
  EXPECT_GT(report.relative_error, 0);
  EXPECT_LE(report.relative_error, worst);
}

TEST(WriteGguf, ThreadsDoNotChangeTheFile) {
  const ScratchFolder scratch;
  testing::write_small_llama(scratch / "hf");
  const model::Model source = model::Model::open(scratch / "hf");
  quantize(source, "q4_k", scratch / "one.gguf", 1);
  quantize(source, "q4_k", scratch / "three.gguf", 3);
  EXPECT_EQ(testing::bytes_of_file(scratch / "one.gguf"), testing::bytes_of_file(scratch / "three.gguf"));
}

// --- bad weights
// ----------------------------------------------------------------------------------------------------------

Error error_of_quantizing(const ScratchFolder& scratch, const std::string& name, std::size_t index,
                          float value) {
  testing::write_small_llama(scratch / "hf", [&](const std::string& tensor, std::vector<float>& values) {
    if (tensor == name) values[index] = value;
  });
  const model::Model source = model::Model::open(scratch / "hf");
  const Error error = error_of([&] { quantize(source, "q4_k", scratch / "out" / "m.gguf"); });
  EXPECT_FALSE(std::filesystem::exists(scratch / "out"));
  return error;
}

TEST(WriteGguf, RefusesNaNAndInfinityNamingTensorAndPlace) {
  const ScratchFolder scratch;
  const Error inf =
      error_of_quantizing(scratch, "model.layers.0.mlp.down_proj.weight", 512 * 3 + 17, INFINITY);
  EXPECT_EQ(inf.code(), ErrorCode::kBadInput);
  EXPECT_THAT(inf.what(), HasSubstr("inf at row 3, column 17"));
  EXPECT_THAT(inf.what(), HasSubstr("model.layers.0.mlp.down_proj.weight"));
  const Error nan = error_of_quantizing(scratch, "model.norm.weight", 5, NAN);
  EXPECT_THAT(nan.what(), HasSubstr("nan at index 5"));
  EXPECT_THAT(nan.what(), HasSubstr("model.norm.weight"));
}

TEST(WriteGguf, KeepsValuesAboveFloat16InBf16) {
  const ScratchFolder scratch;
  testing::write_small_llama(scratch / "hf", [](const std::string& name, std::vector<float>& values) {
    if (name.find("k_proj") != std::string::npos) values[7] = 1e30F;
  });
  const model::Model source = model::Model::open(scratch / "hf");
  for (const char* recipe : {"q4_k", "q8_0", "f16"}) {
    const QuantizeReport report = quantize(source, recipe, scratch / "m.gguf");
    const model::Model written = model::Model::open(scratch / "m.gguf");
    EXPECT_EQ(written.weight("model.layers.0.self_attn.k_proj.weight").type(), QuantType::kBF16);
    EXPECT_NE(written.weight("model.layers.0.self_attn.q_proj.weight").type(), QuantType::kBF16);
    for (const float v : values_of(written, "model.layers.0.self_attn.k_proj.weight"))
      EXPECT_TRUE(std::isfinite(v));
    EXPECT_THAT(report.tensors[3].planned.reason, HasSubstr("1e+30"));
  }
}

// --- importance
// -------------------------------------------------------------------------------------------------------------

TEST(WriteGguf, ImportanceMustFitTheModel) {
  const ScratchFolder scratch;
  testing::write_small_llama(scratch / "hf");
  const model::Model source = model::Model::open(scratch / "hf");
  const std::filesystem::path out = scratch / "m.gguf";
  EXPECT_EQ(error_of([&] { quantize(source, "q4_k+imatrix", out); }).code(), ErrorCode::kUsage);

  formats::Imatrix imatrix;
  for (const model::LinearUse& use : model::block_linears(source.spec())) {
    imatrix.entries[*model::gguf_name("llama", use.linear->name + ".weight")] = {
        std::vector<float>(static_cast<std::size_t>(use.linear->columns), 1.0F), {10}};
  }
  auto broken = imatrix;
  broken.entries.erase("blk.0.ffn_down.weight");
  EXPECT_THAT(error_of([&] { quantize(source, "q4_k+imatrix", out, 2, &broken); }).what(),
              HasSubstr("blk.0.ffn_down.weight"));
  broken = imatrix;
  broken.entries["blk.0.attn_q.weight"].sum_squares.resize(255);
  EXPECT_THAT(error_of([&] { quantize(source, "q4_k+imatrix", out, 2, &broken); }).what(), HasSubstr("255"));
  EXPECT_FALSE(std::filesystem::exists(out));

  const QuantizeReport report = quantize(source, "q4_k+imatrix", out, 2, &imatrix);
  EXPECT_TRUE(report.tensors[2].weighted_error.has_value());
  EXPECT_FALSE(report.tensors[0].weighted_error.has_value());
  EXPECT_EQ(GgufReader::open(out).integer("quantize.imatrix.entries_count", 0, 99), 7);
}

// --- leaving nothing behind
// ---------------------------------------------------------------------------------------------------

class CancelledAfter final : public ProgressSink {
 public:
  explicit CancelledAfter(int looks) : left_(looks) {}
  void update(std::string_view, std::uint64_t, std::uint64_t, std::string_view) override {}
  bool cancelled() const override { return --left_ < 0; }

 private:
  mutable int left_;
};

TEST(WriteGguf, CancellingLeavesNothing) {
  const ScratchFolder scratch;
  testing::write_small_llama(scratch / "hf");
  const model::Model source = model::Model::open(scratch / "hf");
  ThreadPool pool(2);
  const QuantPlan plan = settled(source, make_plan(source.spec(), parse_recipe("q4_k"), {}), pool);
  std::filesystem::create_directory(scratch / "out");
  CancelledAfter progress(4);
  EXPECT_EQ(
      error_of([&] { write_gguf(source, plan, nullptr, scratch / "out" / "m.gguf", pool, progress); }).code(),
      ErrorCode::kCancelled);
  EXPECT_TRUE(std::filesystem::is_empty(scratch / "out"));
}

TEST(WriteGguf, TheNameMustEndInGguf) {
  const model::Model source = model::Model::open(data("arch/llama"));
  EXPECT_EQ(error_of([&] {
              quantize(source, "q8_0", std::filesystem::path(::testing::TempDir()) / "m.bin");
            }).code(),
            ErrorCode::kUsage);
}

}  // namespace
}  // namespace wring::quantize
