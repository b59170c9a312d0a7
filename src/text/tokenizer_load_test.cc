// Definitions that must be refused, each with what the message has to name; and forms that must be accepted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "formats/gguf.h"
#include "text/tokenizer_test_data.h"

namespace wring::text {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json tiny() {
  return testing::read_json(testing::data("tok_llama") / "tokenizer.json");
}

void expect_refused(const json& tokenizer, ErrorCode code, const std::vector<std::string>& names,
                    const json& config = nullptr) {
  const testing::Folder folder(tokenizer, config);
  try {
    Tokenizer::from_hf(folder.path());
    FAIL() << "accepted; should name " << names.front();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    for (const std::string& name : names) EXPECT_THAT(e.what(), HasSubstr(name));
    EXPECT_THAT(e.what(), HasSubstr(folder.path().filename().string()));
  }
}

void expect_same_ids(const json& tokenizer) {
  const testing::Folder folder(tokenizer);
  const std::string text = "the cat  sat 12345 in the rain\n";
  EXPECT_EQ(Tokenizer::from_hf(folder.path()).encode(text, Specials::kParse),
            Tokenizer::from_hf(testing::data("tok_llama")).encode(text, Specials::kParse));
}

TEST(TokenizerLoad, MergesAsStringsPairsAndMixed) {
  json root = tiny();
  json& merges = root["model"]["merges"];
  for (std::size_t i = 0; i < merges.size(); i += 2) {
    merges[i] = merges[i][0].get<std::string>() + " " + merges[i][1].get<std::string>();
  }
  expect_same_ids(root);
  root["model"]["vocab"]["a b"] = 320;
  root["model"]["vocab"]["a bc"] = 321;
  merges.push_back({"a b", "c"});  // a pair may hold a blank
  expect_same_ids(root);
}

TEST(TokenizerLoad, BadMerges) {
  json root = tiny();
  root["model"].erase("merges");
  expect_refused(root, ErrorCode::kBadInput, {"model.merges", "tokenizer.json"});
  for (const json& bad :
       {json("ab"), json("a b c"), json(" a"), json("a "), json(3), json{"a"}, json{"a", 1}}) {
    root = tiny();
    root["model"]["merges"][7] = bad;
    expect_refused(root, ErrorCode::kBadInput, {"merge 7", "model.merges"});
  }
  root = tiny();
  root["model"]["merges"].push_back({"q", "z"});
  expect_refused(root, ErrorCode::kBadInput, {"merge 59", "'qz'"});
}

TEST(TokenizerLoad, BadIds) {
  for (const json& bad :
       {json(-1), json(4'000'000'000), json(UINT64_MAX), json(1.5), json("7"), json(nullptr)}) {
    json root = tiny();
    root["model"]["vocab"]["a"] = bad;
    expect_refused(root, ErrorCode::kBadInput, {"id", "'a'", "model.vocab"});
  }
  json root = tiny();
  root["model"]["vocab"]["new"] = 5;
  expect_refused(root, ErrorCode::kBadInput, {"token id 5", "used twice", "'new'"});
  root["model"]["vocab"] = json::object();
  expect_refused(root, ErrorCode::kBadInput, {"model.vocab"});
}

TEST(TokenizerLoad, AddedTokenThatContradictsTheVocabulary) {
  json root = tiny();
  root["added_tokens"][1]["id"] = 77;
  expect_refused(root, ErrorCode::kBadInput, {"'<s>'", "77", "gives it 1"});
  root["added_tokens"][1]["id"] = -4;
  expect_refused(root, ErrorCode::kBadInput, {"-4"});
}

TEST(TokenizerLoad, UnknownTypesAreRefusedByName) {
  const std::vector<std::pair<const char*, json>> parts = {
      {"pre_tokenizer", {{"type", "Whisper9"}}}, {"normalizer", {{"type", "BertNormalizer"}}},
      {"decoder", {{"type", "WordPiece"}}},      {"post_processor", {{"type", "RobertaProcessing"}}},
      {"model", {{"type", "WordLevel"}}},
  };
  for (const auto& [key, value] : parts) {
    json root = tiny();
    root[key] = value;
    expect_refused(root, ErrorCode::kNotSupported, {key, value["type"]});
  }
  for (const auto& [key, value] : {std::pair{"byte_fallback", json(true)}, std::pair{"dropout", json(0.1)},
                                   std::pair{"end_of_word_suffix", json("</w>")}}) {
    json root = tiny();
    root["model"][key] = value;
    expect_refused(root, ErrorCode::kNotSupported, {key});
  }
}

TEST(TokenizerLoad, WithoutByteLevelTextWouldBeLost) {
  json root = tiny();
  root["pre_tokenizer"] = nullptr;
  expect_refused(root, ErrorCode::kNotSupported, {"pre_tokenizer", "byte-level"});
  root["pre_tokenizer"] = {{"type", "Digits"}};
  expect_refused(root, ErrorCode::kNotSupported, {"ByteLevel"});
  root = tiny();
  root["decoder"] = nullptr;
  expect_refused(root, ErrorCode::kNotSupported, {"decoder"});
}

TEST(TokenizerLoad, DecodersOutOfOrderAreRefused) {
  const json replace = {{"type", "Replace"}, {"pattern", {{"String", "_"}}}, {"content", " "}},
             fallback = {{"type", "ByteFallback"}}, fuse = {{"type", "Fuse"}},
             strip = {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};
  json both_ends = strip;
  both_ends["stop"] = 1;
  for (const json& steps : {json{fallback, replace, fuse}, json{strip, fuse}, json{fuse, both_ends},
                            json{fuse, replace}, json{fuse, strip, strip}}) {
    json root = tiny();
    root["pre_tokenizer"] = nullptr;
    root["decoder"] = {{"type", "Sequence"}, {"decoders", steps}};
    expect_refused(root, ErrorCode::kNotSupported, {"decoder", "in this place"});
  }
  json root = tiny();
  root["decoder"] = {{"type", "Sequence"}};
  expect_refused(root, ErrorCode::kBadInput, {"decoders"});
}

TEST(TokenizerLoad, BosAndEosFromTheConfiguration) {
  const json special = {{"content", "</s>"}, {"lstrip", false}};
  const testing::Folder folder(tiny(),
                               {{"bos_token", "<s>"}, {"eos_token", special}, {"add_bos_token", false}});
  const Tokenizer t = Tokenizer::from_hf(folder.path());
  EXPECT_EQ(t.bos(), 1);
  EXPECT_EQ(t.eos(), 2);
  EXPECT_FALSE(t.adds_bos());  // the explicit setting counts more than the template

  const Tokenizer bare = Tokenizer::from_hf(testing::Folder(tiny()).path());
  EXPECT_EQ(bare.bos(), 1);  // from the template
  EXPECT_EQ(bare.eos(), std::nullopt);
  EXPECT_TRUE(bare.adds_bos());

  expect_refused(tiny(), ErrorCode::kBadInput, {"eos_token", "'<nope>'"}, {{"eos_token", "<nope>"}});
  expect_refused(tiny(), ErrorCode::kBadInput, {"bos_token", "'</s>'", "'<s>'"}, {{"bos_token", "</s>"}});
  expect_refused(tiny(), ErrorCode::kBadInput, {"eos_token"}, {{"eos_token", 2}});
  json root = tiny();
  root["post_processor"] = nullptr;
  expect_refused(root, ErrorCode::kBadInput, {"add_bos_token"}, {{"add_bos_token", true}});
}

TEST(TokenizerLoad, AByteWithoutTokenIsAnErrorNotALoss) {
  json root = tiny();
  auto& vocab = root["model"]["vocab"];
  const json id = vocab["Ą"];  // the character of byte 4
  vocab.erase("Ą");
  vocab["unused"] = id;
  const testing::Folder folder(root);
  const Tokenizer t = Tokenizer::from_hf(folder.path());
  EXPECT_EQ(t.decode(t.encode("fine", Specials::kPlain)), "fine");
  try {
    t.encode("a\x04z", Specials::kPlain);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("0x04"));
  }
}

void expect_gguf_refused(const std::vector<std::string>& names, const std::string& model,
                         const std::string& pre, std::vector<std::string> tokens,
                         std::vector<std::int32_t> types, std::vector<std::string> merges,
                         std::uint32_t eos = 0) {
  const testing::Folder folder(json::object());
  const auto path = folder.path() / "m.gguf";
  formats::GgufWriter writer(path);
  writer.add_string("general.architecture", "llama");
  writer.add_string("tokenizer.ggml.model", model);
  if (!pre.empty()) writer.add_string("tokenizer.ggml.pre", pre);
  writer.add_strings("tokenizer.ggml.tokens", tokens);
  writer.add_i32s("tokenizer.ggml.token_type", types);
  if (!merges.empty()) writer.add_strings("tokenizer.ggml.merges", merges);
  writer.add_u32("tokenizer.ggml.eos_token_id", eos);
  writer.begin_data();
  writer.commit();
  try {
    Tokenizer::from_gguf(formats::GgufReader::open(path));
    FAIL() << "accepted; should name " << names.front();
  } catch (const Error& e) {
    for (const std::string& name : names) EXPECT_THAT(e.what(), HasSubstr(name));
    EXPECT_THAT(e.what(), HasSubstr("m.gguf"));
  }
}

TEST(TokenizerLoad, BadGgufKeys) {
  const std::vector<std::string> abc = {"a", "b", "ab"};
  expect_gguf_refused({"tokenizer.ggml.model", "'bert'", "supported"}, "bert", "gpt-2", abc, {1, 1, 1},
                      {"a b"});
  expect_gguf_refused({"tokenizer.ggml.scores"}, "llama", "", abc, {1, 1, 1}, {});
  expect_gguf_refused({"tokenizer.ggml.pre", "'whisper9'", "supported"}, "gpt2", "whisper9", abc, {1, 1, 1},
                      {"a b"});
  expect_gguf_refused({"tokenizer.ggml.pre"}, "gpt2", "", abc, {1, 1, 1}, {"a b"});
  expect_gguf_refused({"tokenizer.ggml.merges"}, "gpt2", "gpt-2", abc, {1, 1, 1}, {});
  expect_gguf_refused({"tokenizer.ggml.merges", "merge 0", "'ba'"}, "gpt2", "gpt-2", abc, {1, 1, 1}, {"b a"});
  expect_gguf_refused({"tokenizer.ggml.token_type", "2", "3"}, "gpt2", "gpt-2", abc, {1, 1}, {"a b"});
  expect_gguf_refused({"tokenizer.ggml.token_type", "token 1", "9"}, "gpt2", "gpt-2", abc, {1, 9, 1},
                      {"a b"});
  expect_gguf_refused({"tokenizer.ggml.tokens", "two ids"}, "gpt2", "gpt-2", {"a", "b", "a"}, {1, 1, 1},
                      {"a b"});
  expect_gguf_refused({"tokenizer.ggml.eos_token_id", "999999", "2"}, "gpt2", "gpt-2", abc, {1, 1, 1},
                      {"a b"}, 999999);
}

}  // namespace
}  // namespace wring::text
