#include "lab/html_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

namespace wring::lab {
namespace {

using std::string_view;

template <std::size_t N>
bool one_of(string_view name, const std::array<string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Their content is not markup: it ends at the closing tag and nowhere else.
constexpr std::array<string_view, 3> kRawText = {"script", "style", "textarea"};
constexpr std::array<string_view, 9> kDropped = {"head",   "template", "noscript", "svg",   "nav",
                                                 "header", "aside",    "footer",   "button"};
constexpr std::array<string_view, 23> kParagraph = {
    "address", "article", "blockquote", "body", "caption", "div",   "dl", "fieldset",
    "figure",  "h1",      "h2",         "h3",   "h4",      "h5",    "h6", "hr",
    "main",    "ol",      "p",          "pre",  "section", "table", "ul"};
constexpr std::array<string_view, 6> kLine = {"br", "dd", "dt", "li", "option", "tr"};
constexpr std::array<string_view, 2> kCell = {"td", "th"};

constexpr std::array<std::pair<string_view, string_view>, 28> kEntities = {{
    {"amp", "&"},    {"lt", "<"},    {"gt", ">"},     {"quot", "\""},  {"apos", "'"},  {"nbsp", " "},
    {"copy", "©"},   {"reg", "®"},   {"trade", "™"},  {"hellip", "…"}, {"mdash", "—"}, {"ndash", "–"},
    {"lsquo", "‘"},  {"rsquo", "’"}, {"ldquo", "“"},  {"rdquo", "”"},  {"laquo", "«"}, {"raquo", "»"},
    {"middot", "·"}, {"bull", "•"},  {"times", "×"},  {"deg", "°"},    {"sect", "§"},  {"para", "¶"},
    {"rarr", "→"},   {"larr", "←"},  {"plusmn", "±"}, {"shy", ""},
}};

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

void append_utf8(std::string& out, std::uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += {static_cast<char>(0xC0 | (c >> 6)), static_cast<char>(0x80 | (c & 63))};
  } else if (c < 0x10000) {
    out += {static_cast<char>(0xE0 | (c >> 12)), static_cast<char>(0x80 | ((c >> 6) & 63)),
            static_cast<char>(0x80 | (c & 63))};
  } else {
    out += {static_cast<char>(0xF0 | (c >> 18)), static_cast<char>(0x80 | ((c >> 12) & 63)),
            static_cast<char>(0x80 | ((c >> 6) & 63)), static_cast<char>(0x80 | (c & 63))};
  }
}

// Collects text, keeping blanks and breaks back until a visible character follows.
class Writer {
 public:
  void text(string_view s, bool preformatted) {
    for (const char c : s) {
      if (preformatted && c == '\n') {
        want(1);
        ++blank_lines_;
      } else if (is_blank(c)) {
        if (preformatted && c != '\r') {
          blanks_ += c == '\t' ? '\t' : ' ';
        } else if (blanks_.empty()) {
          blanks_ = " ";
        }
      } else {
        visible(c);
      }
    }
    if (!preformatted && !blanks_.empty()) blanks_ = " ";
  }

  /// At least `newlines` line ends before the next character.
  void want(int newlines) {
    newlines_ = std::max(newlines_, newlines);
    blanks_.clear();
  }

  void space() {
    if (blanks_.empty()) blanks_ = " ";
  }

  std::string finish() {
    if (!out_.empty()) out_ += '\n';
    return std::move(out_);
  }

 private:
  void visible(char c) {
    if (!out_.empty() && (newlines_ > 0 || blank_lines_ > 0)) {
      out_.append(static_cast<std::size_t>(std::clamp(std::max(newlines_, blank_lines_), 1, 2)), '\n');
      at_line_start_ = true;
    }
    // Indentation matters inside <pre> only; elsewhere a line begins with its first word.
    if (!blanks_.empty() && !(at_line_start_ && blanks_ == " ")) out_ += blanks_;
    blanks_.clear();
    newlines_ = blank_lines_ = 0;
    at_line_start_ = false;
    out_ += c;
  }

  std::string out_, blanks_;
  int newlines_ = 0;
  int blank_lines_ = 0;  // consecutive newlines inside <pre>
  bool at_line_start_ = true;
};

class Stripper {
 public:
  explicit Stripper(string_view html) : html_(html) {}

  std::string run() {
    while (at_ < html_.size()) {
      const char c = html_[at_];
      if (c == '<') {
        markup();
      } else {
        const std::size_t end = std::min(html_.find_first_of("<&", at_ + 1), html_.size());
        if (c == '&') {
          entity();
        } else {
          emit(html_.substr(at_, end - at_));
          at_ = end;
        }
      }
    }
    return out_.finish();
  }

 private:
  void emit(string_view s) {
    if (dropped_.empty()) out_.text(s, pre_depth_ > 0);
  }

