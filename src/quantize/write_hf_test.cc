#include "quantize/write_hf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/json.h"
#include "quantize/testing.h"
#include "quantize/write_gguf.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace wring::quantize {
namespace {

namespace fs = std::filesystem;
using formats::QuantType;
using testing::data;
using testing::error_of;
using ::testing::HasSubstr;
using testing::ScratchFolder;
using testing::values_of;

QuantPlan convert_plan(const model::Model& model, QuantType type, FileForm form, ThreadPool& pool) {
  QuantPlan plan = make_convert_plan(model.spec(), type, form, 2);
  settle_plan(plan, largest_magnitudes(model, plan, pool, silent_progress()));
  return plan;
}

void to_hf(const model::Model& model, QuantType type, const fs::path& out) {
  ThreadPool pool(2);
  write_hf(model, convert_plan(model, type, FileForm::kHf, pool), type, out, pool, silent_progress());
}

QuantizeReport to_gguf(const model::Model& model, QuantType type, const fs::path& out) {
  ThreadPool pool(2);
  return write_gguf(model, convert_plan(model, type, FileForm::kGguf, pool), nullptr, out, pool,
                    silent_progress());
}

TEST(WriteHf, ThroughGgufAndBackGivesTheSameWeights) {
  const ScratchFolder scratch;
  for (const char* name : {"llama", "llama3_rope", "llama_linear_rope"}) {
    const model::Model source = model::Model::open(data(std::string("arch/") + name));
    const std::string stem = name;
    to_gguf(source, QuantType::kF32, scratch / (stem + ".gguf"));
    const model::Model middle = model::Model::open(scratch / (stem + ".gguf"));
    if (stem == "llama3_rope") {
      // Its divisors are those of a model of 32 positions, which no published configuration has.
      EXPECT_EQ(error_of([&] { to_hf(middle, QuantType::kF32, scratch / stem); }).code(),
                ErrorCode::kNotSupported);
      EXPECT_FALSE(fs::exists(scratch / stem));
      continue;
    }
    to_hf(middle, QuantType::kF32, scratch / stem);
    const model::Model back = model::Model::open(scratch / stem);
    for (const model::Weight& w : source.weights())
      EXPECT_EQ(values_of(back, w.name), values_of(source, w.name)) << w.name;
    EXPECT_EQ(back.config().rope.rope_type, source.config().rope.rope_type);
    EXPECT_EQ(back.config().rope.factor, source.config().rope.factor);
    EXPECT_FLOAT_EQ(static_cast<float>(back.config().rms_norm_eps),
                    static_cast<float>(source.config().rms_norm_eps));
  }
}

TEST(WriteHf, KeepsAFoldersConfigurationButTheDtype) {
  const ScratchFolder scratch;
  const model::Model source = model::Model::open(data("arch/llama3_rope"));
  to_hf(source, QuantType::kBF16, scratch / "out");
  nlohmann::json before = formats::read_json_file(data("arch/llama3_rope") / "config.json"),
                 after = formats::read_json_file(scratch / "out" / "config.json");
  EXPECT_EQ(after["torch_dtype"], "bfloat16");
  for (nlohmann::json* config : {&before, &after}) {
    config->erase("dtype");
    config->erase("torch_dtype");
  }
  EXPECT_EQ(before, after);
  const model::Model written = model::Model::open(scratch / "out");
  EXPECT_EQ(written.weight("model.norm.weight").type(), QuantType::kBF16);
  EXPECT_EQ(values_of(written, "model.layers.1.self_attn.q_proj.weight"),
            values_of(source, "model.layers.1.self_attn.q_proj.weight"));
}

TEST(WriteHf, RefusesBlockTypes) {
  const ScratchFolder scratch;
  const model::Model source = model::Model::open(data("arch/llama"));
  EXPECT_EQ(error_of([&] { to_hf(source, QuantType::kQ8_0, scratch / "out"); }).code(),
            ErrorCode::kNotSupported);
  EXPECT_FALSE(fs::exists(scratch / "out"));
}

class Tokenizers : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Tiny, Tokenizers, ::testing::Values("tok_llama", "tok_qwen"));

