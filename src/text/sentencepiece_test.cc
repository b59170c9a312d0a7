// SentencePiece-style definitions against the ids of the reference libraries (tests/data/tokenizer/
// sentencepiece.json, made by make_sentencepiece.py), and the unigram search against every possible cut.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/gguf.h"
#include "text/tokenizer_test_data.h"
#include "text/unigram.h"

namespace wring::text {
namespace {

using nlohmann::json;

const json& golden() {
  static const json root = testing::read_json(testing::data("sentencepiece.json"));
  return root;
}

// A whole tokenizer.json of one case.
json definition_of(const json& c) {
  json model = golden()["models"][c["model"].get<std::string>()];
  model.update(c["changes"]);
  return {{"model", std::move(model)},
          {"added_tokens", c["added_tokens"]},
          {"normalizer", c["normalizer"]},
          {"pre_tokenizer", c["pre_tokenizer"]},
          {"decoder", c["decoder"]}};
}

json case_named(const std::string& name) {
  for (const json& c : golden()["cases"]) {
    if (c["name"] == name) return c;
  }
  throw std::runtime_error("no case " + name);
}

TEST(SentencePiece, EveryRuleGivesTheReferenceIdsAndText) {
  ASSERT_GE(golden()["cases"].size(), 19u);
  for (const json& c : golden()["cases"]) {
    const testing::Folder folder(definition_of(c));
    const Tokenizer t = Tokenizer::from_hf(folder.path());
    for (const json& row : c["texts"]) {
      const std::string text = row[0];
      const std::vector<TokenId> ids = t.encode(text, Specials::kParse);
      EXPECT_EQ(json(ids), row[1]) << c["name"] << ": " << printable(text);
      const json plain = row[2].is_null() ? row[2] : json(t.encode(text, Specials::kPlain));
      EXPECT_EQ(plain, row[2]) << c["name"] << ": " << printable(text);
      EXPECT_EQ(t.decode(ids), row[3].get<std::string>()) << c["name"] << ": " << printable(text);
    }
  }
}

// The pieces of one entry of "gguf" as a file.
std::filesystem::path write_gguf(const json& entry, const testing::Folder& folder) {
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<std::int32_t> types;
  for (const json& t : entry["tokens"]) {
    tokens.push_back(t[0]);
    scores.push_back(t[1]);
    types.push_back(t[2]);
  }
  const std::filesystem::path path = folder.path() / "model.gguf";
  formats::GgufWriter writer(path);
  writer.add_string("general.architecture", "llama");
  writer.add_string("tokenizer.ggml.model", entry["model"].get<std::string>());
  writer.add_strings("tokenizer.ggml.tokens", tokens);
  writer.add_f32s("tokenizer.ggml.scores", scores);
  writer.add_i32s("tokenizer.ggml.token_type", types);
  writer.add_u32("tokenizer.ggml.unknown_token_id", 0);
  writer.add_bool("tokenizer.ggml.add_space_prefix", entry["add_space_prefix"]);
  writer.begin_data();
  writer.commit();
  return path;
}

TEST(SentencePiece, GgufGivesTheIdsOfSentencePieceItself) {
  ASSERT_EQ(golden()["gguf"].size(), 3u);
  for (const json& entry : golden()["gguf"]) {
    const testing::Folder folder(json::object());
    const Tokenizer t = Tokenizer::from_gguf(formats::GgufReader::open(write_gguf(entry, folder)));
    EXPECT_EQ(t.adds_bos(), entry["model"] == "llama");
    for (const json& row : entry["texts"]) {
      const std::string text = row[0];
      const std::vector<TokenId> ids = t.encode(text, Specials::kPlain);
      EXPECT_EQ(json(ids), row[1]) << entry["model"] << ": " << printable(text);
      EXPECT_EQ(t.decode(ids), text) << entry["model"];
    }
  }
}

TEST(SentencePiece, BytesThatAreNoTextSurviveTheRoundTrip) {
  for (const char* name : {"llama 2", "gemma", "mistral v3", "unigram, whole text"}) {
    const testing::Folder folder(definition_of(case_named(name)));
    const Tokenizer t = Tokenizer::from_hf(folder.path());
    std::mt19937 random(5);
    for (int i = 0; i < 500; ++i) {
      std::string text = "x";  // not a blank: one in front is taken off
      for (std::size_t n = random() % 20; n > 0; --n) text += static_cast<char>(random());
      ASSERT_EQ(t.decode(t.encode(text, Specials::kPlain)), text) << name << ": " << printable(text);
    }
  }
}

TEST(SentencePiece, AStreamKeepsTheBlankThatJoinsItToThePrompt) {
  const testing::Folder folder(definition_of(case_named("llama 2")));
  const Tokenizer t = Tokenizer::from_hf(folder.path());
  const std::vector<TokenId> ids = t.encode("the tin 한", Specials::kPlain);
  StreamingDetokenizer stream(t);
  std::string text;
  for (const TokenId id : ids) text += stream.push(id);
  EXPECT_EQ(text + stream.finish(), " the tin 한");
  EXPECT_EQ(t.decode(ids), "the tin 한");
}

TEST(SentencePiece, WithoutBytesOrUnknownTokenACharacterIsRefused) {
  json root = definition_of(case_named("unknown, each"));
  root["model"]["unk_token"] = nullptr;
  const testing::Folder folder(root);
  const Tokenizer t = Tokenizer::from_hf(folder.path());
  EXPECT_EQ(t.decode(t.encode("the tin", Specials::kPlain)), "the tin");
  EXPECT_THROW(t.encode("the \u03A9", Specials::kPlain), Error);
}

TEST(SentencePiece, AnAddedTokenIsNoLetterOfTheModel) {
  json root = definition_of(case_named("llama 2"));
  const int id = static_cast<int>(root["model"]["vocab"].size());
  root["added_tokens"].push_back(
      {{"id", id}, {"content", "\u2603"}, {"normalized", true}, {"special", false}});
  const testing::Folder folder(root);
  const Tokenizer t = Tokenizer::from_hf(folder.path());
  // Normalized it is looked for as "\u2581\u2603"; elsewhere the model spells the character in bytes.
  EXPECT_THAT(t.encode("\u2603", Specials::kPlain), ::testing::Contains(id));
  EXPECT_THAT(t.encode("a\u2603", Specials::kPlain), ::testing::Not(::testing::Contains(id)));
}

TEST(SentencePiece, BlanksBehindATokenAreLookedThroughOnce) {
  json root = definition_of(case_named("llama 2"));
  const int id = static_cast<int>(root["model"]["vocab"].size());
  root["added_tokens"].push_back(
      {{"id", id}, {"content", " "}, {"rstrip", true}, {"normalized", false}, {"special", false}});
  const testing::Folder folder(root);
  const Tokenizer t = Tokenizer::from_hf(folder.path());
  const std::string blanks(2'000'000, ' ');  // hours if every blank looked through the rest
  EXPECT_EQ(t.encode("a" + blanks, Specials::kPlain).back(), id);
}

TEST(SentencePiece, LongRunsComeThrough) {
  // A megabyte in one word.
  for (const char* name : {"llama 2", "unigram, whole text"}) {
    const testing::Folder folder(definition_of(case_named(name)));
    const Tokenizer t = Tokenizer::from_hf(folder.path());
    for (const std::string piece : {"a", " ", "the ", "\u2581", "\U0001F600", "\xFF"}) {
      std::string text = "x";
      while (text.size() < 1'000'000) text += piece;
      const std::string decoded = t.decode(t.encode(text, Specials::kParse));
      EXPECT_EQ(decoded.size(), piece == "\u2581" ? 1 + (text.size() - 1) / 3 : text.size()) << name;
    }
  }
}

// The highest sum of scores over all ways to cut `word`.
double best_cut(const Vocabulary& v, const std::vector<double>& scores, std::string_view word) {
  if (word.empty()) return 0;
  double best = -1e9;
  for (std::size_t n = 1; n <= word.size(); ++n) {
    const auto id = v.find(word.substr(0, n));
    if (id)
      best = std::max(best, scores[static_cast<std::size_t>(*id)] + best_cut(v, scores, word.substr(n)));
  }
  return best;
}

TEST(Unigram, FindsTheCutWithTheHighestSum) {
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    Vocabulary v;
    std::vector<double> scores;
    const auto add = [&](const std::string& piece) {
      if (v.find(piece)) return;
      v.add(static_cast<std::int64_t>(scores.size()), piece, TokenKind::kNormal, "test");
      scores.push_back(-static_cast<double>(random() % 1000) / 100);
    };
    for (const char* letter : {"a", "b", "c"}) add(letter);
    for (int i = 0; i < 15; ++i) {
      std::string piece;
      for (std::size_t n = 2 + random() % 4; n > 0; --n) piece += static_cast<char>('a' + random() % 3);
      add(piece);
    }
    v.finish({});
    const Unigram model(v, Alphabet(v, {}), scores);
    Unigram::Scratch scratch;
    for (int i = 0; i < 30; ++i) {
      std::string word, joined;
      for (std::size_t n = random() % 12; n > 0; --n) word += static_cast<char>('a' + random() % 3);
      std::vector<TokenId> ids;
      model.encode(word, scratch, ids);
      double sum = 0;
      for (const TokenId id : ids) {
        sum += scores[static_cast<std::size_t>(id)];
        joined += v.text(id);
      }
      ASSERT_EQ(joined, word);
      ASSERT_NEAR(sum, best_cut(v, scores, word), 1e-9) << word;
    }
  }
}

}  // namespace
}  // namespace wring::text