  // At '<': a comment, a declaration, a tag, or a plain character.
  void markup() {
    const string_view rest = html_.substr(at_);
    if (rest.starts_with("<!--")) {
      skip_past("-->", 4);
    } else if (rest.starts_with("<!") || rest.starts_with("<?")) {
      skip_past(">", 2);
    } else if (rest.size() > 1 &&
               (is_letter(rest[1]) || (rest[1] == '/' && rest.size() > 2 && is_letter(rest[2])))) {
      tag();
    } else {
      emit("<");
      ++at_;
    }
  }

  void skip_past(string_view end, std::size_t from) {
    const std::size_t found = html_.find(end, at_ + from);
    at_ = found == string_view::npos ? html_.size() : found + end.size();
  }

  void tag() {
    const bool closing = html_[at_ + 1] == '/';
    std::size_t i = at_ + (closing ? 2 : 1);
    std::string name;
    for (; i < html_.size() && !is_blank(html_[i]) && html_[i] != '>' && html_[i] != '/'; ++i) {
      name += lower(html_[i]);
    }
    // A '>' inside a quoted attribute does not end the tag.
    char quote = 0;
    for (; i < html_.size() && (quote != 0 || html_[i] != '>'); ++i) {
      if (quote != 0) {
        if (html_[i] == quote) quote = 0;
      } else if ((html_[i] == '"' || html_[i] == '\'') && html_[i - 1] == '=') {
        quote = html_[i];
      }
    }
    const bool self_closing = i > at_ && i < html_.size() && html_[i - 1] == '/';
    at_ = std::min(i + 1, html_.size());
    if (!closing && one_of(name, kRawText)) {
      skip_raw_text(name);
    } else {
      handle(name, closing, self_closing);
    }
  }

  void skip_raw_text(string_view name) {
    for (;; ++at_) {
      at_ = html_.find("</", at_);
      if (at_ == string_view::npos) break;
      const string_view found = html_.substr(at_ + 2, name.size());
      if (std::equal(found.begin(), found.end(), name.begin(), name.end(),
                     [](char a, char b) { return lower(a) == b; })) {
        skip_past(">", 2);
        return;
      }
    }
    at_ = html_.size();
  }

  void handle(const std::string& name, bool closing, bool self_closing) {
    if (!dropped_.empty()) {
      if (name == dropped_) depth_ += closing ? -1 : (self_closing ? 0 : 1);
      // A page that forgets </head> still begins at <body>.
      if (depth_ == 0 || (dropped_ == "head" && name == "body" && !closing)) dropped_.clear();
      return;
    }
    if (!closing && !self_closing && one_of(name, kDropped)) {
      dropped_ = name;
      depth_ = 1;
      return;
    }
    if (one_of(name, kParagraph)) {
      out_.want(2);
    } else if (one_of(name, kLine)) {
      if (!closing || name != "br") out_.want(1);
    } else if (one_of(name, kCell)) {
      out_.space();
    }
    if (name == "pre") pre_depth_ = std::max(0, pre_depth_ + (closing ? -1 : 1));
  }

  void entity() {
    constexpr std::size_t kLongest = 32;
    const std::size_t semicolon = html_.substr(0, std::min(html_.size(), at_ + kLongest)).find(';', at_);
    std::string decoded;
    if (semicolon != string_view::npos && decode(html_.substr(at_ + 1, semicolon - at_ - 1), decoded)) {
      // A decoded blank is a blank, and a decoded '<' is a character.
      emit(decoded);
      at_ = semicolon + 1;
    } else {
      emit("&");
      ++at_;
    }
  }

  static bool decode(string_view name, std::string& out) {
    if (name.starts_with('#')) {
      name.remove_prefix(1);
      const bool hex = name.starts_with('x') || name.starts_with('X');
      if (hex) name.remove_prefix(1);
      std::uint32_t c = 0;
      const auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), c, hex ? 16 : 10);
      if (fault != std::errc() || end != name.data() + name.size()) return false;
      if (c == 0 || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) return false;
      if (c == 0xA0) c = ' ';
      append_utf8(out, c);
      return true;
    }
    for (const auto& [key, value] : kEntities) {
      if (key == name) {
        out = value;
        return true;
      }
    }
    return false;
  }

  string_view html_;
  std::size_t at_ = 0;
  Writer out_;
  std::string dropped_;  // the element whose content is being left out
  int depth_ = 0;        // of that element inside itself
  int pre_depth_ = 0;
};

}  // namespace

std::string html_to_text(string_view html) {
  // A no-break space is a blank, however it is written.
  constexpr string_view kNoBreakSpace = "\xC2\xA0";
  std::string plain;
  plain.reserve(html.size());
  for (std::size_t at = 0; at < html.size();) {
    const std::size_t found = std::min(html.find(kNoBreakSpace, at), html.size());
    plain += html.substr(at, found - at);
    if (found < html.size()) plain += ' ';
    at = found + kNoBreakSpace.size();
  }
  return Stripper(plain).run();
}

}  // namespace wring::lab
