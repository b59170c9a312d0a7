// JSONL files from users: one JSON value a line, blank lines skipped, errors with file and line.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace wring::cli {

/// Calls f(value, "FILE line N") for each line. Errors: kBadInput for a line that is not JSON.
void for_each_json_line(const std::string& path,
                        const std::function<void(const nlohmann::json&, const std::string&)>& f);

}  // namespace wring::cli
