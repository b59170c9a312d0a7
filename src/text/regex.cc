// PCRE2 behind regex.h. The step limit: a search starts with few steps; one that needs more is repeated with
// eight times as many, and these are charged to a budget that grows with the text. An honest pattern costs a
// few steps a byte and never notices; exponential and quadratic ones use the budget up within about a second.
#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <limits>

#include "base/error.h"
#include "text/regex_dialect.h"

namespace wring::text {

namespace {

constexpr std::uint32_t kFirstSteps = 1000;
constexpr std::uint64_t kBaseBudget = 20'000'000;
constexpr std::uint64_t kBudgetPerByte = 64;
constexpr std::size_t kJitStackBytes = std::size_t{8} << 20;  // reserved, touched as needed

std::string error_text(int code) {
  PCRE2_UCHAR buffer[160];
  if (pcre2_get_error_message(code, buffer, sizeof buffer) < 0) return fmt::format("error {}", code);
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

struct Regex::Code {
  explicit Code(pcre2_code* compiled) : code(compiled) {}
  ~Code() { pcre2_code_free(code); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  pcre2_code* code;
};

Regex::Regex(std::string_view pattern, std::string_view where) : pattern_(pattern) {
  const std::string translated = to_pcre2(pattern, where);
  const std::unique_ptr<pcre2_compile_context, void (*)(pcre2_compile_context*)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), 100);
  int error = 0;
  std::size_t offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &error, &offset, context.get());
  if (code == nullptr) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("the regex pattern '{}' does not compile: {} at byte {}", pattern,
                            error_text(error), offset),
                std::string(where));
  }
  code_ = std::make_unique<Code>(code);
  // Where the system forbids run-time code the interpreter gives the same matches, only slower.
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

struct RegexSearch::Work {
  Work()
      : data(pcre2_match_data_create(1, nullptr)),
        context(pcre2_match_context_create(nullptr)),
        stack(pcre2_jit_stack_create(32 * 1024, kJitStackBytes, nullptr)) {
    if (data == nullptr || context == nullptr) {
      release();
      throw std::bad_alloc();
    }
    if (stack != nullptr) pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Work() { release(); }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  void release() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }

  pcre2_match_data* data;
  pcre2_match_context* context;
  pcre2_jit_stack* stack;
};

RegexSearch::RegexSearch(std::size_t text_bytes)
    : work_(std::make_unique<Work>()), steps_left_(kBaseBudget + kBudgetPerByte * text_bytes) {}

RegexSearch::~RegexSearch() = default;

bool RegexSearch::find(const Regex& regex, std::string_view text, std::size_t from, Match& match) {
  for (std::uint64_t steps = kFirstSteps;; steps *= 8) {
    pcre2_set_match_limit(work_->context, static_cast<std::uint32_t>(std::min<std::uint64_t>(
                                              steps, std::numeric_limits<std::uint32_t>::max())));
    const int rc = pcre2_match(regex.code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                               from, PCRE2_NO_UTF_CHECK, work_->data, work_->context);
    if (rc >= 0) {
      const std::size_t* range = pcre2_get_ovector_pointer(work_->data);
      match = {range[0], range[1]};
      return true;
    }
    if (rc == PCRE2_ERROR_NOMATCH) return false;
    if (rc != PCRE2_ERROR_MATCHLIMIT) {
      throw Error(
          ErrorCode::kBadInput,
          fmt::format("the regex pattern '{}' cannot be matched: {}", regex.pattern(), error_text(rc)),
          fmt::format("a text of {} bytes, from byte {}", text.size(), from));
    }
    if (steps * 8 > steps_left_) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("the regex pattern '{}' needs too many steps", regex.pattern()),
                  fmt::format("a text of {} bytes, from byte {}", text.size(), from));
    }
    steps_left_ -= steps * 8;
  }
}

}  // namespace wring::text
