// Regular expressions of pre-tokenizers, over PCRE2 with its JIT compiler. Patterns come from files of
// strangers: what PCRE2 cannot compile is an error at load, and a search that backtracks without end is an
// error with the pattern in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace wring::text {

class Regex {
 public:
  /// `pattern` in Oniguruma's dialect (regex_dialect.h). Errors: kBadInput showing the pattern and the offset
  /// of the fault; kNotSupported.
  Regex(std::string_view pattern, std::string_view where);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  const std::string& pattern() const { return pattern_; }

 private:
  friend class RegexSearch;
  struct Code;
  std::string pattern_;
  std::unique_ptr<Code> code_;
};

/// What searches need besides the pattern: work space, and the steps that may still be spent. One a thread
/// and text.
class RegexSearch {
 public:
  /// For searches over texts of `text_bytes` in all.
  explicit RegexSearch(std::size_t text_bytes);
  ~RegexSearch();
  RegexSearch(const RegexSearch&) = delete;
  RegexSearch& operator=(const RegexSearch&) = delete;

  struct Match {
    std::size_t begin, end;
  };
  /// The first match of `regex` in `text` (valid UTF-8) at or after `from`. False if there is none. Errors:
  /// kBadInput when the steps are used up.
  bool find(const Regex& regex, std::string_view text, std::size_t from, Match& match);

  /// Calls f(begin, end, is_match) for the parts of `text` in order: matches, and what lies between them. As
  /// in Hugging Face's tokenizers an empty match counts unless it follows the last match directly.
  template <class F>
  void for_each_part(const Regex& regex, std::string_view text, F&& f) {
    std::size_t from = 0, done = 0;
    bool any = false;
    Match m{};
    while (from <= text.size() && find(regex, text, from, m)) {
      if (m.begin == m.end && any && m.end == done) {
        from = next_character(text, from);
        continue;
      }
      if (m.begin > done) f(done, m.begin, false);
      f(m.begin, m.end, true);
      from = done = m.end;
      any = true;
    }
    if (done < text.size()) f(done, text.size(), false);
  }

 private:
  static std::size_t next_character(std::string_view text, std::size_t at) {
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
    return at;
  }

  [[noreturn]] static void fail(const Regex& regex, std::string_view what, std::string_view text,
                                std::size_t from);

  struct Work;
  std::unique_ptr<Work> work_;
  std::uint64_t steps_left_;
  double deadline_;  // in this thread's seconds
  unsigned calls_ = 0;
};

}  // namespace wring::text