TEST_P(Tokenizers, GoThroughGgufAndBack) {
  const ScratchFolder scratch;
  testing::write_small_llama(scratch / "hf", {}, R"(, "eos_token_id": [2, 4])", 330);
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
    fs::copy_file(data(std::string("tokenizer/") + GetParam()) / name, scratch / "hf" / name);
  }
  const text::Tokenizer source = text::Tokenizer::from_hf(scratch / "hf");
  to_gguf(model::Model::open(scratch / "hf"), QuantType::kBF16, scratch / "m.gguf");

  const model::Model middle = model::Model::open(scratch / "m.gguf");
  const text::Tokenizer in_gguf = text::Tokenizer::from_gguf(*middle.gguf());
  EXPECT_EQ(middle.gguf()->strings("tokenizer.ggml.tokens").size(), 330U);  // a token for every row
  EXPECT_EQ(middle.gguf()->strings("tokenizer.ggml.tokens")[329], "[PAD329]");
  EXPECT_EQ(middle.config().eos_token_ids, (std::vector<std::int32_t>{2, 4}));
  EXPECT_EQ(in_gguf.adds_bos(), source.adds_bos());
  EXPECT_EQ(in_gguf.bos(), source.bos());
  EXPECT_EQ(in_gguf.eos(), source.eos());

  to_hf(middle, QuantType::kBF16, scratch / "back");
  const text::Tokenizer back = text::Tokenizer::from_hf(scratch / "back");
  EXPECT_EQ(back.hash(), in_gguf.hash());
  EXPECT_EQ(back.adds_bos(), source.adds_bos());
  EXPECT_EQ(text::find_chat_template(scratch / "back"), text::find_chat_template(scratch / "hf"));
  for (const char* text : {"the cat sat", "  12345 don't\n\n",
                           "<|im_start|>user\n\xED\x95\x9C\xEA\xB5\xAD</s>", "\t a  b\r\n"}) {
    EXPECT_EQ(in_gguf.encode(text, text::Specials::kParse), source.encode(text, text::Specials::kParse))
        << text;
    EXPECT_EQ(back.encode(text, text::Specials::kParse), source.encode(text, text::Specials::kParse)) << text;
    EXPECT_EQ(back.encode(text, text::Specials::kPlain), source.encode(text, text::Specials::kPlain)) << text;
  }
}

// A definition of tests/data/tokenizer/sentencepiece.json, as a whole tokenizer.json.
nlohmann::json sentencepiece(const std::string& name) {
  const nlohmann::json golden = formats::read_json_file(data("tokenizer/sentencepiece.json"));
  for (const nlohmann::json& c : golden["cases"]) {
    if (c["name"] != name) continue;
    nlohmann::json out = c;
    out["model"] = golden["models"][c["model"].get<std::string>()];
    return out;
  }
  throw std::runtime_error("no case " + name);
}

struct SentencePieceCase {
  const char* name;
  bool warns;
};
class SentencePieceTokenizers : public ::testing::TestWithParam<SentencePieceCase> {};
INSTANTIATE_TEST_SUITE_P(
    Rules, SentencePieceTokenizers,
    ::testing::Values(SentencePieceCase{"llama 2", false}, SentencePieceCase{"gemma", false},
                      SentencePieceCase{"mistral v3", true}, SentencePieceCase{"never", false},
                      SentencePieceCase{"unigram", true}, SentencePieceCase{"unigram, whole text", false}));

