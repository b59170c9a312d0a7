// What the tokenizer tests share: the small definitions under tests/data/tokenizer, and folders with changed
// ones.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace wring::text::testing {

inline std::filesystem::path data(const std::string& name) {
  return std::filesystem::path(WRING_SOURCE_DIR) / "tests/data/tokenizer" / name;
}

inline nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in);
}

/// The lines {text, ids, decoded, ids_plain?} of a golden file.
inline std::vector<nlohmann::json> read_lines(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

/// A folder with this tokenizer.json and tokenizer_config.json (none if null), removed at the end of the
/// scope.
class Folder {
 public:
  explicit Folder(const nlohmann::json& tokenizer, const nlohmann::json& config = nullptr) {
    std::string name = (std::filesystem::temp_directory_path() / "wring_tokenizer_XXXXXX").string();
    path_ = mkdtemp(name.data());
    std::ofstream(path_ / "tokenizer.json") << tokenizer;
    if (!config.is_null()) std::ofstream(path_ / "tokenizer_config.json") << config;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace wring::text::testing
