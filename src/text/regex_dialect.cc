// One pass over the pattern, character by character (regex_dialect.h). Syntax errors are left to PCRE2 to
// report.
#include "text/regex_dialect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace wring::text {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// General categories mean the same in both; script names need "sc:" since PCRE2 10.40 reads them as script
// extensions.
constexpr std::array<std::string_view, 38> kCategories = {
    "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",  "Nd", "Nl",
    "No", "P",  "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk",
    "So", "Z",  "Zs", "Zl", "Zp", "C",  "Cc", "Cf", "Cs", "Co", "Cn", "Any"};
constexpr std::array<std::string_view, 14> kScripts = {
    "Han",    "Hiragana", "Katakana", "Hangul",   "Latin",   "Greek",    "Cyrillic",
    "Arabic", "Hebrew",   "Thai",     "Armenian", "Bengali", "Georgian", "Devanagari"};

class Translator {
 public:
  Translator(std::string_view pattern, std::string_view where) : in_(pattern), where_(where) {}

  std::string run() {
    while (at_ < in_.size()) {
      const char c = in_[at_];
      if (c == '\\') {
        escape(false);
      } else if (c == '[') {
        bracket();
      } else if (c == '(') {
        group();
      } else if (c == '{') {
        interval();
      } else {
        out_ += c;
        ++at_;
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view construct) const {
    throw Error(ErrorCode::kNotSupported,
                fmt::format("the regex construct '{}' of the pattern '{}' is not supported", construct, in_),
                std::string(where_));
  }

  char peek(std::size_t ahead = 0) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }

  void escape(bool in_class) {
    const char c = peek(1);
    if (c == '\0') refuse("\\ at the end");
    at_ += 2;
    // Outside a class Oniguruma's \\w has these Latin-1 numbers too.
    const std::string_view latin_numbers = "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}";
    const std::string_view word = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
    switch (c) {
      case 's':
        out_ += "\\p{White_Space}";
        return;
      case 'S':
        out_ += "\\P{White_Space}";
        return;
      case 'd':
        out_ += "\\p{Nd}";
        return;
      case 'D':
        out_ += "\\P{Nd}";
        return;
      case 'w':
        out_ += in_class ? std::string(word) : fmt::format("[{}{}]", word, latin_numbers);
        return;
      case 'W':
        if (in_class) refuse("\\W in a class");
        out_ += fmt::format("[^{}{}]", word, latin_numbers);
        return;
      case 'p':
      case 'P':
        property(c == 'P');
        return;
      case 'u':
        four_digits();
        return;
      case 'x':
      case 'r':
      case 'n':
      case 't':
      case 'f':
      case 'a':
      case 'e':
        out_ += {'\\', c};
        return;
      case 'A':
      case 'z':
        if (in_class) refuse(fmt::format("\\{} in a class", c));
        out_ += {'\\', c};
        return;
      default:
        if (is_letter(c) || is_digit(c)) refuse(fmt::format("\\{}", c));
        if (static_cast<unsigned char>(c) < 0x80) out_ += '\\';
        out_ += c;  // of a longer character the rest follows as it is
    }
  }

  void property(bool negated) {
    const std::size_t close = in_.find('}', at_);
    if (peek() != '{' || close == std::string_view::npos) refuse("\\p without {name}");
    std::string_view name = in_.substr(at_ + 1, close - at_ - 1);
    at_ = close + 1;
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    const bool script = std::ranges::find(kScripts, name) != kScripts.end();
    if (!script && std::ranges::find(kCategories, name) == kCategories.end()) {
      refuse(fmt::format("\\p{{{}}}", name));
    }
    out_ += fmt::format("\\{}{{{}{}}}", negated ? 'P' : 'p', script ? "sc:" : "", name);
  }

  void four_digits() {
    const std::string_view hex = in_.substr(at_, 4);
    if (hex.size() != 4 || !std::ranges::all_of(hex, [](unsigned char c) { return std::isxdigit(c) != 0; })) {
      refuse("\\u without four hex digits");
    }
    out_ += fmt::format("\\x{{{}}}", hex);
    at_ += 4;
  }

  void bracket() {
    out_ += '[';
    ++at_;
    if (peek() == '^') {
      out_ += '^';
      ++at_;
    }
    if (peek() == ']') refuse("] first in a class");
    while (at_ < in_.size() && in_[at_] != ']') {
      const char c = in_[at_];
      if (c == '[') refuse("[ within a class");
      if (c == '&' && peek(1) == '&') refuse("&&");
      if (c == '\\') {
        escape(true);
      } else {
        out_ += c;
        ++at_;
      }
    }
    if (at_ < in_.size()) {
      out_ += ']';
      ++at_;
    }
  }

  void group() {
    if (peek(1) == '*') refuse("(*");
    if (peek(1) != '?') {
      out_ += '(';
      ++at_;
      return;
    }
    for (const std::string_view head : {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?i:"}) {
      if (in_.substr(at_).starts_with(head)) {
        out_ += head;
        at_ += head.size();
        return;
      }
    }
    if (at_ == 0 && in_.starts_with("(?i)")) {  // elsewhere the two disagree on how far it reaches
      out_ += "(?i)";
      at_ += 4;
      return;
    }
    refuse(in_.substr(at_, 4));
  }

  void interval() {
    std::size_t end = at_ + 1;
    const auto digits = [&] {
      const std::size_t from = end;
      while (end < in_.size() && is_digit(in_[end])) ++end;
      return in_.substr(from, end - from);
    };
    const std::string_view low = digits();
    const bool comma = end < in_.size() && in_[end] == ',';
    if (comma) ++end;
    const std::string_view high = comma ? digits() : std::string_view{};
    if (end >= in_.size() || in_[end] != '}' || (low.empty() && high.empty())) {
      out_ += "\\{";  // not an interval: the character itself
      ++at_;
      return;
    }
    out_ += fmt::format("{{{}{}{}}}", low.empty() ? "0" : low, comma ? "," : "", high);
    at_ = end + 1;
    if (peek() == '+') refuse("{n,m}+");
    if (peek() == '?' && !comma) refuse("{n}?");
  }

  std::string_view in_, where_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string to_pcre2(std::string_view pattern, std::string_view where) {
  return Translator(pattern, where).run();
}

}  // namespace wring::text
