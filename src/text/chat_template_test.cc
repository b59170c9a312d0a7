// Chat templates from outside: the published models' conversations, refusals by name and line, limits, and
// where templates are found.

#include "text/chat_template.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/error.h"
#include "formats/gguf.h"

namespace wring::text {
namespace {

using Json = nlohmann::ordered_json;

std::string render(std::string_view source, const Json& context = Json::object(),
                   long max_steps = ChatTemplate::kMaxSteps) {
  return ChatTemplate::parse(source, "t.jinja").render(context, std::time(nullptr), max_steps);
}

struct Outcome {
  ErrorCode code = ErrorCode::kInternal;
  std::string line;
};

/// The error of parsing and rendering; kInternal and the text if there was none.
Outcome fault_of(std::string_view source, const Json& context = Json::object(),
                 long max_steps = ChatTemplate::kMaxSteps) {
  try {
    return {ErrorCode::kInternal, "rendered " + render(source, context, max_steps).substr(0, 100)};
  } catch (const Error& e) {
    return {e.code(), e.what()};
  }
}

/// Of this thread, so that a busy machine fails no test.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::string repeated(std::string_view what, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += what;
  return out;
}

class PublishedConversations : public testing::TestWithParam<const char*> {};

TEST_P(PublishedConversations, RenderAsTransformersDoes) {
  std::ifstream file(fmt::format("{}/tests/data/chat/chat_{}.jsonl", WRING_SOURCE_DIR, GetParam()));
  ASSERT_TRUE(file);
  std::string line;
  std::getline(file, line);
  const Json model = Json::parse(line);
  const ChatTemplate chat = ChatTemplate::parse(model["template"].get<std::string>(), GetParam());
  int rows = 0;
  while (std::getline(file, line)) {
    const Json row = Json::parse(line);
    const Json context = {{"messages", row["messages"]},
                          {"add_generation_prompt", row["add_generation_prompt"]},
                          {"bos_token", model["bos_token"]},
                          {"eos_token", model["eos_token"]}};
    ++rows;
    if (row.contains("text")) {
      EXPECT_EQ(chat.render(context), row["text"].get<std::string>()) << line;
      continue;
    }
    try {
      chat.render(context);
      ADD_FAILURE() << "no error: " << line;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kBadInput);
      EXPECT_NE(std::string(e.what()).find(row["error"].get<std::string>()), std::string::npos) << e.what();
    }
  }
  EXPECT_EQ(rows, 24);
}

INSTANTIATE_TEST_SUITE_P(Models, PublishedConversations, testing::Values("smollm2", "tiny", "gemma3"));

TEST(ChatTemplate, SyntaxErrorsNameFileLineAndFault) {
  const Outcome cut = fault_of("{% for m in messages %}\n{{ m.content }");
  EXPECT_EQ(cut.code, ErrorCode::kBadInput);
  EXPECT_EQ(cut.line, "the chat template does not parse: unexpected '}' — t.jinja, line 2");
  EXPECT_EQ(fault_of("a\n\n{% if x %}b").line,
            "the chat template does not parse: the template ends inside 'if' of line 3 — t.jinja, line 3");
  EXPECT_EQ(fault_of("{# one\n#}\n{% nosuch %}").line,
            "the chat template does not parse: unknown tag 'nosuch' — t.jinja, line 3");
  EXPECT_EQ(fault_of("{{ 1 }}\n{{ 'abc }}").line,
            "the chat template does not parse: unexpected character ''': the string is not closed — t.jinja, "
            "line 2");
  EXPECT_EQ(fault_of("\xff").code, ErrorCode::kBadInput);
  EXPECT_EQ(fault_of(std::string((1 << 20) + 1, 'x')).code, ErrorCode::kBadInput);
}

