// Encoding and decoding against ids of the reference libraries, and as properties on random bytes.
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "base/utf8.h"
#include "formats/gguf.h"
#include "text/tokenizer_test_data.h"

namespace wring::text {
namespace {

using nlohmann::json;
using testing::data;

void expect_golden(const Tokenizer& tokenizer, const std::filesystem::path& golden) {
  const std::vector<json> lines = testing::read_lines(golden);
  ASSERT_GT(lines.size(), 100u);
  for (const json& line : lines) {
    const std::string text = line["text"];
    const std::vector<TokenId> ids = tokenizer.encode(text, Specials::kParse);
    EXPECT_EQ(json(ids), line["ids"]) << printable(text);
    EXPECT_EQ(json(tokenizer.encode(text, Specials::kPlain)), line.value("ids_plain", line["ids"]))
        << printable(text);
    EXPECT_EQ(replace_invalid_utf8(tokenizer.decode(ids)), line["decoded"].get<std::string>());
  }
}

// The same definition as a GGUF holds it.
std::filesystem::path write_gguf(const std::filesystem::path& folder, const std::string& pre, bool add_bos) {
  const json root = testing::read_json(folder / "tokenizer.json");
  std::vector<std::string> tokens(root["model"]["vocab"].size()), merges;
  std::vector<std::int32_t> types(tokens.size(), 1);
  for (const auto& [token, id] : root["model"]["vocab"].items()) tokens[id.get<std::size_t>()] = token;
  for (const json& t : root["added_tokens"]) types[t["id"].get<std::size_t>()] = 3;
  for (const json& m : root["model"]["merges"])
    merges.push_back(m[0].get<std::string>() + " " + m[1].get<std::string>());
  tokens.push_back("[PAD]");
  types.push_back(5);

  const std::filesystem::path path = folder / "model.gguf";
  formats::GgufWriter writer(path);
  writer.add_string("general.architecture", "llama");
  writer.add_string("tokenizer.ggml.model", "gpt2");
  writer.add_string("tokenizer.ggml.pre", pre);
  writer.add_strings("tokenizer.ggml.tokens", tokens);
  writer.add_i32s("tokenizer.ggml.token_type", types);
  writer.add_strings("tokenizer.ggml.merges", merges);
  writer.add_u32("tokenizer.ggml.bos_token_id", 1);
  writer.add_u32("tokenizer.ggml.eos_token_id", 2);
  writer.add_bool("tokenizer.ggml.add_bos_token", add_bos);
  writer.begin_data();
  writer.commit();
  return path;
}

TEST(Tokenizer, LlamaFolderGivesTheReferenceIds) {
  const Tokenizer t = Tokenizer::from_hf(data("tok_llama"));
  expect_golden(t, data("tok_llama.jsonl"));
  EXPECT_EQ(t.vocab_size(), 320);
  EXPECT_EQ(t.bos(), 1);
  EXPECT_EQ(t.eos(), 2);
  EXPECT_TRUE(t.adds_bos());  // its TemplateProcessing puts <s> first
  EXPECT_TRUE(t.is_special(3));
  EXPECT_FALSE(t.is_special(300));
  EXPECT_EQ(t.id_of("<|im_start|>"), 3);
  EXPECT_EQ(t.id_of("no such token"), std::nullopt);
}

TEST(Tokenizer, QwenFolderNormalizesAndGivesTheReferenceIds) {
  const Tokenizer t = Tokenizer::from_hf(data("tok_qwen"));
  expect_golden(t, data("tok_qwen.jsonl"));
  EXPECT_EQ(t.bos(), std::nullopt);
  EXPECT_FALSE(t.adds_bos());
}

TEST(Tokenizer, GgufGivesTheSameIdsAndTheSameHash) {
  for (const auto& [name, pre] : {std::pair{"tok_llama", "llama-bpe"}, std::pair{"tok_qwen", "qwen2"}}) {
    const testing::Folder folder(testing::read_json(data(name) / "tokenizer.json"));
    const auto path = write_gguf(folder.path(), pre, true);
    const Tokenizer t = Tokenizer::from_gguf(formats::GgufReader::open(path));
    expect_golden(t, data(std::string(name) + ".jsonl"));
    EXPECT_EQ(t.hash(), Tokenizer::from_hf(data(name)).hash());  // the row of padding does not count
    EXPECT_EQ(t.vocab_size(), 321);
    EXPECT_EQ(t.bos(), 1);
    EXPECT_TRUE(t.adds_bos());
  }
}

TEST(Tokenizer, HashTellsDefinitionsApart) {
  json root = testing::read_json(data("tok_llama") / "tokenizer.json");
  const std::string original = Tokenizer::from_hf(data("tok_llama")).hash();
  EXPECT_NE(original, Tokenizer::from_hf(data("tok_qwen")).hash());
  std::swap(root["model"]["merges"][0], root["model"]["merges"][1]);
  EXPECT_NE(original, Tokenizer::from_hf(testing::Folder(root).path()).hash());
}

TEST(Tokenizer, RandomBytesSurviveTheRoundTrip) {
  const Tokenizer t = Tokenizer::from_hf(data("tok_llama"));
  std::mt19937 random(5);
  const std::vector<std::string> parts = {"the ", "\xE3\x80",         "\xED\xA0\x80", "é",
                                          "\xFF", "\xF0\x9F\x98\x80", "\xC3",         "\x80\x80",
                                          " \n",  "\xF4\x90\x80\x80", "12",           std::string(1, '\0')};
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (std::size_t n = random() % 20; n > 0; --n) {
      text += i % 2 == 0 ? parts[random() % parts.size()] : std::string(1, static_cast<char>(random()));
    }
    ASSERT_EQ(t.decode(t.encode(text, Specials::kPlain)), text) << printable(text);
    ASSERT_EQ(t.decode(t.encode(text, Specials::kParse)), text) << printable(text);
  }
}

TEST(Tokenizer, SpecialTextInDocumentsStaysText) {
  const Tokenizer t = Tokenizer::from_hf(data("tok_llama"));
  const std::string text = "<|im_start|>user";
  for (const TokenId id : t.encode(text, Specials::kPlain)) EXPECT_FALSE(t.is_special(id));
  const auto parsed = t.encode(text, Specials::kParse);
  EXPECT_EQ(parsed.front(), 3);
  EXPECT_EQ(t.decode(parsed), text);
  EXPECT_EQ(t.decode(parsed, true), "user");
}

TEST(Tokenizer, IdsOutsideTheVocabularyDecodeToNothing) {
  const Tokenizer t = Tokenizer::from_hf(data("tok_llama"));
  EXPECT_EQ(t.decode(std::vector<TokenId>{-1, 320, INT32_MAX, INT32_MIN}), "");
  EXPECT_EQ(t.bytes_of(320), "");
  EXPECT_FALSE(t.is_special(-1));
}

TEST(Tokenizer, OneObjectServesManyThreads) {
  const Tokenizer t = Tokenizer::from_hf(data("tok_qwen"));
  const std::string text = "Hello  world 한국어 e\u0301 123\r\n the cat";
  const auto expected = t.encode(text, Specials::kParse);
  std::vector<std::thread> threads;
  std::vector<std::vector<TokenId>> got(4);
  for (auto& ids : got)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) ids = t.encode(text, Specials::kParse);
    });
  for (auto& thread : threads) thread.join();
  for (const auto& ids : got) EXPECT_EQ(ids, expected);
}

TEST(Tokenizer, LongRunsTakeLinearTime) {
  // Two megabytes without a place to cut: a quadratic step anywhere would take minutes.
  const Tokenizer t = Tokenizer::from_hf(data("tok_llama"));
  for (const std::string piece : {"a", " ", "<", "\n", "한", "\xFF"}) {
    std::string text;
    while (text.size() < 2'000'000) text += piece;
    EXPECT_EQ(t.decode(t.encode(text, Specials::kParse)), text);
  }
}

TEST(Tokenizer, SampleModelGivesTheReferenceIds) {
  const std::filesystem::path shared =
      std::filesystem::path(WRING_SOURCE_DIR) / "../shared/fixtures/tokenizer/smollm2.jsonl";
  const std::filesystem::path sample = std::filesystem::path(WRING_SOURCE_DIR) / "sample/hf";
  if (!std::filesystem::exists(shared) || !std::filesystem::exists(sample / "tokenizer.json")) {
    GTEST_SKIP() << "needs the sample model and ../shared";
  }
  expect_golden(Tokenizer::from_hf(sample), shared);
}

}  // namespace
}  // namespace wring::text
