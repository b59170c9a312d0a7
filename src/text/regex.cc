// PCRE2 behind regex.h. Two guards against patterns that run away. Steps: a search starts with few; one that
// needs more is repeated with eight times as many, and these are charged to a budget that grows with the
// text. An honest pattern costs a few steps a byte and never notices; exponential ones use the budget up
// within a second. Time: PCRE2 does not count the turns of a simple loop, so that "a*b|a" is quadratic in few
// steps; searches are therefore cut into short ranges of starting points, between which the clock is read.
#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <time.h>

#include <algorithm>
#include <limits>
#include <new>

#include "base/error.h"
#include "text/regex_dialect.h"

namespace wring::text {

namespace {

constexpr std::uint32_t kFirstSteps = 1000;
constexpr std::uint64_t kBaseBudget = 20'000'000;
constexpr std::uint64_t kBudgetPerByte = 64;
// Repeated groups (K-EXAONE's pattern) take about 30 bytes of stack a character; reserved, touched as needed.
constexpr std::size_t kStartsPerCall = 256;
constexpr int kCallsPerLook = 16;  // at the clock
constexpr double kBaseSeconds = 2,
                 kSecondsPerByte = 4e-6;  // of this thread; honest patterns take 1e-7 a byte
constexpr std::size_t kJitStackBytes = std::size_t{1} << 20, kLargeJitStackBytes = std::size_t{128} << 20;

// Processor time of this thread: a busy machine must not make an honest text fail.
double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

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
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_USE_OFFSET_LIMIT, &error,
                                   &offset, context.get());
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
  Work() : data(pcre2_match_data_create(1, nullptr)), context(pcre2_match_context_create(nullptr)) {
    if (data == nullptr || context == nullptr) {
      release();
      throw std::bad_alloc();
    }
    set_stack(kJitStackBytes);
  }
  ~Work() { release(); }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  // Without a stack of its own PCRE2 uses 32 KiB of the thread's.
  void set_stack(std::size_t bytes) {
    pcre2_jit_stack_free(stack);
    stack = pcre2_jit_stack_create(32 * 1024, bytes, nullptr);
    stack_bytes = stack == nullptr ? 0 : bytes;
    pcre2_jit_stack_assign(context, nullptr, stack);
  }
  bool grow_stack() {
    if (stack_bytes == kLargeJitStackBytes) return false;
    set_stack(kLargeJitStackBytes);
    return stack != nullptr;
  }
  void release() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }

  pcre2_match_data* data;
  pcre2_match_context* context;
  pcre2_jit_stack* stack = nullptr;
  std::size_t stack_bytes = 0;
};

RegexSearch::RegexSearch(std::size_t text_bytes)
    : work_(std::make_unique<Work>()),
      steps_left_(kBaseBudget + kBudgetPerByte * text_bytes),
      deadline_(thread_seconds() + kBaseSeconds + kSecondsPerByte * static_cast<double>(text_bytes)) {}

RegexSearch::~RegexSearch() = default;

void RegexSearch::fail(const Regex& regex, std::string_view what, std::string_view text, std::size_t from) {
  throw Error(ErrorCode::kBadInput, fmt::format("the regex pattern '{}' {}", regex.pattern(), what),
              fmt::format("a text of {} bytes, from byte {}", text.size(), from));
}

bool RegexSearch::find(const Regex& regex, std::string_view text, std::size_t from, Match& match) {
  std::uint64_t steps = kFirstSteps;
  while (true) {
    if (++calls_ % kCallsPerLook == 0 && thread_seconds() > deadline_) {
      fail(regex, "takes too long", text, from);
    }
    const std::size_t last_start = std::min(text.size(), from + kStartsPerCall);
    pcre2_set_offset_limit(work_->context, last_start);
    pcre2_set_match_limit(work_->context, static_cast<std::uint32_t>(std::min<std::uint64_t>(
                                              steps, std::numeric_limits<std::uint32_t>::max())));
    const int rc = pcre2_match(regex.code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                               from, PCRE2_NO_UTF_CHECK, work_->data, work_->context);
    if (rc >= 0) {
      const std::size_t* range = pcre2_get_ovector_pointer(work_->data);
      match = {range[0], range[1]};
      return true;
    }
    if (rc == PCRE2_ERROR_NOMATCH) {
      if (last_start == text.size()) return false;
      from = next_character(text, last_start - 1);
      steps = kFirstSteps;
    } else if (rc == PCRE2_ERROR_JIT_STACKLIMIT && work_->grow_stack()) {
      continue;
    } else if (rc == PCRE2_ERROR_MATCHLIMIT) {
      steps *= 8;
      if (steps > steps_left_) fail(regex, "needs too many steps", text, from);
      steps_left_ -= steps;
    } else {
      fail(regex, "cannot be matched: " + error_text(rc), text, from);
    }
  }
}

}  // namespace wring::text
