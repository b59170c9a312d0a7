// Reads safetensors: 8 bytes of header length, a JSON header, the tensors' bytes without gaps. A file comes
// from a stranger: every number is checked against the file before it is used.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/json.h"
#include "formats/safetensors.h"

namespace wring::formats {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr std::uint64_t kMaxDimension = std::uint64_t{1} << 48;
constexpr std::size_t kMaxRank = 16;

[[noreturn]] void refuse(std::string what, std::string where, std::string todo = {}) {
  throw Error(ErrorCode::kBadInput, std::move(what), std::move(where), std::move(todo));
}

struct Region {
  std::uint64_t begin, end;  // relative to the first byte after the header
};

// The unsigned integers of an array, or nothing where it is another kind of value.
bool read_unsigned(const json& value, std::size_t most, std::vector<std::uint64_t>& out) {
  if (!value.is_array() || value.size() > most) return false;
  for (const json& item : value) {
    if (!item.is_number_unsigned()) return false;
    out.push_back(item.get<std::uint64_t>());
  }
  return true;
}

std::string shown(const json& value) {
  return value.dump().substr(0, 80);
}

Region read_entry(const json& entry, const std::string& place, TensorInfo& tensor) {
  if (!entry.is_object())
    refuse("a tensor's entry must be an object", fmt::format("{}, found {}", place, shown(entry)));
  const auto field = [&](const char* name) -> const json& {
    const auto found = entry.find(name);
    if (found == entry.end()) refuse(fmt::format("{} is missing", name), place);
    return *found;
  };
  const json& dtype = field("dtype");
  const auto type =
      dtype.is_string() ? quant_type_from_dtype(dtype.get_ref<const std::string&>()) : std::nullopt;
  if (!type) refuse("unknown dtype", fmt::format("{}, dtype = {}", place, shown(dtype)));
  tensor.type = *type;

  const json& shape = field("shape");
  if (!read_unsigned(shape, kMaxRank, tensor.shape)) {
    refuse(fmt::format("shape must be at most {} integers of 0 or more", kMaxRank),
           fmt::format("{}, shape = {}", place, shown(shape)));
  }
  std::uint64_t bytes = info_of(tensor.type).block_bytes;
  for (const std::uint64_t d : tensor.shape) {
    if (d > kMaxDimension || __builtin_mul_overflow(bytes, d, &bytes)) {
      refuse("shape is too large", fmt::format("{}, shape = {}", place, shown(shape)));
    }
  }

  const json& offsets = field("data_offsets");
  std::vector<std::uint64_t> ends;
  if (!read_unsigned(offsets, 2, ends) || ends.size() != 2) {
    refuse("data_offsets must be two integers [begin, end]",
           fmt::format("{}, data_offsets = {}", place, shown(offsets)));
  }
  if (ends[0] > ends[1]) {
    refuse("data_offsets: begin lies behind end",
           fmt::format("{}, data_offsets = {}", place, shown(offsets)));
  }
  if (ends[1] - ends[0] != bytes) {
    refuse("data_offsets disagree with shape and dtype",
           fmt::format("{}, data_offsets = {} ({} bytes), {} {} needs {} bytes", place, shown(offsets),
                       ends[1] - ends[0], name_of(tensor.type), shown(shape), bytes));
  }
  return {ends[0], ends[1]};
}

// The tensors must tile the data: no gap, no overlap, nothing left over.
void check_tiling(std::vector<std::pair<Region, const TensorInfo*>> regions, std::uint64_t data_bytes,
                  const std::string& path) {
  for (const auto& [region, tensor] : regions) {
    if (region.end > data_bytes) {
      refuse("tensor runs past the end of the file",
             fmt::format("{}, {}, end offset {}, the file has {} bytes of data", path, tensor->name,
                         region.end, data_bytes),
             "the download may be incomplete");
    }
  }
  std::sort(regions.begin(), regions.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.begin, a.first.end) < std::pair(b.first.begin, b.first.end);
  });
  std::uint64_t at = 0;
  const TensorInfo* before = nullptr;
  for (const auto& [region, tensor] : regions) {
    if (region.begin != at) {
      refuse(region.begin < at ? "tensors overlap" : "gap before a tensor",
             fmt::format("{}, {}, begin offset {}, {} ends at {}", path, tensor->name, region.begin,
                         before == nullptr ? "the header" : before->name, at));
    }
    at = region.end;
    before = tensor;
  }
  if (at != data_bytes) {
    refuse("bytes left over after the last tensor",
           fmt::format("{}, tensors end at {}, the file has {} bytes of data", path, at, data_bytes));
  }
}

