// Python's two formatting languages, as far as templates use them: "%s" % x (with flags, width and precision)
// and "{}".format(x) (with positions and names; format specifications are refused).

#include <fmt/format.h>
#include <fmt/printf.h>

#include <cmath>
#include <cstdlib>

#include "text/jinja/library.h"
#include "text/jinja/text.h"

namespace wring::text::jinja {
namespace {

constexpr int kMaxWidth = 1000;

struct Conversion {
  bool left = false, zero = false, plus = false, space = false, alternate = false;
  int width = 0, precision = -1;
};

std::string padded(std::string text, const Conversion& c) {
  const std::size_t have = length(text);
  const auto want = static_cast<std::size_t>(c.width);
  if (have >= want) return text;
  const std::string padding(want - have, ' ');
  return c.left ? text + padding : padding + text;
}

/// The number through C's printf, which Python's formatting of numbers follows.
template <class T>
std::string through_printf(const Conversion& c, char kind, T value) {
  std::string spec = "%";
  if (c.left) spec += '-';
  if (c.zero) spec += '0';
  if (c.plus) spec += '+';
  if (c.space && !c.plus) spec += ' ';
  if (c.alternate) spec += '#';
  if (c.width > 0) spec += fmt::format("{}", c.width);
  if (c.precision >= 0) spec += fmt::format(".{}", c.precision);
  spec += kind;
  return fmt::sprintf(spec, value);
}

std::int64_t integer_of(const Value& v, char kind) {
  if (v.is_integral()) return v.as_int();
  if (v.is_undefined()) fail_undefined(v);
  if (!v.is_float() || (kind != 'd' && kind != 'i' && kind != 'u')) {
    fail(fmt::format("%{} format: a number is required, not {}", kind, v.type()));
  }
  const double d = std::trunc(v.as_double());
  if (!(std::fabs(d) < 9.2e18))
    fail(fmt::format("cannot format {} as an integer", repr_float(v.as_double())));
  return static_cast<std::int64_t>(d);
}

std::string converted(const Conversion& c, char kind, const Value& v) {
  switch (kind) {
    case 's':
    case 'r': {
      std::string text = kind == 's' ? to_text(v) : repr(v);
      if (c.precision >= 0) text.resize(byte_offset(text, static_cast<std::size_t>(c.precision)));
      return padded(std::move(text), c);
    }
    case 'd':
    case 'i':
    case 'u':
      return through_printf(c, 'd', integer_of(v, kind));
    case 'x':
    case 'X':
    case 'o': {
      const std::int64_t value = integer_of(v, kind);
      if (value < 0 || (kind == 'o' && c.alternate))
        fail_not_supported("the chat template formats a number with %x or %o this way");
      return through_printf(c, kind, static_cast<std::uint64_t>(value));
    }
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
      if (v.is_undefined()) fail_undefined(v);
      if (!v.is_number()) fail(fmt::format("must be real number, not {}", v.type()));
      return through_printf(c, kind, v.as_double());
    default:
      fail_not_supported(fmt::format("the chat template formats with %{}", kind));
  }
}

int read_number(const std::string& format, std::size_t& at) {
  int value = 0;
  while (at < format.size() && format[at] >= '0' && format[at] <= '9') {
    value = value * 10 + (format[at++] - '0');
    if (value > kMaxWidth) fail(fmt::format("a format's width is above {}", kMaxWidth));
  }
  return value;
}

Conversion read_conversion(const std::string& format, std::size_t& at) {
  Conversion c;
  for (; at < format.size(); ++at) {
    const char flag = format[at];
    bool* known = flag == '-'   ? &c.left
                  : flag == '0' ? &c.zero
                  : flag == '+' ? &c.plus
                  : flag == ' ' ? &c.space
                  : flag == '#' ? &c.alternate
                                : nullptr;
    if (known == nullptr) break;
    *known = true;
  }
  if (at < format.size() && format[at] == '*')
    fail_not_supported("the chat template formats with a width of *");
  c.width = read_number(format, at);
  if (at < format.size() && format[at] == '.') {
    ++at;
    if (at < format.size() && format[at] == '*')
      fail_not_supported("the chat template formats with a width of *");
    c.precision = read_number(format, at);
  }
  return c;
}

}  // namespace

std::string percent_format(const std::string& format, const Value& right) {
  const SeqData* seq = right.seq();
  const bool is_tuple = seq != nullptr && (seq->kind == Sequence::kTuple || seq->kind == Sequence::kGroup);
  const std::vector<Value> one{right};
  const std::vector<Value>& values = is_tuple ? seq->items : one;
  // Python takes whatever has keys or indices for a mapping, and does not mind if a mapping is not used.
  const bool may_be_left = right.dict() != nullptr || right.is_undefined() ||
                           (seq != nullptr && !is_tuple && seq->kind < Sequence::kKeys);
  std::string out;
  std::size_t next = 0;
  for (std::size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      out += format[at++];
      continue;
    }
    ++at;
    const Value* value = nullptr;
    if (at < format.size() && format[at] == '(') {
      const std::size_t end = format.find(')', at);
      if (end == std::string::npos) fail("incomplete format key");
      const std::string key = format.substr(at + 1, end - at - 1);
      if (right.dict() == nullptr) fail("format requires a mapping");
      value = right.dict()->find(key);
      if (value == nullptr) fail(fmt::format("the format's key '{}' is missing", key));
      at = end + 1;
    }
    const Conversion c = read_conversion(format, at);
    if (at >= format.size()) fail("incomplete format");
    const char kind = format[at++];
    if (kind == '%') {
      out += '%';
      continue;
    }
    if (value == nullptr) {
      if (next >= values.size()) fail("not enough arguments for format string");
      value = &values[next++];
    }
    out += converted(c, kind, *value);
    check_text_size(out.size());
  }
  if (next < values.size() && !may_be_left) {
    fail("not all arguments converted during string formatting");
  }
  return out;
}

std::string brace_format(const std::string& format, const Arguments& arguments) {
  std::string out;
  std::size_t next = 0;
  for (std::size_t at = 0; at < format.size();) {
    const char c = format[at++];
    if (c != '{' && c != '}') {
      out += c;
      continue;
    }
    if (at < format.size() && format[at] == c) {
      out += c;
      ++at;
      continue;
    }
    const std::size_t end = c == '{' ? format.find('}', at) : std::string::npos;
    if (end == std::string::npos) fail("a format text has a single brace");
    const std::string field = format.substr(at, end - at);
    at = end + 1;
    if (field.find_first_of(":!.[{") != std::string::npos) {
      fail_not_supported(fmt::format("the chat template formats with {{{}}}", field));
    }
    const Value* value = nullptr;
    if (field.empty() || (field[0] >= '0' && field[0] <= '9')) {
      const std::size_t index = field.empty() ? next++ : std::strtoul(field.c_str(), nullptr, 10);
      if (index < arguments.positional.size()) value = &arguments.positional[index];
    } else {
      for (const auto& [name, given] : arguments.named) {
        if (name == field) value = &given;
      }
    }
    if (value == nullptr) fail(fmt::format("the format's field {{{}}} has no value", field));
    out += to_text(*value);
    check_text_size(out.size());
  }
  return out;
}

}  // namespace wring::text::jinja
