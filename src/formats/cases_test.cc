// The shared malformed and edge files, as far as the readers alone decide. Skipped where the folder is not
// beside the clone.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>

#include "base/mapped_file.h"
#include "formats/gguf.h"
#include "formats/json.h"
#include "formats/safetensors.h"
#include "formats/test_files.h"

namespace wring::formats {
namespace {

namespace fs = std::filesystem;

fs::path shared(const char* name) {
  return fs::path(WRING_SOURCE_DIR) / ".." / "shared" / name;
}

// Sound as files; what is wrong with them is for the rooms that know models to say.
const std::set<std::string> kSoundFiles = {
    "gguf_no_merges",     "gguf_vocab_short",    "gguf_eos_out_of_range",
    "gguf_shape_vs_meta", "gguf_heads_zero",     "gguf_extra_tensor",
    "gguf_q8_inf_scale",  "st_dtype_int_weight", "st_missing_tensor"};

// What these readers do where the case allows both.
const std::set<std::string> kRefusedByChoice = {"gguf_bool_7", "st_trailing"};

std::optional<std::string> fault_of(const fs::path& input) {
  try {
    if (input.extension() == ".gguf") {
      GgufReader::open(input);
    } else {
      SafetensorsReader::open(input);
    }
    return std::nullopt;
  } catch (const Error& e) {
    return e.what();
  }
}

// Copies a case; links that were stored as small text files become links again.
void copy_case(const fs::path& from, const fs::path& to) {
  fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  for (const fs::directory_entry& e : fs::recursive_directory_iterator(to)) {
    fs::permissions(e.path(), fs::perms::owner_write, fs::perm_options::add | fs::perm_options::nofollow);
    constexpr std::uintmax_t kMostLinkBytes = 40;
    if (e.is_symlink() || !e.is_regular_file() || e.path().extension() != ".safetensors" ||
        e.file_size() > kMostLinkBytes)
      continue;
    const std::string target = read_text_file(e.path(), kMostLinkBytes);
    fs::remove(e.path());
    fs::create_symlink(target, e.path());
  }
}

TEST(SharedCases, GgufAndSafetensors) {
  const fs::path cases = shared("cases");
  if (!fs::exists(cases / "cases.json")) GTEST_SKIP() << "no shared cases";
  const testing_files::TempFolder folder;
  int seen = 0;
  for (const auto& c : read_json_file(cases / "cases.json")) {
    const auto id = c.at("id").get<std::string>(), kind = c.at("kind").get<std::string>();
    if (kind != "gguf" && kind != "safetensors" && kind != "control") continue;
    ++seen;
    fs::path root = cases / id;
    if (id.starts_with("idx_symlink")) {
      root = folder.path() / id;
      copy_case(cases / id, root);
    }
    const auto outcome = c.at("outcome").get<std::string>();
    const bool refuse = !kSoundFiles.contains(id) && (outcome == "refuse" || kRefusedByChoice.contains(id));
    const std::optional<std::string> fault = fault_of(root / c.at("input").get<std::string>());
    EXPECT_EQ(fault.has_value(), refuse) << id << ": " << fault.value_or("accepted");
    if (!fault || !refuse) continue;
    for (const auto& pattern : c.at("say")) {
      EXPECT_TRUE(std::regex_search(*fault, std::regex(pattern.get<std::string>(), std::regex::icase)))
          << id << ": " << *fault;
    }
  }
  EXPECT_GE(seen, 56);
}

TEST(SharedFixtures, EveryModelFileOpens) {
  const fs::path fixtures = shared("fixtures");
  if (!fs::exists(fixtures)) GTEST_SKIP() << "no shared fixtures";
  int seen = 0;
  for (const fs::directory_entry& e : fs::recursive_directory_iterator(fixtures)) {
    if (e.path().extension() == ".gguf") {
      EXPECT_FALSE(GgufReader::open(e.path()).tensors().empty()) << e.path();
      ++seen;
    } else if (e.path().extension() == ".safetensors") {
      EXPECT_FALSE(SafetensorsReader::open(e.path()).tensors().empty()) << e.path();
      ++seen;
    }
  }
  EXPECT_GE(seen, 50);
}

}  // namespace
}  // namespace wring::formats
