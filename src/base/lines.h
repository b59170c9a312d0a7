// The lines of a text file that people and programs write line by line (JSONL), with the place that errors
// name.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace wring {

/// Calls f(line, "FILE line N") for each line of `text` that is not blank, without its newline.
template <class F>
void for_each_line(std::string_view text, std::string_view file, F&& f) {
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") != std::string_view::npos)
      f(line, fmt::format("{} line {}", file, number));
  }
}

}  // namespace wring
