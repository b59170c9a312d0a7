// SafetensorsReader: one file, or the shards that a folder's index names. Every tensor of every shard is
// accounted for.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/json.h"
#include "formats/refuse.h"
#include "formats/safetensors.h"
#include "formats/safetensors_parse.h"

namespace wring::formats {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Names come from the index: only plain file names, so that a model folder cannot reach out of itself. The
// file may be a link: the hub's cache is built of them.
MappedFile open_shard(const fs::path& folder, const std::string& name, const fs::path& index) {
  const fs::path path = folder / name;
  std::error_code fault;
  if (!fs::exists(path, fault)) {
    std::error_code not_a_link;
    const fs::path target = fs::read_symlink(path, not_a_link);
    const std::string link = not_a_link ? "" : fmt::format(" (a link to {})", target.string());
    refuse(
        fault ? fmt::format("shard cannot be opened: {}", fault.message()) : "shard is missing: no such file",
        fmt::format("{}{}, named in {}", path.string(), link, index.string()), "download the missing file");
  }
  return MappedFile(path);
}

std::map<std::string, std::string> read_weight_map(const fs::path& index) {
  const json root = read_json_file(index);
  const auto found = root.is_object() ? root.find("weight_map") : root.end();
  if (!root.is_object() || found == root.end() || !found->is_object() || found->empty()) {
    refuse("weight_map must be an object that names a shard for each tensor", index.string());
  }
  std::map<std::string, std::string> map;
  for (const auto& [tensor, shard] : found->items()) {
    const std::string place = fmt::format("{}, weight_map, {} = {}", index.string(), tensor, shard.dump());
    if (!shard.is_string()) refuse("weight_map values must be strings", place);
    const auto& name = shard.get_ref<const std::string&>();
    if (name.empty() || name == "." || name == ".." ||
        name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
      refuse("weight_map values must be plain file names: a path outside of the folder is not allowed",
             place);
    }
    map.emplace(tensor, name);
  }
  return map;
}

}  // namespace

struct SafetensorsReader::State {
  std::vector<MappedFile> mappings;
  std::vector<TensorInfo> tensors;
  std::vector<std::string> warnings;
  std::uint64_t bytes = 0;

  void open_file(MappedFile mapping, std::vector<TensorInfo>& into) {
    for (TensorInfo& t : parse_safetensors(mapping)) into.push_back(std::move(t));
    bytes += mapping.size();
    mappings.push_back(std::move(mapping));
  }

  void open_sharded(const fs::path& folder, const fs::path& index) {
    const std::map<std::string, std::string> weight_map = read_weight_map(index);
    std::set<std::string> shards;
    for (const auto& [tensor, shard] : weight_map) shards.insert(shard);
    std::vector<TensorInfo> all;
    for (const std::string& shard : shards) open_file(open_shard(folder, shard, index), all);

    std::set<std::string> kept;
    for (TensorInfo& tensor : all) {
      const auto home = weight_map.find(tensor.name);
      if (home != weight_map.end() && home->second != tensor.file) {
        warnings.push_back(fmt::format("{} lies in {} too; the one in {} is used, as the index says",
                                       tensor.name, tensor.file, home->second));
        continue;
      }
      if (home == weight_map.end()) {
        warnings.push_back(
            fmt::format("{} lies in {}, but the index does not list it", tensor.name, tensor.file));
        if (kept.contains(tensor.name))
          refuse("a tensor that the index does not list lies in two shards",
                 fmt::format("{}, {}", index.string(), tensor.name));
      }
      kept.insert(tensor.name);
      tensors.push_back(std::move(tensor));
    }
    for (const auto& [tensor, shard] : weight_map) {
      if (!kept.contains(tensor)) {
        refuse("the shard lacks a tensor that the index places there",
               fmt::format("{}, {} in {}", index.string(), tensor, shard));
      }
    }
  }
};

SafetensorsReader SafetensorsReader::open(const fs::path& path) {
  auto state = std::make_unique<State>();
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    state->open_file(MappedFile(path), state->tensors);
  } else {
    const fs::path index = path / "model.safetensors.index.json", single = path / "model.safetensors";
    if (fs::exists(fs::symlink_status(index, ignored))) {
      state->open_sharded(path, index);
    } else if (fs::exists(fs::symlink_status(single, ignored))) {
      state->open_file(MappedFile(single), state->tensors);
    } else {
      refuse("no weights found: neither model.safetensors nor model.safetensors.index.json", path.string());
    }
  }
  std::sort(state->tensors.begin(), state->tensors.end(),
            [](const TensorInfo& a, const TensorInfo& b) { return a.name < b.name; });
  return SafetensorsReader(std::move(state));
}

SafetensorsReader::SafetensorsReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
SafetensorsReader::~SafetensorsReader() = default;
SafetensorsReader::SafetensorsReader(SafetensorsReader&&) noexcept = default;
SafetensorsReader& SafetensorsReader::operator=(SafetensorsReader&&) noexcept = default;

const std::vector<TensorInfo>& SafetensorsReader::tensors() const {
  return state_->tensors;
}

const TensorInfo* SafetensorsReader::find(std::string_view name) const {
  const auto at =
      std::lower_bound(state_->tensors.begin(), state_->tensors.end(), name,
                       [](const TensorInfo& t, std::string_view wanted) { return t.name < wanted; });
  return at != state_->tensors.end() && at->name == name ? &*at : nullptr;
}

std::uint64_t SafetensorsReader::file_bytes() const {
  return state_->bytes;
}
const std::vector<std::string>& SafetensorsReader::warnings() const {
  return state_->warnings;
}

}  // namespace wring::formats