TEST(ChatTemplate, UnsupportedConstructsAreRefusedAtParseByNameAndLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{% include 'a' %}", "the tag 'include'"},
      {"{% extends 'a' %}", "the tag 'extends'"},
      {"{% import 'a' as b %}", "the tag 'import'"},
      {"{% from 'a' import b %}", "the tag 'from'"},
      {"{% block a %}{% endblock %}", "the tag 'block'"},
      {"{% autoescape true %}{% endautoescape %}", "the tag 'autoescape'"},
      {"{% for x in y recursive %}{% endfor %}", "a recursive loop"},
      {"{{ x | urlize }}", "the filter 'urlize'"},
      {"{{ x is nosuch }}", "the test 'nosuch'"},
      {"{{ x.encode('utf-8') }}", "the method 'encode'"},
      {"{{ lipsum() }}", "the function 'lipsum'"},
      {"{{ x[1:2, 3] }}", "a subscript of several parts"},
      {"{{ 9223372036854775808 }}", "the integer 9223372036854775808"},
      {"{{ '\\N{DASH}' }}", "the escape \\N"},
  };
  for (const auto& [source, name] : cases) {
    // In a branch that never runs: refusal must not wait for a conversation that reaches it.
    const Outcome outcome = fault_of("{% if false %}\n" + source + "{% endif %}");
    EXPECT_EQ(outcome.code, ErrorCode::kNotSupported) << source << ": " << outcome.line;
    EXPECT_NE(outcome.line.find(name), std::string::npos) << outcome.line;
    EXPECT_NE(outcome.line.find("t.jinja, line 2"), std::string::npos) << outcome.line;
  }
}

TEST(ChatTemplate, RunTimeFaultsNameTheLine) {
  EXPECT_EQ(fault_of("a\n{{ x.y }}").line, "'x' is undefined — t.jinja, line 2");
  EXPECT_EQ(fault_of("\n\n{{ m.content + 1 }}", {{"m", {{"content", "a"}}}}).line,
            "unsupported operand type(s) for +: 'str' and 'int' — t.jinja, line 3");
  EXPECT_EQ(fault_of("{{ raise_exception('No\nthanks') }}").line,
            "the chat template refuses its input: No\\nthanks — t.jinja, line 1");
  EXPECT_EQ(fault_of("{{ 2 ** 63 }}").code, ErrorCode::kNotSupported);
  EXPECT_EQ(fault_of("{{ ('a' | safe) + '<' }}").code, ErrorCode::kNotSupported);
  EXPECT_EQ(fault_of("{{ x }}", {{"x", 18446744073709551615ULL}}).code, ErrorCode::kNotSupported);
}

// Some steps take a sanitizer a hundred times as long: it is given fewer, and the same time.
#ifdef __has_feature
constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