void check_metadata(const json& metadata, const std::string& path) {
  if (!metadata.is_object())
    refuse("__metadata__ must be an object", fmt::format("{}, found {}", path, shown(metadata)));
  for (const auto& [key, value] : metadata.items()) {
    if (!value.is_string())
      refuse("__metadata__ values must be strings", fmt::format("{}, {} = {}", path, key, shown(value)));
  }
}

std::vector<TensorInfo> read_file(const MappedFile& file) {
  const std::string path = file.path().string();
  const std::span<const std::byte> bytes = file.bytes();
  if (bytes.size() < 8) {
    refuse(bytes.empty() ? "file is empty"
                         : "file is truncated: a safetensors file begins with 8 bytes of header length",
           fmt::format("{}, {} bytes", path, bytes.size()));
  }
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), 8);  // little-endian, as every CPU that this project builds for
  const std::uint64_t limit = std::min<std::uint64_t>(bytes.size() - 8, kMaxHeaderBytes);
  if (header_bytes < 2 || header_bytes > limit) {
    refuse(header_bytes < 2 ? "header length is too small" : "header length runs past the end of the file",
           fmt::format("{}, header length {}, limit 2 to {} (file of {} bytes)", path, header_bytes, limit,
                       bytes.size()),
           "not a safetensors file, or an incomplete download");
  }
  const std::span<const std::byte> data = bytes.subspan(8 + header_bytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 8, header_bytes);
  const json header = parse_json(text, path + ", header");
  if (!header.is_object()) refuse("header must be a JSON object", path);

  std::vector<TensorInfo> tensors;
  std::vector<Region> regions;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      check_metadata(entry, path);
      continue;
    }
    TensorInfo& tensor = tensors.emplace_back();
    tensor.name = name;
    tensor.file = file.path().filename().string();
    regions.push_back(read_entry(entry, fmt::format("{}, {}", path, name), tensor));
  }
  std::vector<std::pair<Region, const TensorInfo*>> placed;
  for (std::size_t i = 0; i < tensors.size(); ++i) placed.emplace_back(regions[i], &tensors[i]);
  check_tiling(std::move(placed), data.size(), path);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].data = data.subspan(regions[i].begin, regions[i].end - regions[i].begin);
  }
  return tensors;
}

// Names come from the index: only plain file names, so that a model folder cannot reach out of itself. The
// file may be a link: the hub's cache is built of them.
MappedFile open_shard(const fs::path& folder, const std::string& name, const fs::path& index) {
  const fs::path path = folder / name;
  std::error_code fault;
  if (!fs::exists(path, fault)) {
    const bool is_link = fs::is_symlink(path);
    refuse(
        fault ? fmt::format("shard cannot be opened: {}", fault.message()) : "shard is missing: no such file",
        is_link ? fmt::format("{} (a link to {}), named in {}", path.string(),
                              fs::read_symlink(path).string(), index.string())
                : fmt::format("{}, named in {}", path.string(), index.string()),
        "download the missing file");
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
    const std::string place = fmt::format("{}, weight_map, {} = {}", index.string(), tensor, shown(shard));
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
  std::vector<fs::path> files;
  std::vector<TensorInfo> tensors;
  std::vector<std::string> warnings;
  std::uint64_t bytes = 0;

  void open_file(MappedFile mapping, std::vector<TensorInfo>& into) {
    for (TensorInfo& t : read_file(mapping)) into.push_back(std::move(t));
    bytes += mapping.size();
    files.push_back(mapping.path());
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

const std::vector<fs::path>& SafetensorsReader::files() const {
  return state_->files;
}
std::uint64_t SafetensorsReader::file_bytes() const {
  return state_->bytes;
}
const std::vector<std::string>& SafetensorsReader::warnings() const {
  return state_->warnings;
}

}  // namespace wring::formats
