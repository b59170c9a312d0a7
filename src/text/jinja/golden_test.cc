// Our interpreter against Jinja's own output: every row of tests/data/jinja_golden.jsonl (made by
// tests/make_jinja_golden.py) must give the same text, or fail where Jinja fails.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "text/chat_template.h"

namespace wring::text {
namespace {

using Json = nlohmann::ordered_json;

TEST(JinjaGolden, EveryRowAgrees) {
  std::ifstream file(WRING_SOURCE_DIR "/tests/data/jinja_golden.jsonl");
  ASSERT_TRUE(file);
  std::vector<Json> contexts;
  std::string source;
  int rows = 0;
  int wrong = 0;
  for (std::string line; std::getline(file, line);) {
    const Json row = Json::parse(line);
    if (row.contains("new_context")) {
      contexts.push_back(row["new_context"]);
      continue;
    }
    ++rows;
    if (row.contains("template")) source = row["template"];
    const auto where = [&] {
      return fmt::format("row {} ({}, context {})\n{}", rows, row["name"].get<std::string>(),
                         row["context"].get<int>(), source);
    };
    std::string text;
    std::string error;
    try {
      text = ChatTemplate::parse(source, "golden").render(contexts.at(row["context"]));
    } catch (const Error& e) {
      error = e.what();
    }
    const bool agrees =
        row.contains("text") ? error.empty() && text == row["text"].get<std::string>() : !error.empty();
    if (agrees) continue;
    ++wrong;
    ADD_FAILURE() << where()
                  << "\nwanted: " << (row.contains("text") ? row["text"].dump() : row["error"].dump())
                  << "\ngot:    " << (error.empty() ? Json(text).dump() : error);
  }
  EXPECT_GT(rows, 1400);
}

}  // namespace
}  // namespace wring::text