TEST(ChatTemplate, EndsWhatWouldNotEnd) {
  const std::vector<std::string> sources = {
      "{% for i in range(1000000000) %}x{% endfor %}",
      "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro m(k) %}{% if k %}{{ m(k - 1) }}{{ m(k - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
      "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s ~ ns.s %}{% endfor "
      "%}",
      "{% set ns = namespace(s=[1]) %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "{% set ns = namespace(s=[1]) %}{% for i in range(99) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ "
      "ns.s }}",
      "{% set ns = namespace(s=1) %}{% for i in range(9999) %}{% set ns.s = [ns.s] %}{% endfor %}",
      "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}",
      "{{ 'x' * 1000000000 }}",
      "{{ [1] * 1000000000 }}",
      "{{ ('x' * 9999999).replace('x', 'y' * 9999999) }}",
      "{{ ('a' * 9999999) in ('a' * 9999999 ~ 'b' ~ 'a' * 9999998) }}",
      "{{ '%s%s%s%s%s%s%s%s' % (('x' * 9999999,) * 8) }}",
      "{{ ([('x' * 9999999)] * 1000) | join }}",
      "{{ range(100000) | join('x' * 9999999) }}",
      "{{ (range(100000) | list | string) * 99 }}",
      "{{ 'a'.ljust(10 ** 18) }}",
      "{{ '%999999999d' % 1 }}",
      "{{ ('a\n' * 99999) | indent(99999) }}",
      "{{ [1] | batch(10 ** 18, 0) | list }}",
      "{% for i in range(100000) %}{% set ns = namespace(a='x' * 1000000) %}{% endfor %}",
      "{% for i in range(100000) %}{{ 'x' * 100000 }}{% endfor %}",
      "{% for i in range(100000) %}{{ range(100000) | list == range(100000) | list }}{% endfor %}",
      "{{ range(100000) | unique | list | length }}" +
          repeated("{{ range(99999) | unique | list | length }}", 99),
      "{% set ns = namespace() %}{% for x in [1, 2] if ns.l is defined and ns.l.length %}{% endfor %}"
      "{% for x in range(9) if ns.l is undefined or ns.l.length > 3 %}{% set ns.l = loop %}{% endfor %}",
  };
  constexpr double kLimitSeconds = 3.0;
  constexpr long kMaxSteps = ChatTemplate::kMaxSteps / (kSanitized ? 20 : 1);
  for (const std::string& source : sources) {
    const double begin = cpu_seconds();
    const Outcome outcome = fault_of(source, Json::object(), kMaxSteps);
    EXPECT_EQ(outcome.code, ErrorCode::kBadInput) << source.substr(0, 200) << ": " << outcome.line;
    EXPECT_LT(cpu_seconds() - begin, kLimitSeconds) << source.substr(0, 200);
  }
}

TEST(ChatTemplate, DeepNestingIsAnErrorNotACrash) {
  const int deep = 100'000;
  for (const char* opener : {"(", "[", "{1: ", "not ", "- ", "f(", "x[", "1 if ", "x | f(", "1 if 1 else "}) {
    EXPECT_EQ(fault_of("{{ " + repeated(opener, deep) + "1 }}").code, ErrorCode::kBadInput) << opener;
  }
  for (const char* chain : {" + 1", ".a", "[0]", "()", " | upper", " if 1", " ** 2", " is defined"}) {
    const Outcome outcome = fault_of("{{ x" + repeated(chain, deep) + " }}");
    EXPECT_EQ(outcome.code, ErrorCode::kBadInput) << chain << outcome.line;
  }
  for (const char* tag :
       {"{% if 1 %}", "{% for x in y %}", "{% set x %}", "{% macro m() %}", "{% filter upper %}"}) {
    EXPECT_EQ(fault_of(repeated(tag, deep / 10)).code, ErrorCode::kBadInput) << tag;
  }
  Json nested = 1;
  for (int i = 0; i < 1000; ++i) nested = Json::array({std::move(nested)});
  EXPECT_EQ(fault_of("{{ x }}", {{"x", nested}}).code, ErrorCode::kBadInput);
}

TEST(ChatTemplate, TheDeepestThatIsAllowedFitsOnAThreadsStack) {
  std::thread([] {
    std::string source =
        repeated("{% if 1 %}", 150) + "{{ " + repeated("(", 40) + "1" + repeated(")", 40) + " }}";
    source += repeated("{% endif %}", 150);
    EXPECT_EQ(render(source), "1");
    EXPECT_EQ(render("{{ 1" + repeated(" + 1", 190) + " }}"), "191");
    EXPECT_EQ(
        render("{% macro m(k) %}{{ k }}{% if k %}{{ m(k - 1) }}{% endif %}{% endmacro %}{{ m(100) }}").size(),
        193U);
  }).join();
}

TEST(ChatTemplate, LongConversationsStayInsideTheLimits) {
  // 2,000 messages of 2 kB through a template that keeps state and looks at neighbours.
  Json messages = Json::array();
  for (int i = 0; i < 2000; ++i) {
    messages.push_back({{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", std::string(2000, 'x')}});
  }
  const std::string source =
      "{% set ns = namespace(n=0) %}{% for m in messages %}{% if m.role == 'user' and not "
      "m.content.startswith('<') %}"
      "{% set ns.n = ns.n + 1 %}{% endif %}{% if loop.last or messages[loop.index0 + 1].role != m.role %}"
      "{{ '<' + m['role'] + '>' + m['content'] | trim + '\n' }}{% endif %}{% endfor %}{{ ns.n }}";
  const std::string out = render(source, {{"messages", messages}});
  EXPECT_EQ(out.size(), 1000U * (2000 + 7) + 1000U * (2000 + 12) + 4);
}

TEST(ChatTemplate, StrftimeNowShowsTheGivenTime) {
  const char* const zone = std::getenv("TZ");
  const std::string old_zone = zone != nullptr ? zone : "";
  setenv("TZ", "UTC", 1);
  tzset();
  const auto show = [](std::string_view format) {
    return ChatTemplate::parse(fmt::format("{{{{ strftime_now('{}') }}}}", format), "t")
        .render(Json::object(), 1721952000);
  };
  EXPECT_EQ(show("%d %b %Y"), "26 Jul 2024");
  EXPECT_EQ(show("%Y-%m-%d %H:%M:%S.%f%z%Z%%"), "2024-07-26 00:00:00.000000%");
  EXPECT_EQ(show(""), "");
  EXPECT_THROW(show("%99999999d"), Error);
  EXPECT_EQ(ChatTemplate::parse("{{ strftime_now is defined }}", "t").render(Json::object()), "True");
  zone != nullptr ? setenv("TZ", old_zone.c_str(), 1) : unsetenv("TZ");
  tzset();
}

TEST(ChatTemplate, RenderingLeavesTheTemplateAsItWas) {
  const ChatTemplate chat =
      ChatTemplate::parse("{% set n = n + 1 %}{{ n }}{% set x = cycler(1, 2) %}{{ x.next() }}", "t");
  EXPECT_EQ(chat.render({{"n", 1}}), "21");
  EXPECT_EQ(chat.render({{"n", 1}}), "21");
  EXPECT_THROW(chat.render(Json::array()), Error);
}

class TemplateSource : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("wring_chat_template_{}", ::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const char* name, std::string_view content) const { std::ofstream(folder_ / name) << content; }

  std::filesystem::path folder_;
};

TEST_F(TemplateSource, IsFoundInTheFolder) {
  EXPECT_EQ(find_chat_template(folder_), std::nullopt);
  write("tokenizer_config.json", R"({"bos_token": "<s>"})");
  EXPECT_EQ(find_chat_template(folder_), std::nullopt);
  write("tokenizer_config.json", R"({"chat_template": null})");
  EXPECT_EQ(find_chat_template(folder_), std::nullopt);
  write("tokenizer_config.json", R"({"chat_template": "a{{ 1 }}"})");
  EXPECT_EQ(find_chat_template(folder_), "a{{ 1 }}");
  write("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "t"},
                                                      {"name": "default", "template": "d"}]})");
  EXPECT_EQ(find_chat_template(folder_), "d");
  write("chat_template.jinja", "own file\n");
  EXPECT_EQ(find_chat_template(folder_), "own file\n");
}

TEST_F(TemplateSource, OfAnotherShapeIsAnError) {
  for (const char* config :
       {R"({"chat_template": 5})", R"({"chat_template": [{"name": "a", "template": "t"}]})",
        R"({"chat_template": [{"name": "default"}]})", R"({"chat_template": [1]})", R"([1])", "{",
        R"({"chat_template": [{"name": "default", "template": 7}]})"}) {
    write("tokenizer_config.json", config);
    try {
      find_chat_template(folder_);
      ADD_FAILURE() << config;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kBadInput) << config;
      EXPECT_NE(std::string(e.what()).find("tokenizer_config.json"), std::string::npos) << e.what();
    }
  }
}

TEST_F(TemplateSource, IsFoundInGguf) {
  for (const bool has : {false, true}) {
    const auto path = folder_ / (has ? "with.gguf" : "without.gguf");
    formats::GgufWriter writer(path);
    writer.add_string("general.architecture", "llama");
    if (has) writer.add_string("tokenizer.chat_template", "{{ x }}");
    writer.begin_data();
    writer.commit();
    const std::optional<std::string> found = find_chat_template(formats::GgufReader::open(path));
    EXPECT_EQ(found, has ? std::optional<std::string>("{{ x }}") : std::nullopt);
  }
}

}  // namespace
}  // namespace wring::text
