// See normalizer.h. Each step makes a new string: texts are long, steps are few.
#include "text/normalizer.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "text/nfc.h"
#include "text/replace_string.h"

namespace wring::text {

namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;  // for compilers before C++20's deduction for aggregates

std::string replace_matches(std::string_view text, const Regex& pattern, std::string_view content,
                            RegexSearch& search) {
  std::string out;
  while (!text.empty()) {
    const std::string_view valid = text.substr(0, valid_utf8_prefix(text));
    search.for_each_part(pattern, valid, [&](std::size_t begin, std::size_t end, bool is_match) {
      out += is_match ? content : valid.substr(begin, end - begin);
    });
    text.remove_prefix(valid.size());
    if (text.empty()) break;
    out += text[0];  // a byte that is not UTF-8
    text.remove_prefix(1);
  }
  return out;
}

}  // namespace

void Normalizer::add_nfc() {
  steps_.emplace_back(Nfc{});
}

void Normalizer::add_prepend(std::string prefix) {
  steps_.emplace_back(Prepend{std::move(prefix)});
}

void Normalizer::add_replace(std::string pattern, std::string content) {
  steps_.emplace_back(ReplaceString{std::move(pattern), std::move(content)});
}

void Normalizer::add_replace(Regex pattern, std::string content) {
  steps_.emplace_back(ReplaceMatches{std::move(pattern), std::move(content)});
}

std::string Normalizer::apply(std::string_view text, RegexSearch& search) const {
  std::string out(text);
  if (out.empty()) return out;
  for (const auto& step : steps_) {
    std::visit(Overloaded{
                   [&](const Nfc&) { out = to_nfc(out); },
                   [&](const Prepend& s) { out.insert(0, s.prefix); },
                   [&](const ReplaceString& s) { out = replace_string(out, s.pattern, s.content); },
                   [&](const ReplaceMatches& s) { out = replace_matches(out, s.pattern, s.content, search); },
               },
               step);
    check_growth(text.size(), out.size());
  }
  return out;
}

std::string Normalizer::definition() const {
  std::string out;
  const auto replaced = [](std::string_view kind, std::string_view pattern, std::string_view content) {
    return fmt::format("{} {} {} {}\n", kind, pattern.size(), pattern, content);
  };
  for (const auto& step : steps_) {
    out += std::visit(
        Overloaded{
            [](const Nfc&) { return std::string("nfc\n"); },
            [](const Prepend& s) { return fmt::format("prepend {}\n", s.prefix); },
            [&](const ReplaceString& s) { return replaced("replace", s.pattern, s.content); },
            [&](const ReplaceMatches& s) { return replaced("matches", s.pattern.pattern(), s.content); },
        },
        step);
  }
  return out;
}

}  // namespace wring::text
