// Upper, lower and title case as Python's str has them: the simple mappings are utf8proc's, the one-to-many
// ones ("ß" to "SS") are the unconditional entries of Unicode's SpecialCasing.txt, and a final sigma is told
// from its neighbours.

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "text/jinja/text.h"

namespace wring::text::jinja {
namespace {

struct Expansion {
  char32_t from;
  std::array<char32_t, 3> to;  // zero-filled
};

// Sorted by `from`.
constexpr Expansion kUpperExpansions[] = {
    {0xDF, {0x53, 0x53}},
    {0x149, {0x2BC, 0x4E}},
    {0x1F0, {0x4A, 0x30C}},
    {0x390, {0x399, 0x308, 0x301}},
    {0x3B0, {0x3A5, 0x308, 0x301}},
    {0x587, {0x535, 0x552}},
    {0x1E96, {0x48, 0x331}},
    {0x1E97, {0x54, 0x308}},
    {0x1E98, {0x57, 0x30A}},
    {0x1E99, {0x59, 0x30A}},
    {0x1E9A, {0x41, 0x2BE}},
    {0x1F50, {0x3A5, 0x313}},
    {0x1F52, {0x3A5, 0x313, 0x300}},
    {0x1F54, {0x3A5, 0x313, 0x301}},
    {0x1F56, {0x3A5, 0x313, 0x342}},
    {0x1F80, {0x1F08, 0x399}},
    {0x1F81, {0x1F09, 0x399}},
    {0x1F82, {0x1F0A, 0x399}},
    {0x1F83, {0x1F0B, 0x399}},
    {0x1F84, {0x1F0C, 0x399}},
    {0x1F85, {0x1F0D, 0x399}},
    {0x1F86, {0x1F0E, 0x399}},
    {0x1F87, {0x1F0F, 0x399}},
    {0x1F88, {0x1F08, 0x399}},
    {0x1F89, {0x1F09, 0x399}},
    {0x1F8A, {0x1F0A, 0x399}},
    {0x1F8B, {0x1F0B, 0x399}},
    {0x1F8C, {0x1F0C, 0x399}},
    {0x1F8D, {0x1F0D, 0x399}},
    {0x1F8E, {0x1F0E, 0x399}},
    {0x1F8F, {0x1F0F, 0x399}},
    {0x1F90, {0x1F28, 0x399}},
    {0x1F91, {0x1F29, 0x399}},
    {0x1F92, {0x1F2A, 0x399}},
    {0x1F93, {0x1F2B, 0x399}},
    {0x1F94, {0x1F2C, 0x399}},
    {0x1F95, {0x1F2D, 0x399}},
    {0x1F96, {0x1F2E, 0x399}},
    {0x1F97, {0x1F2F, 0x399}},
    {0x1F98, {0x1F28, 0x399}},
    {0x1F99, {0x1F29, 0x399}},
    {0x1F9A, {0x1F2A, 0x399}},
    {0x1F9B, {0x1F2B, 0x399}},
    {0x1F9C, {0x1F2C, 0x399}},
    {0x1F9D, {0x1F2D, 0x399}},
    {0x1F9E, {0x1F2E, 0x399}},
    {0x1F9F, {0x1F2F, 0x399}},
    {0x1FA0, {0x1F68, 0x399}},
    {0x1FA1, {0x1F69, 0x399}},
    {0x1FA2, {0x1F6A, 0x399}},
    {0x1FA3, {0x1F6B, 0x399}},
    {0x1FA4, {0x1F6C, 0x399}},
    {0x1FA5, {0x1F6D, 0x399}},
    {0x1FA6, {0x1F6E, 0x399}},
    {0x1FA7, {0x1F6F, 0x399}},
    {0x1FA8, {0x1F68, 0x399}},
    {0x1FA9, {0x1F69, 0x399}},
    {0x1FAA, {0x1F6A, 0x399}},
    {0x1FAB, {0x1F6B, 0x399}},
    {0x1FAC, {0x1F6C, 0x399}},
    {0x1FAD, {0x1F6D, 0x399}},
    {0x1FAE, {0x1F6E, 0x399}},
    {0x1FAF, {0x1F6F, 0x399}},
    {0x1FB2, {0x1FBA, 0x399}},
    {0x1FB3, {0x391, 0x399}},
    {0x1FB4, {0x386, 0x399}},
    {0x1FB6, {0x391, 0x342}},
    {0x1FB7, {0x391, 0x342, 0x399}},
    {0x1FBC, {0x391, 0x399}},
    {0x1FC2, {0x1FCA, 0x399}},
    {0x1FC3, {0x397, 0x399}},
    {0x1FC4, {0x389, 0x399}},
    {0x1FC6, {0x397, 0x342}},
    {0x1FC7, {0x397, 0x342, 0x399}},
    {0x1FCC, {0x397, 0x399}},
    {0x1FD2, {0x399, 0x308, 0x300}},
    {0x1FD3, {0x399, 0x308, 0x301}},
    {0x1FD6, {0x399, 0x342}},
    {0x1FD7, {0x399, 0x308, 0x342}},
    {0x1FE2, {0x3A5, 0x308, 0x300}},
    {0x1FE3, {0x3A5, 0x308, 0x301}},
    {0x1FE4, {0x3A1, 0x313}},
    {0x1FE6, {0x3A5, 0x342}},
    {0x1FE7, {0x3A5, 0x308, 0x342}},
    {0x1FF2, {0x1FFA, 0x399}},
    {0x1FF3, {0x3A9, 0x399}},
    {0x1FF4, {0x38F, 0x399}},
    {0x1FF6, {0x3A9, 0x342}},
    {0x1FF7, {0x3A9, 0x342, 0x399}},
    {0x1FFC, {0x3A9, 0x399}},
    {0xFB00, {0x46, 0x46}},
    {0xFB01, {0x46, 0x49}},
    {0xFB02, {0x46, 0x4C}},
    {0xFB03, {0x46, 0x46, 0x49}},
    {0xFB04, {0x46, 0x46, 0x4C}},
    {0xFB05, {0x53, 0x54}},
    {0xFB06, {0x53, 0x54}},
    {0xFB13, {0x544, 0x546}},
    {0xFB14, {0x544, 0x535}},
    {0xFB15, {0x544, 0x53B}},
    {0xFB16, {0x54E, 0x546}},
    {0xFB17, {0x544, 0x53D}},
};

const Expansion* expansion_of(char32_t c) {
  const auto* end = std::end(kUpperExpansions);
  const auto* found = std::lower_bound(std::begin(kUpperExpansions), end, c,
                                       [](const Expansion& e, char32_t value) { return e.from < value; });
  return found != end && found->from == c ? found : nullptr;
}

char32_t mapped(utf8proc_int32_t (*map)(utf8proc_int32_t), char32_t c) {
  return static_cast<char32_t>(map(static_cast<utf8proc_int32_t>(c)));
}

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_lower_case(char32_t c) {
  return utf8proc_islower(static_cast<utf8proc_int32_t>(c)) != 0;
}
bool is_upper_case(char32_t c) {
  return utf8proc_isupper(static_cast<utf8proc_int32_t>(c)) != 0;
}
bool is_cased(char32_t c) {
  return is_lower_case(c) || is_upper_case(c) || category(c) == UTF8PROC_CATEGORY_LT;
}

bool is_case_ignorable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return c == U'\'' || c == U'.' || c == U':' || c == 0xB7 || c == 0x2018 || c == 0x2019;
  }
}

