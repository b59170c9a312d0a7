#include "cli/lines.h"

#include <nlohmann/json.hpp>

#include "base/lines.h"
#include "base/mapped_file.h"
#include "formats/json.h"

namespace wring::cli {

void for_each_json_line(const std::string& path,
                        const std::function<void(const nlohmann::json&, const std::string&)>& f) {
  const std::string text = read_text_file(path, std::size_t{4} << 30);
  for_each_line(text, path, [&](std::string_view line, const std::string& where) {
    f(formats::parse_json(line, where), where);
  });
}

}  // namespace wring::cli
