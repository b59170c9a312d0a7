// Damaged templates: whatever a file holds, parsing and rendering end in a text or in our own error. The seed
// is fixed, so a failure comes back.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "base/error.h"
#include "text/chat_template.h"

namespace wring::text {
namespace {

using Json = nlohmann::ordered_json;

class Mutator {
 public:
  explicit Mutator(std::vector<std::string> sources) : sources_(std::move(sources)) {}

  std::string next() {
    std::string out = pick(sources_);
    for (std::size_t n = 1 + below(4); n > 0; --n) mutate(out);
    return out;
  }

 private:
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }
  template <class List>
  const std::string& pick(const List& list) {
    return list[below(std::size(list))];
  }

  void mutate(std::string& text) {
    static const std::string kWords[] = {"{%",
                                         "%}",
                                         "{{",
                                         "}}",
                                         "{#",
                                         "#}",
                                         "-",
                                         "+",
                                         "(",
                                         ")",
                                         "[",
                                         "]",
                                         "{",
                                         "}",
                                         "|",
                                         ".",
                                         ",",
                                         ":",
                                         "'",
                                         "\"",
                                         "\\",
                                         "\n",
                                         "*",
                                         "**",
                                         "~",
                                         "not ",
                                         " in ",
                                         " is ",
                                         " if ",
                                         " else ",
                                         "none",
                                         "loop",
                                         "x",
                                         "0",
                                         "-1",
                                         "1e9",
                                         "9999",
                                         "[::-1]",
                                         "[1:]",
                                         ".items()",
                                         "|list",
                                         "|tojson(indent=2)",
                                         "|map('x')",
                                         "|sort",
                                         "|join",
                                         "|first",
                                         "namespace(a=1)",
                                         "range(9)",
                                         "caller()",
                                         "{% endif %}",
                                         "{% endfor %}",
                                         "{% for x in d %}",
                                         "{% break %}",
                                         "{% set ns.a = loop %}",
                                         "{% macro m(a, b=m) %}",
                                         "{% endmacro %}",
                                         "{% raw %}",
                                         "{% set x %}",
                                         "{% endset %}",
                                         "\xed\x95\x9c",
                                         "\xf0\x9f",
                                         "\x80",
                                         std::string(1, '\0')};
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = std::min(below(12), text.size() - at);
    switch (below(5)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, pick(kWords));
        break;
      case 2:
        text.insert(below(text.size() + 1), text.substr(at, length));
        break;
      case 3: {  // a piece of another template
        const std::string& other = pick(sources_);
        const std::size_t from = below(other.size() + 1);
        text.insert(at, other.substr(from, below(60)));
        break;
      }
      default:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
    }
  }

  std::mt19937 random_{20250101};
  std::vector<std::string> sources_;
};

TEST(JinjaFuzz, DamagedTemplatesEndInTextOrError) {
  std::ifstream file(WRING_SOURCE_DIR "/tests/data/jinja_golden.jsonl");
  ASSERT_TRUE(file);
  std::vector<std::string> sources;
  std::vector<Json> contexts;
  for (std::string line; std::getline(file, line);) {
    const Json row = Json::parse(line);
    if (row.contains("new_context")) contexts.push_back(row["new_context"]);
    if (row.contains("template") && row["name"] != "whitespace") sources.push_back(row["template"]);
  }
  ASSERT_GT(sources.size(), 800U);
  Mutator mutator(sources);
  int rendered = 0;
  int refused = 0;
  for (int i = 0; i < 6000; ++i) {
    const std::string source = mutator.next();
    try {
      ChatTemplate::parse(source, "fuzz").render(contexts[static_cast<std::size_t>(i) % contexts.size()]);
      ++rendered;
    } catch (const Error& e) {
      ASSERT_NE(e.code(), ErrorCode::kInternal) << e.what() << "\n" << source;
      ++refused;
    } catch (const std::exception& e) {
      FAIL() << e.what() << "\n" << source;
    }
  }
  // Both ends must be reached often, or the mutations test nothing.
  EXPECT_GT(rendered, 500);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace wring::text