TEST_P(SentencePieceTokenizers, GoThroughGgufAndBack) {
  const ScratchFolder scratch;
  testing::write_small_llama(scratch / "hf", {}, "", 430);
  const nlohmann::json definition = sentencepiece(GetParam().name);
  write_file_atomically(scratch / "hf" / "tokenizer.json", definition.dump());
  const text::Tokenizer source = text::Tokenizer::from_hf(scratch / "hf");
  const QuantizeReport report =
      to_gguf(model::Model::open(scratch / "hf"), QuantType::kBF16, scratch / "m.gguf");
  EXPECT_EQ(!report.warnings.empty(), GetParam().warns);
  const model::Model middle = model::Model::open(scratch / "m.gguf");
  const text::Tokenizer in_gguf = text::Tokenizer::from_gguf(*middle.gguf());
  to_hf(middle, QuantType::kBF16, scratch / "back");
  const text::Tokenizer back = text::Tokenizer::from_hf(scratch / "back");
  int compared = 0;
  for (const nlohmann::json& row : definition["texts"]) {
    const std::string text = row[0];
    for (const text::Specials specials : {text::Specials::kParse, text::Specials::kPlain}) {
      const std::vector<text::TokenId> ids = in_gguf.encode(text, specials);
      EXPECT_EQ(back.encode(text, specials), ids) << text;
      EXPECT_EQ(back.decode(ids), in_gguf.decode(ids));
      // The difference that the warning speaks of.
      if (GetParam().warns && (text.starts_with(' ') || text.find('<') != std::string::npos)) continue;
      EXPECT_EQ(ids, source.encode(text, specials)) << text;
      ++compared;
    }
  }
  EXPECT_GE(compared, 8);
}

TEST(WriteGguf, RefusesSentencePieceRulesThatScoresCannotSay) {
  const ScratchFolder scratch;
  testing::write_small_llama(scratch / "hf", {}, "", 430);
  const auto refusal = [&](const nlohmann::json& definition) {
    write_file_atomically(scratch / "hf" / "tokenizer.json", definition.dump());
    const Error error =
        error_of([&] { to_gguf(model::Model::open(scratch / "hf"), QuantType::kBF16, scratch / "m.gguf"); });
    EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
    return std::string(error.what());
  };
  nlohmann::json definition = sentencepiece("llama 2");
  definition["model"]["merges"].erase(0);
  EXPECT_THAT(refusal(definition), HasSubstr("model.merges"));
  definition = sentencepiece("llama 2");
  auto& merges = definition["model"]["merges"];
  const auto result = [](const nlohmann::json& m) {
    return m[0].get<std::string>() + m[1].get<std::string>();
  };
  const auto twin = std::adjacent_find(merges.begin(), merges.end(),
                                       [&](const auto& x, const auto& y) { return result(x) == result(y); });
  ASSERT_NE(twin, merges.end());
  std::rotate(twin, twin + 1, merges.end());  // the two merges of one piece apart
  EXPECT_THAT(refusal(definition), HasSubstr("model.merges"));
  EXPECT_THAT(refusal(sentencepiece("regex and NFC")), HasSubstr("normalizer"));
  EXPECT_THAT(refusal(sentencepiece("words")), HasSubstr("pre_tokenizer"));
  definition = sentencepiece("always");
  definition["model"]["vocab"]["a\u2581b"] = 428;
  EXPECT_THAT(refusal(definition), HasSubstr("pre_tokenizer"));
}

TEST(GgufTokenizer, RulesWithoutANameAreRefused) {
  const ScratchFolder scratch;
  testing::write_small_llama(scratch / "hf", {}, "", 330);
  nlohmann::json tokenizer = formats::read_json_file(data("tokenizer/tok_llama") / "tokenizer.json");
  tokenizer["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "\\s+|\\S+";
  write_file_atomically(scratch / "hf" / "tokenizer.json", tokenizer.dump());
  const Error error =
      error_of([&] { to_gguf(model::Model::open(scratch / "hf"), QuantType::kBF16, scratch / "m.gguf"); });
  EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
  EXPECT_THAT(error.what(), HasSubstr("pre_tokenizer"));
  EXPECT_FALSE(fs::exists(scratch / "m.gguf"));
}

TEST(GgufTokenizer, MoreTokensThanRowsAreRefused) {
  const ScratchFolder scratch;
  testing::write_small_llama(scratch / "hf");
  fs::copy_file(data("tokenizer/tok_llama") / "tokenizer.json", scratch / "hf" / "tokenizer.json");
  const Error error =
      error_of([&] { to_gguf(model::Model::open(scratch / "hf"), QuantType::kBF16, scratch / "m.gguf"); });
  EXPECT_EQ(error.code(), ErrorCode::kBadInput);
  EXPECT_THAT(error.what(), HasSubstr("96"));
}

}  // namespace
}  // namespace wring::quantize
