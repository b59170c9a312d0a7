// Pre-tokenizer rules against the reference library's ids (tests/data/tokenizer/rules.json, made by
// make_rules.py), the names of a GGUF against the same definitions, and the limits of hostile patterns.
#include "text/pretokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/utf8.h"
#include "text/pretokenizer_gguf.h"
#include "text/regex_dialect.h"
#include "text/tokenizer_test_data.h"

namespace wring::text {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> split(const PreTokenizer& rules, std::string_view text) {
  std::vector<std::string> words;
  RegexSearch search(text.size());
  rules.split(text, true, search, [&](std::string_view w) { words.emplace_back(w); });
  return words;
}

json byte_level() {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
}

json split_rule(const std::string& pattern) {
  return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
}

PreTokenizer rules_of(const std::string& pattern) {
  return parse_pretokenizer({{"type", "Sequence"}, {"pretokenizers", {split_rule(pattern), byte_level()}}},
                            true, "test");
}

TEST(PreTokenizer, EveryRuleGivesTheReferenceIds) {
  const json golden = testing::read_json(testing::data("rules.json"));
  ASSERT_GE(golden["cases"].size(), 28u);
  for (const json& c : golden["cases"]) {
    const testing::Folder folder({{"model", golden["model"]},
                                  {"added_tokens", c["added_tokens"]},
                                  {"normalizer", c["normalizer"]},
                                  {"pre_tokenizer", c["pre_tokenizer"]},
                                  {"decoder", {{"type", "ByteLevel"}}}});
    const Tokenizer t = Tokenizer::from_hf(folder.path());
    for (const json& row : c["texts"]) {
      const std::string text = row[0];
      EXPECT_EQ(json(t.encode(text, Specials::kParse)), row[1]) << c["name"] << ": " << printable(text);
      EXPECT_EQ(json(t.encode(text, Specials::kPlain)), row[2]) << c["name"] << ": " << printable(text);
    }
  }
}

TEST(PreTokenizer, GgufNamesMeanThePublishedDefinitions) {
  const json golden = testing::read_json(testing::data("rules.json"));
  int compared = 0;
  for (const json& c : golden["cases"]) {
    const std::string name = c["name"];
    for (const std::string known :
         {"gpt-2", "llama-bpe", "qwen2", "qwen35", "smollm", "deepseek-v3", "gpt-4o", "exaone-moe"}) {
      if (name != known) continue;
      const NamedPreTokenizer named = named_pretokenizer(name, "test");
      const PreTokenizer rules = parse_pretokenizer(c["pre_tokenizer"], true, "test");
      EXPECT_EQ(named.rules.definition(), rules.definition()) << name;
      EXPECT_EQ(named.nfc, !c["normalizer"].is_null()) << name;
      EXPECT_EQ(name_of_pretokenizer(rules, named.nfc), name);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 8);
  EXPECT_EQ(name_of_pretokenizer(rules_of("x"), false), "");
}

TEST(PreTokenizer, WordsOfLlama3) {
  const NamedPreTokenizer llama = named_pretokenizer("llama-bpe", "test");
  EXPECT_THAT(split(llama.rules, "It's  12345\r\n\n ok"),
              ElementsAre("It", "'s", " ", " ", "123", "45", "\r\n\n", " ok"));
  EXPECT_TRUE(split(llama.rules, "").empty());
}

TEST(PreTokenizer, RunawayPatternsEndInAnError) {
  const std::string run(50, 'a');
  for (const std::string pattern : {"(a+)+$", "(a|aa)+$", "(.*?a){20}$"}) {
    const PreTokenizer rules = rules_of(pattern);
    std::string text;
    for (int i = 0; i < 2000; ++i) text += run + "c ";
    try {
      split(rules, text);
      FAIL() << pattern;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kBadInput);
      EXPECT_THAT(e.what(), HasSubstr(pattern));
    }
  }
}

TEST(PreTokenizer, QuadraticPatternsEndInAnError) {
  // In few steps, so that only the time tells; it is limited to about three seconds here.
  const std::string text(300'000, 'a');
  EXPECT_THROW(split(rules_of("a*b|a"), text), Error);
}

TEST(PreTokenizer, MatchesAreFoundHoweverFarAway) {
  const PreTokenizer rules = rules_of(R"(\p{N}|(?<=é)한)");
  for (const std::size_t gap : {0u, 100u, 254u, 255u, 256u, 257u, 300u, 511u, 512u, 513u, 5000u}) {
    for (const std::string fill : {"a", "é"}) {
      std::string before;
      for (std::size_t i = 0; i < gap; ++i) before += fill;
      EXPECT_THAT(split(rules, before + "x7y"), ElementsAre(before + "x", "7", "y"));
      EXPECT_THAT(split(rules, before + "é한"), ElementsAre(before + "é", "한"));
    }
  }
}

TEST(PreTokenizer, HonestPatternsKeepWithinTheLimitOnLongRuns) {
  for (const char* name :
       {"gpt-2", "llama-bpe", "qwen2", "qwen35", "smollm", "deepseek-v3", "gpt-4o", "exaone-moe"}) {
    const NamedPreTokenizer named = named_pretokenizer(name, "test");
    for (const std::string piece : {"a", "A", " ", "\n", " \n", "1", "!", "é", "\u0301", "a ", "한", "'"}) {
      std::string text, joined;
      while (text.size() < 300'000) text += piece;
      for (const std::string& word : split(named.rules, text)) joined += word;
      EXPECT_EQ(joined, text) << name << " on runs of " << printable(piece);
    }
  }
}

TEST(RegexDialect, SaysWhatPcre2Needs) {
  EXPECT_EQ(to_pcre2(R"(\s+[^\s\d])", "t"), R"(\p{White_Space}+[^\p{White_Space}\p{Nd}])");
  EXPECT_EQ(to_pcre2(R"(\p{Han}\p{^L}x{,3}{)", "t"), R"(\p{sc:Han}\P{L}x{0,3}\{)");
  EXPECT_EQ(to_pcre2(R"(\u00e9\[)", "t"), R"(\x{00e9}\[)");
}

TEST(RegexDialect, RefusesWhatWouldMeanSomethingElse) {
  for (const std::string pattern :
       {R"(\h)", R"(\v)", R"(\R)", R"(\bx)", R"(\1)", R"([[:alpha:]])", R"([a&&b])", R"(a{2}+)", R"(\p{Foo})",
        R"(\pL)", R"(a(?i)b)", R"((?<n>a))", R"((?m:a))", R"((*UTF)a)", R"([\W])", R"([]a])", R"(\K)",
        "a\\"}) {
    try {
      rules_of(pattern);
      FAIL() << pattern;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kNotSupported) << pattern;
      EXPECT_THAT(e.what(), HasSubstr(printable(pattern)));
    }
  }
}

TEST(PreTokenizer, PatternsThatDoNotCompileAreShown) {
  for (const std::string pattern : {"((", "[a", "*a", "a)", "[z-a]"}) {
    try {
      rules_of(pattern);
      FAIL() << pattern;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kBadInput);
      EXPECT_THAT(e.what(), HasSubstr("'" + pattern + "'"));
    }
  }
}

TEST(PreTokenizer, BadDefinitions) {
  json no_pattern = split_rule("a"), odd_kind = split_rule("a"), odd_behavior = split_rule("a");
  no_pattern.erase("pattern");
  odd_kind["pattern"] = {{"Glob", "a"}};
  odd_behavior["behavior"] = "Glued";
  for (const json& rule : {no_pattern, odd_kind, odd_behavior, json{{"type", "Sequence"}}, json(3)}) {
    EXPECT_THROW(
        parse_pretokenizer({{"type", "Sequence"}, {"pretokenizers", {rule, byte_level()}}}, true, "test"),
        Error)
        << rule;
  }
  EXPECT_THROW(parse_pretokenizer({{"type", "Sequence"}, {"pretokenizers", {byte_level(), split_rule("a")}}},
                                  true, "test"),
               Error);
}

}  // namespace
}  // namespace wring::text
