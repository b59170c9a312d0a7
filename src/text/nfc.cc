// ASCII never changes and never combines with what precedes it, so only runs of other characters, together
// with the one ASCII character before them, go through utf8proc. Marks are put in canonical order with a
// stable sort of our own: utf8proc's bubbles them and is quadratic in a long row of marks.
#include "text/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"

namespace wring::text {

namespace {

bool is_ascii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}

[[noreturn]] void fail(utf8proc_ssize_t code) {
  throw Error(ErrorCode::kInternal, "Unicode normalization failed", utf8proc_errmsg(code));
}

int combining_class(utf8proc_int32_t c) {
  return utf8proc_get_property(c)->combining_class;
}

// `run` is valid UTF-8; `points` is work space.
void append_nfc(std::string_view run, std::vector<utf8proc_int32_t>& points, std::string& out) {
  points.clear();
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(run.data());
  for (std::size_t at = 0; at < run.size();) {
    utf8proc_int32_t c = 0;
    const utf8proc_ssize_t used =
        utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(run.size() - at), &c);
    if (used <= 0) fail(used);
    at += static_cast<std::size_t>(used);
    utf8proc_int32_t parts[32];  // the longest canonical decomposition has 4
    int last_class = 0;
    const utf8proc_ssize_t n = utf8proc_decompose_char(
        c, parts, 32, static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE), &last_class);
    if (n < 0 || n > 32) fail(n);
    points.insert(points.end(), parts, parts + n);
  }
  for (auto from = points.begin(); from != points.end();) {
    if (combining_class(*from) == 0) {
      ++from;
      continue;
    }
    const auto to = std::find_if(from, points.end(), [](auto c) { return combining_class(c) == 0; });
    std::stable_sort(from, to, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    from = to;
  }
  const utf8proc_ssize_t n =
      utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  if (n < 0) fail(n);
  for (utf8proc_ssize_t i = 0; i < n; ++i) {
    utf8proc_uint8_t encoded[4];
    const utf8proc_ssize_t length = utf8proc_encode_char(points[static_cast<std::size_t>(i)], encoded);
    out.append(reinterpret_cast<const char*>(encoded), static_cast<std::size_t>(length));
  }
}

}  // namespace

std::string to_nfc(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::vector<utf8proc_int32_t> points;
  std::size_t at = 0;
  while (at < text.size()) {
    if (is_ascii(text[at]) && (at + 1 == text.size() || is_ascii(text[at + 1]))) {
      out += text[at++];
      continue;
    }
    std::size_t end = at + 1;
    while (end < text.size() && !is_ascii(text[end])) ++end;
    const std::size_t valid = valid_utf8_prefix(text.substr(at, end - at));
    append_nfc(text.substr(at, valid), points, out);
    at += valid;
    if (at < end) out += text[at++];  // a byte that is not UTF-8
  }
  return out;
}

}  // namespace wring::text
