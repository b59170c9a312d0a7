#include "cli/lines.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "formats/json.h"

namespace wring::cli {

void for_each_json_line(const std::string& path,
                        const std::function<void(const nlohmann::json&, const std::string&)>& f) {
  const std::string text = read_text_file(path, std::size_t{4} << 30);
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = fmt::format("{}, line {}", path, number);
    f(formats::parse_json(line, where), where);
  }
}

}  // namespace wring::cli
