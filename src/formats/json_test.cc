#include "formats/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/test_files.h"

namespace wring::formats {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing_files::message_of;

std::string syntax_fault(std::string_view text) {
  return message_of([&] { parse_json(text, "a.json"); });
}

TEST(Json, BuildsWhatTheLibraryBuilds) {
  const std::string text =
      R"( {"a": [1, -2, 3.5, true, false, null, "x\n\u00e9", [], {}], "b": {"c": {"d": [[1], [2, [3]]]}}, "": 18446744073709551615} )";
  EXPECT_EQ(parse_json(text, "t"), json::parse(text));
  EXPECT_EQ(parse_json("7", "t"), json(7));
  EXPECT_EQ(parse_json("[[1,2],[3,[4,[5]]],6]", "t").dump(), "[[1,2],[3,[4,[5]]],6]");
}

TEST(Json, SyntaxFaultsGiveLineAndColumn) {
  EXPECT_THAT(syntax_fault("{\n \"a\": 1,\n}"), HasSubstr("a.json, line 3, column 1"));
  EXPECT_THAT(syntax_fault("{\"a\": 1} x"), HasSubstr("line 1, column 10"));
  EXPECT_THAT(syntax_fault(""), HasSubstr("a.json, line 1"));
  EXPECT_THAT(syntax_fault("{\"a\": [1, 2"), HasSubstr("unexpected end of input"));
  EXPECT_THAT(syntax_fault("{'a': 1}"), HasSubstr("line 1, column 2"));
  EXPECT_THAT(syntax_fault("[NaN]"), HasSubstr("not valid JSON"));
  EXPECT_THAT(syntax_fault("[01]"), HasSubstr("not valid JSON"));
}

TEST(Json, RepeatedKeysAreRefusedAtAnyDepth) {
  EXPECT_THAT(syntax_fault("{\"hidden\": 1,\n\"hidden\": 2}"),
              testing::AllOf(HasSubstr("duplicate key \"hidden\""), HasSubstr("line 2")));
  EXPECT_THAT(syntax_fault(R"({"a": [{"b": 1, "b": 1}]})"), HasSubstr("duplicate key \"b\""));
  EXPECT_THAT(syntax_fault(R"({"a": 1, "\u0061": 2})"), HasSubstr("duplicate key \"a\""));
  EXPECT_NO_THROW(parse_json(R"({"a": {"a": {"a": 1}}, "b": {"a": 1}})", "t"));
}

TEST(Json, DepthIsLimited) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_NO_THROW(parse_json(nested(kMaxJsonDepth), "t"));
  EXPECT_THAT(syntax_fault(nested(kMaxJsonDepth + 1)), HasSubstr("nested deeper than 100 levels"));
  EXPECT_THAT(syntax_fault(std::string(1'000'000, '[')), HasSubstr("nested deeper"));
  std::string objects;
  for (int i = 0; i < 200'000; ++i) objects += "{\"a\":";
  EXPECT_THAT(syntax_fault(objects), HasSubstr("nested deeper"));
}

TEST(Json, NumbersThatOverflowAreRefused) {
  EXPECT_THAT(syntax_fault("{\"hidden_size\": 1e400}"),
              testing::AllOf(HasSubstr("number overflow"), HasSubstr("hidden_size")));
  EXPECT_THAT(syntax_fault("[-1e999]"), HasSubstr("number overflow"));
  EXPECT_EQ(parse_json("[1e-400]", "t")[0].get<double>(), 0.0);
}

TEST(Json, BytesThatAreNoTextAreRefused) {
  EXPECT_THAT(syntax_fault("{\"a\": \"\xFF\xFE\"}"), HasSubstr("UTF-8"));
  EXPECT_THAT(syntax_fault("[\"\xED\xA0\x80\"]"), HasSubstr("UTF-8"));
  EXPECT_THAT(syntax_fault(std::string("{}\0{}", 5)),
              HasSubstr("zero byte"));  // the library would stop there
  EXPECT_THAT(syntax_fault(R"(["\ud800"])"), HasSubstr("not valid JSON"));
}

TEST(Json, IntegersAreIntegersWithinLimits) {
  const json o = parse_json(
      R"({"i": 64, "f": 64.5, "w": 64.0, "s": "64", "n": null, "big": 18446744073709551615, "neg": -2})",
      "t");
  EXPECT_EQ(json_int(o, "i", 1, 64, "c.json"), 64);
  EXPECT_EQ(json_int(o, "neg", -2, 0, "c.json"), -2);
  EXPECT_EQ(json_int_or(o, "absent", 5, 1, 9, "c.json"), 5);
  EXPECT_EQ(json_int_or(o, "n", 5, 1, 9, "c.json"), 5);
  const auto refused = [&](const char* key, std::int64_t low, std::int64_t high) {
    return message_of([&] { json_int(o, key, low, high, "c.json"); });
  };
  EXPECT_EQ(refused("i", 65, 99), "i must be an integer from 65 to 99 — c.json, i = 64");
  EXPECT_THAT(refused("i", 1, 63), HasSubstr("i = 64"));
  EXPECT_THAT(refused("f", 1, 99), HasSubstr("f = 64.5"));
  EXPECT_THAT(refused("w", 1, 99), HasSubstr("w = 64.0"));
  EXPECT_THAT(refused("s", 1, 99), HasSubstr("s = \"64\""));
  EXPECT_THAT(refused("big", 1, INT64_MAX), HasSubstr("18446744073709551615"));
  EXPECT_THAT(refused("n", 1, 9), HasSubstr("n is missing"));
  EXPECT_THAT(refused("absent", 1, 9), HasSubstr("absent is missing"));
}

TEST(Json, OtherKinds) {
  const json o = parse_json(R"({"x": 0.5, "i": 2, "b": true, "s": "t", "n": null})", "t");
  EXPECT_EQ(json_number(o, "x", 0, 1, "c"), 0.5);
  EXPECT_EQ(json_number(o, "i", 0, 2, "c"), 2.0);
  EXPECT_EQ(json_number_or(o, "n", 0.25, 0, 1, "c"), 0.25);
  EXPECT_THAT(message_of([&] { json_number(o, "x", 0.6, 1, "c"); }),
              HasSubstr("x must be a number from 0.6 to 1"));
  EXPECT_THAT(message_of([&] { json_number(o, "s", 0, 1, "c"); }), HasSubstr("s = \"t\""));
  EXPECT_TRUE(json_bool_or(o, "b", false, "c"));
  EXPECT_TRUE(json_bool_or(o, "n", true, "c"));
  EXPECT_THAT(message_of([&] { json_bool_or(o, "i", false, "c"); }), HasSubstr("true or false"));
  EXPECT_EQ(json_string_or(o, "s", "u", "c"), "t");
  EXPECT_EQ(json_string_or(o, "absent", "u", "c"), "u");
  EXPECT_THAT(message_of([&] { json_string_or(o, "b", "", "c"); }), HasSubstr("a string"));
  EXPECT_THAT(message_of([&] { json_int(json::array(), "i", 0, 1, "c"); }), HasSubstr("object"));
}

TEST(Json, FilesAreNamedInFaults) {
  const testing_files::TempFolder folder;
  const auto path = folder.file("config.json", "{\"a\": 1,}");
  EXPECT_THAT(message_of([&] { read_json_file(path); }), HasSubstr("config.json, line 1, column 9"));
  EXPECT_THAT(message_of([&] { read_json_file(path, 3); }), HasSubstr("too large"));
  EXPECT_THAT(message_of([&] { read_json_file(folder.path() / "none.json"); }), HasSubstr("none.json"));
}

}  // namespace
}  // namespace wring::formats