void append_upper(std::string& out, char32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c));
  } else if (const Expansion* e = expansion_of(c)) {
    for (const char32_t part : e->to) {
      if (part != 0) append_utf8(out, part);
    }
  } else {
    append_utf8(out, mapped(utf8proc_toupper, c));
  }
}

void append_title(std::string& out, char32_t c) {
  const char32_t simple = mapped(utf8proc_totitle, c);
  const Expansion* e = expansion_of(c);
  if (simple != c || e == nullptr) {
    append_utf8(out, simple);
    return;
  }
  append_utf8(out, e->to[0]);
  for (std::size_t i = 1; i < e->to.size() && e->to[i] != 0; ++i) {
    // Only the first part is a capital; a capital iota that follows one is the combining subscript there.
    append_utf8(out, e->to[i] == 0x399 ? char32_t{0x345} : mapped(utf8proc_tolower, e->to[i]));
  }
}

/// Greek sigma ends a word if a cased letter stands before it and none behind it, marks apart.
bool is_final_sigma(const std::u32string& text, std::size_t at) {
  std::size_t before = at;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  std::size_t after = at + 1;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

void append_lower(std::string& out, const std::u32string& text, std::size_t at) {
  const char32_t c = text[at];
  if (c < 0x80) {
    out.push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
  } else if (c == 0x130) {  // dotted capital I keeps its dot as a mark
    out += "i\xCC\x87";
  } else if (c == 0x3A3) {
    append_utf8(out, is_final_sigma(text, at) ? 0x3C2 : 0x3C3);
  } else {
    append_utf8(out, mapped(utf8proc_tolower, c));
  }
}

std::u32string code_points(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) out.push_back(next_code_point(text, at));
  return out;
}

}  // namespace

std::string upper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) append_upper(out, next_code_point(text, at));
  return out;
}

std::string lower(std::string_view text) {
  const std::u32string points = code_points(text);
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < points.size(); ++i) append_lower(out, points, i);
  return out;
}

std::string capitalize(std::string_view text) {
  const std::u32string points = code_points(text);
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i == 0) {
      append_title(out, points[i]);
    } else {
      append_lower(out, points, i);
    }
  }
  return out;
}

std::string title(std::string_view text) {
  const std::u32string points = code_points(text);
  std::string out;
  out.reserve(text.size());
  bool in_word = false;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (in_word) {
      append_lower(out, points, i);
    } else {
      append_title(out, points[i]);
    }
    in_word = is_cased(points[i]);
  }
  return out;
}

std::string title_words(std::string_view text) {
  // Python lowers each word by itself, so a sigma's neighbours are those inside its word.
  std::string out;
  out.reserve(text.size());
  std::u32string word;
  const auto flush = [&] {
    for (std::size_t i = 0; i < word.size(); ++i) {
      if (i == 0) {
        append_upper(out, word[0]);
      } else {
        append_lower(out, word, i);
      }
      if (i == 0) word[0] = 0;  // what comes before the rest is not seen when the rest is lowered
    }
    word.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    const bool separates = is_space(c) || (c < 0x80 && std::string_view("-({[<").find(static_cast<char>(c)) !=
                                                           std::string_view::npos);
    if (!separates) {
      word.push_back(c);
      continue;
    }
    flush();
    append_utf8(out, c);
  }
  flush();
  return out;
}

bool has_only_case(std::string_view text, bool lower) {
  bool some = false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (lower ? is_lower_case(c) : is_upper_case(c)) {
      some = true;
    } else if (is_cased(c)) {
      return false;
    }
  }
  return some;
}

}  // namespace wring::text::jinja
