// See lexer.h. One pass over the source: text up to the next tag, then the tag's tokens, then its end.

#include "text/jinja/lexer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "base/utf8.h"
#include "text/jinja/text.h"

namespace wring::text::jinja {
namespace {

constexpr std::size_t kMaxSource = std::size_t{1} << 20;  // published templates have some 10 kB

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_name_part(char32_t c, bool first) {
  if (c < 0x80) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (!first && c >= '0' && c <= '9');
  }
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  const bool letter = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
  return letter || (!first && (category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
                               category == UTF8PROC_CATEGORY_ND));
}

/// All line ends become \n; one at the very end goes.
std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      const std::size_t tag = next_tag();
      if (tag == std::string::npos) {
        push_text(source_.substr(at_));
        break;
      }
      open_tag(tag);
    }
    tokens_.push_back({TokenKind::kEnd, line_, {}});
    return std::move(tokens_);
  }

 private:
  std::size_t next_tag() const {
    for (std::size_t i = source_.find('{', at_); i != std::string::npos; i = source_.find('{', i + 1)) {
      const char kind = peek(i + 1);
      if (kind == '{' || kind == '%' || kind == '#') return i;
    }
    return std::string::npos;
  }

  char peek(std::size_t i) const { return i < source_.size() ? source_[i] : '\0'; }
  bool starts(std::string_view with) const { return std::string_view(source_).substr(at_).starts_with(with); }

  void count_lines(std::string_view passed) {
    line_ += static_cast<int>(std::count(passed.begin(), passed.end(), '\n'));
  }

  void push_text(std::string text) {
    const int line = line_;
    count_lines(text);
    if (!text.empty()) tokens_.push_back({TokenKind::kText, line, std::move(text)});
  }

  /// Text in front of a tag, cut as the tag's sign says. `prints`: the tag is {{.
  void push_text_before(std::size_t tag, char sign, bool prints) {
    std::string_view text = std::string_view(source_).substr(at_, tag - at_);
    if (sign == '-') {
      const std::string_view kept = strip(text, Side::kRight);
      const std::string_view dropped = text.substr(kept.size());
      push_text(std::string(kept));
      count_lines(dropped);
      return;
    }
    if (sign != '+' && !prints) {
      const std::size_t newline = text.rfind('\n');
      const std::size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
      if ((line_begin > 0 || at_line_start_) && strip(text.substr(line_begin), Side::kLeft).empty()) {
        text = text.substr(0, line_begin);
      }
    }
    push_text(std::string(text));
  }

  void open_tag(std::size_t tag) {
    const char kind = source_[tag + 1];
    const char next = peek(tag + 2);
    const char sign = next == '-' || next == '+' ? next : '\0';
    push_text_before(tag, sign, kind == '{');
    at_ = tag + 2 + (sign != '\0' ? 1 : 0);
    at_line_start_ = false;
    if (kind == '#') {
      skip_comment();
    } else if (kind == '{') {
      tokens_.push_back({TokenKind::kPrintBegin, line_, {}});
      lex_inside("}}", TokenKind::kPrintEnd);
    } else if (const auto end = match_word_tag(at_, "raw", false)) {
      at_ = *end;
      lex_raw();
    } else {
      tokens_.push_back({TokenKind::kBlockBegin, line_, {}});
      lex_inside("%}", TokenKind::kBlockEnd);
    }
  }

  void skip_space() {
    const std::string_view rest = std::string_view(source_).substr(at_);
    const std::size_t skipped = rest.size() - strip(rest, Side::kLeft).size();
    count_lines(rest.substr(0, skipped));
    at_ += skipped;
  }

  /// What follows a closed tag: "-" eats all whitespace, otherwise one newline goes (`trims`).
  void after_tag(char sign, bool trims) {
    const std::size_t begin = at_;
    if (sign == '-') {
      skip_space();
    } else if (sign != '+' && trims && peek(at_) == '\n') {
      ++line_;
      ++at_;
    }
    at_line_start_ = at_ > begin && source_[at_ - 1] == '\n';
  }

  void skip_comment() {
    const std::size_t end = source_.find("#}", at_);
    if (end == std::string::npos) fail_syntax(line_, "a comment is not closed");
    const char sign = end > at_ ? source_[end - 1] : '\0';
    count_lines(std::string_view(source_).substr(at_, end - at_));
    at_ = end + 2;
    after_tag(sign == '-' || sign == '+' ? sign : '\0', true);
  }

  /// The end of "raw %}" (or "endraw %}") at `from`, if that is what stands there. `plus`: whether "+%}" may
  /// close it.
  std::optional<std::size_t> match_word_tag(std::size_t from, std::string_view word, bool plus) const {
    std::string_view rest = std::string_view(source_).substr(from);
    rest = strip(rest, Side::kLeft);
    if (!rest.starts_with(word)) return std::nullopt;
    rest = strip(rest.substr(word.size()), Side::kLeft);
    for (const std::string_view close : {"%}", "-%}", "+%}"}) {
      if (rest.starts_with(close) && (plus || close != "+%}"))
        return source_.size() - rest.size() + close.size();
    }
    return std::nullopt;
  }

  void lex_raw() {
    after_tag(source_[at_ - 3], false);
    for (std::size_t tag = source_.find("{%", at_); tag != std::string::npos;
         tag = source_.find("{%", tag + 1)) {
      const char next = peek(tag + 2);
      const char sign = next == '-' || next == '+' ? next : '\0';
      const auto end = match_word_tag(tag + 2 + (sign != '\0' ? 1 : 0), "endraw", true);
      if (!end) continue;
      push_text_before(tag, sign, false);
      count_lines(std::string_view(source_).substr(tag, *end - tag));
      at_ = *end;
      after_tag(source_[at_ - 3], true);
      return;
    }
    fail_syntax(line_, "a raw block is not closed");
  }

  void lex_inside(std::string_view close, TokenKind end_kind) {
    std::string open_brackets;  // the closing ones that are due
    for (;;) {
      if (at_ >= source_.size()) return;  // the parser finds the end missing
      if (open_brackets.empty()) {
        const char sign =
            starts("-") || (starts("+") && end_kind == TokenKind::kBlockEnd) ? source_[at_] : '\0';
        if (std::string_view(source_).substr(at_ + (sign != '\0' ? 1 : 0)).starts_with(close)) {
          tokens_.push_back({end_kind, line_, {}});
          at_ += close.size() + (sign != '\0' ? 1 : 0);
          after_tag(sign, end_kind == TokenKind::kBlockEnd);
          return;
        }
      }
      std::size_t after = at_;
      const char32_t c = next_code_point(source_, after);
      if (is_space(c)) {
        skip_space();
      } else if (is_digit(source_[at_])) {
        lex_number();
      } else if (is_name_part(c, true)) {
        lex_name();
      } else if (c == '\'' || c == '"') {
        lex_string();
      } else {
        lex_operator(open_brackets);
      }
    }
  }

  void lex_name() {
    const std::size_t begin = at_;
    while (at_ < source_.size()) {
      std::size_t after = at_;
      if (!is_name_part(next_code_point(source_, after), false)) break;
      at_ = after;
    }
    tokens_.push_back({TokenKind::kName, line_, source_.substr(begin, at_ - begin)});
  }

  /// Digits with single underscores between them.
  std::size_t digits_end(std::size_t from) const {
    std::size_t i = from;
    while (is_digit(peek(i)) || (i > from && peek(i) == '_' && is_digit(peek(i + 1)))) ++i;
    return i;
  }

  void lex_number() {
    const std::size_t begin = at_;
    const bool after_dot = begin > 0 && source_[begin - 1] == '.';
    std::size_t end = digits_end(begin);
    bool is_float = false;
    if (!after_dot) {
      if (peek(end) == '.' && is_digit(peek(end + 1))) {
        end = digits_end(end + 1);
        is_float = true;
      }
      if (peek(end) == 'e' || peek(end) == 'E') {
        const std::size_t digits = end + (peek(end + 1) == '+' || peek(end + 1) == '-' ? 2 : 1);
        if (is_digit(peek(digits))) {
          end = digits_end(digits);
          is_float = true;
        }
      }
    }
    Token token{is_float ? TokenKind::kFloat : TokenKind::kInteger, line_, {}};
    if (is_float) {
      at_ = end;
      token.text = without_underscores(begin, end);
      token.real = std::strtod(token.text.c_str(), nullptr);
    } else {
      read_integer(token, begin, end);
    }
    tokens_.push_back(std::move(token));
  }

  std::string without_underscores(std::size_t begin, std::size_t end) const {
    std::string text = source_.substr(begin, end - begin);
    std::erase(text, '_');
    return text;
  }

  void read_integer(Token& token, std::size_t begin, std::size_t end) {
    int base = 10;
    if (source_[begin] == '0') {
      const char mark = static_cast<char>(peek(begin + 1) | 0x20);
      base = mark == 'x' ? 16 : (mark == 'o' ? 8 : (mark == 'b' ? 2 : 10));
      const auto fits = [&](char c) {
        const int digit =
            is_digit(c) ? c - '0' : ((c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : 99);
        return digit < base;
      };
      end = begin + (base == 10 ? 1 : 2);
      const auto more = [&](char c) { return base == 10 ? c == '0' : fits(c); };  // "007" is two numbers
      while (more(peek(end)) || (peek(end) == '_' && more(peek(end + 1)))) ++end;
      if (base != 10 && end == begin + 2) {
        base = 10;
        end = begin + 1;
      }
    }
    at_ = end;
    token.text = without_underscores(begin + (base == 10 ? 0 : 2), end);
    const auto [ptr, error] =
        std::from_chars(token.text.data(), token.text.data() + token.text.size(), token.integer, base);
    if (error != std::errc() || ptr != token.text.data() + token.text.size()) {
      refuse_construct(line_, fmt::format("the integer {}, above 2^63 - 1", token.text));
    }
  }

  void lex_operator(std::string& open_brackets) {
    constexpr std::array<std::string_view, 26> kOperators = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    const auto* found =
        std::find_if(kOperators.begin(), kOperators.end(), [&](auto op) { return starts(op); });
    if (found == kOperators.end()) {
      std::size_t after = at_;
      next_code_point(source_, after);
      fail_syntax(line_,
                  fmt::format("unexpected character '{}'", printable(source_.substr(at_, after - at_))));
    }
    const char c = (*found)[0];
    if (c == '(' || c == '[' || c == '{') {
      open_brackets += c == '(' ? ')' : (c == '[' ? ']' : '}');
    } else if (c == ')' || c == ']' || c == '}') {
      if (open_brackets.empty()) fail_syntax(line_, fmt::format("unexpected '{}'", c));
      if (open_brackets.back() != c) {
        fail_syntax(line_, fmt::format("unexpected '{}', expected '{}'", c, open_brackets.back()));
      }
      open_brackets.pop_back();
    }
    tokens_.push_back({TokenKind::kOperator, line_, std::string(*found)});
    at_ += found->size();
  }

  void lex_string() {
    const char quote = source_[at_];
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size())
      fail_syntax(line_, fmt::format("unexpected character '{}': the string is not closed", quote));
    const std::string_view content = std::string_view(source_).substr(at_ + 1, end - at_ - 1);
    tokens_.push_back({TokenKind::kString, line_, unescaped(content)});
    count_lines(content);
    at_ = end + 1;
  }

  /// Python's escapes in a string literal; an unknown one stays as it is.
  std::string unescaped(std::string_view content) const {
    std::string out;
    out.reserve(content.size());
    for (std::size_t i = 0; i < content.size();) {
      if (content[i] != '\\') {
        out += content[i++];
        continue;
      }
      const char kind = content[i + 1];
      i += 2;
      constexpr std::string_view kNames = "\\'\"abfnrtv";
      constexpr std::string_view kMeant = "\\'\"\a\b\f\n\r\t\v";
      const std::size_t simple = kNames.find(kind);
      if (simple != std::string_view::npos) {
        out += kMeant[simple];
      } else if (kind >= '0' && kind <= '7') {
        char32_t value = 0;
        --i;
        for (int n = 0; n < 3 && i < content.size() && content[i] >= '0' && content[i] <= '7'; ++n) {
          value = value * 8 + static_cast<char32_t>(content[i++] - '0');
        }
        append_utf8(out, value);
      } else if (kind == 'x' || kind == 'u' || kind == 'U') {
        const std::size_t width = kind == 'x' ? 2 : (kind == 'u' ? 4 : 8);
        append_utf8(out, hex_escape(content.substr(i, width), width));
        i += width;
      } else if (kind == 'N') {
        refuse_construct(line_, "the escape \\N in a string");
      } else if (kind != '\n') {  // a backslash at the line's end joins the lines
        out += '\\';
        out += kind;
      }
    }
    return out;
  }

  char32_t hex_escape(std::string_view digits, std::size_t width) const {
    std::uint32_t value = 0;
    const auto [ptr, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc() || digits.size() != width || ptr != digits.data() + width) {
      fail_syntax(line_, "a string has an incomplete \\x, \\u or \\U escape");
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) {
      fail_syntax(line_, fmt::format("a string escapes U+{:04X}, which is no character", value));
    }
    return static_cast<char32_t>(value);
  }

  std::string source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool at_line_start_ = true;  // the last tag ended with a newline, or nothing has come yet
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  if (source.size() > kMaxSource) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("the chat template has {} bytes, more than {}", source.size(), kMaxSource));
  }
  if (!is_valid_utf8(source)) throw Error(ErrorCode::kBadInput, "the chat template is not UTF-8");
  return Lexer(normalized(source)).run();
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kText:
      return "text";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kPrintBegin:
      return "'{{'";
    case TokenKind::kPrintEnd:
      return "'}}'";
    case TokenKind::kString:
      return "a string";
    case TokenKind::kEnd:
      return "the end of the template";
    default:
      return fmt::format("'{}'", token.text);
  }
}

void fail_syntax(int line, std::string_view message) {
  throw Error(ErrorCode::kBadInput, fmt::format("the chat template does not parse: {}", message),
              fmt::format("line {}", line));
}

void refuse_construct(int line, std::string_view construct) {
  throw Error(ErrorCode::kNotSupported,
              fmt::format("the chat template uses {}, which is not supported", construct),
              fmt::format("line {}", line));
}

}  // namespace wring::text::jinja
