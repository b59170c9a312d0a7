// Code points, whitespace, cutting and joining; case.cc has the letters' case.

#include "text/jinja/text.h"

#include <utf8proc.h>

#include <algorithm>

namespace wring::text::jinja {
namespace {

bool is_lead(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
}

bool contains(std::string_view set, char32_t wanted) {
  for (std::size_t at = 0; at < set.size();) {
    if (next_code_point(set, at) == wanted) return true;
  }
  return false;
}

/// Start of the code point that ends before byte `end`.
std::size_t previous(std::string_view text, std::size_t end) {
  do --end;
  while (end > 0 && !is_lead(text[end]));
  return end;
}

std::vector<std::string> split_at_whitespace(std::string_view text, std::int64_t limit, bool from_right) {
  std::vector<std::string> out;
  text = strip(text, from_right ? Side::kRight : Side::kLeft);
  while (!text.empty()) {
    if (limit >= 0 && static_cast<std::int64_t>(out.size()) == limit) {
      out.emplace_back(strip(text, from_right ? Side::kRight : Side::kLeft));
      break;
    }
    if (from_right) {
      std::size_t begin = text.size();
      while (begin > 0) {
        std::size_t at = previous(text, begin);
        const std::size_t start = at;
        if (is_space(next_code_point(text, at))) break;
        begin = start;
      }
      out.emplace_back(text.substr(begin));
      text = strip(text.substr(0, begin), Side::kRight);
    } else {
      std::size_t end = 0;
      while (end < text.size()) {
        std::size_t at = end;
        if (is_space(next_code_point(text, at))) break;
        end = at;
      }
      out.emplace_back(text.substr(0, end));
      text = strip(text.substr(end), Side::kLeft);
    }
  }
  if (from_right) std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace

char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) -> char32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const char32_t lead = byte(at);
  if (lead < 0x80) {
    ++at;
    return lead;
  }
  if (lead < 0xE0) {
    const char32_t c = ((lead & 0x1FU) << 6) | (byte(at + 1) & 0x3FU);
    at += 2;
    return c;
  }
  if (lead < 0xF0) {
    const char32_t c = ((lead & 0xFU) << 12) | ((byte(at + 1) & 0x3FU) << 6) | (byte(at + 2) & 0x3FU);
    at += 3;
    return c;
  }
  const char32_t c = ((lead & 0x7U) << 18) | ((byte(at + 1) & 0x3FU) << 12) | ((byte(at + 2) & 0x3FU) << 6) |
                     (byte(at + 3) & 0x3FU);
  at += 4;
  return c;
}

void append_utf8(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0U | (c >> 6));
    put(0x80U | (c & 0x3FU));
  } else if (c < 0x10000) {
    put(0xE0U | (c >> 12));
    put(0x80U | ((c >> 6) & 0x3FU));
    put(0x80U | (c & 0x3FU));
  } else {
    put(0xF0U | (c >> 18));
    put(0x80U | ((c >> 12) & 0x3FU));
    put(0x80U | ((c >> 6) & 0x3FU));
    put(0x80U | (c & 0x3FU));
  }
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_printable(char32_t c) {
  if (c < 0x80) return c >= 0x20 && c < 0x7F;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

std::size_t length(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), is_lead));
}

std::size_t byte_offset(std::string_view text, std::size_t index) {
  std::size_t at = 0;
  while (index > 0 && at < text.size()) {
    ++at;
    while (at < text.size() && !is_lead(text[at])) ++at;
    --index;
  }
  return at;
}

std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    next_code_point(text, at);
    out.emplace_back(text.substr(begin, at - begin));
  }
  return out;
}

std::string_view strip(std::string_view text, Side side, std::optional<std::string_view> chars) {
  const auto goes = [&](char32_t c) { return chars ? contains(*chars, c) : is_space(c); };
  std::size_t begin = 0;
  std::size_t end = text.size();
  if (side != Side::kRight) {
    while (begin < end) {
      std::size_t at = begin;
      if (!goes(next_code_point(text, at))) break;
      begin = at;
    }
  }
  if (side != Side::kLeft) {
    while (end > begin) {
      const std::size_t start = previous(text, end);
      std::size_t at = start;
      if (!goes(next_code_point(text, at))) break;
      end = start;
    }
  }
  return text.substr(begin, end - begin);
}

std::vector<std::string> split(std::string_view text, std::optional<std::string_view> separator,
                               std::int64_t limit, bool from_right) {
  if (!separator) return split_at_whitespace(text, limit, from_right);
  std::vector<std::string> out;
  while (limit < 0 || static_cast<std::int64_t>(out.size()) < limit) {
    const std::size_t found = from_right ? text.rfind(*separator) : text.find(*separator);
    if (found == std::string_view::npos) break;
    const std::size_t behind = found + separator->size();
    out.emplace_back(from_right ? text.substr(behind) : text.substr(0, found));
    text = from_right ? text.substr(0, found) : text.substr(behind);
  }
  out.emplace_back(text);
  if (from_right) std::reverse(out.begin(), out.end());
  return out;
}

std::vector<std::string> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string> out;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t line_end = at;
    const char32_t c = next_code_point(text, at);
    const bool ends =
        (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (!ends) continue;
    if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
    out.emplace_back(text.substr(begin, (keep_ends ? at : line_end) - begin));
    begin = at;
  }
  if (begin < text.size()) out.emplace_back(text.substr(begin));
  return out;
}

std::string replace(std::string_view text, std::string_view old_text, std::string_view new_text,
                    std::int64_t limit) {
  std::string out;
  std::int64_t done = 0;
  std::size_t at = 0;
  if (old_text.empty()) {  // between all characters, and at both ends
    while (limit < 0 || done < limit) {
      out += new_text;
      ++done;
      if (at == text.size()) return out;
      const std::size_t begin = at;
      next_code_point(text, at);
      out += text.substr(begin, at - begin);
    }
    return out += text.substr(at);
  }
  while (limit < 0 || done < limit) {
    const std::size_t found = text.find(old_text, at);
    if (found == std::string_view::npos) break;
    out += text.substr(at, found - at);
    out += new_text;
    at = found + old_text.size();
    ++done;
  }
  return out += text.substr(at);
}

bool all_of_class(std::string_view text, CharClass wanted) {
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
    const bool alpha = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
    const bool digit = category == UTF8PROC_CATEGORY_ND;
    const bool number = category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
    const bool fits = wanted == CharClass::kAlpha   ? alpha
                      : wanted == CharClass::kDigit ? digit
                      : wanted == CharClass::kAlnum ? alpha || number
                                                    : is_space(c);
    if (!fits) return false;
  }
  return !text.empty();
}

}  // namespace wring::text::jinja
