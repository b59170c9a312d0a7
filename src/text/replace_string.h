// Replacing strings in texts, for definitions that come from files of strangers: each replacement may
// multiply a text, so growth has a bound.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/error.h"

namespace wring::text {

/// `text` with every occurrence of `pattern` (not empty), from the left, as `content`.
inline std::string replace_string(std::string_view text, std::string_view pattern, std::string_view content) {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  while (true) {
    const std::size_t at = text.find(pattern);
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += content;
    text.remove_prefix(at + pattern.size());
  }
}

/// Errors: kBadInput where rules have made `after` bytes of `before`, more than any published ones do.
inline void check_growth(std::size_t before, std::size_t after) {
  constexpr std::size_t kMostGrowth = 32, kSmallText = std::size_t{64} << 10;
  if (after <= kMostGrowth * before + kSmallText) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("the tokenizer's rules make {} bytes of {}, more than {} times as many", after,
                          before, kMostGrowth));
}

}  // namespace wring::text
