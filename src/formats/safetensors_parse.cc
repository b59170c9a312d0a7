// The header of a safetensors file. It comes from a stranger: every number is checked against the file before
// it is used. Layout: docs/FORMATS.md.
#include "formats/safetensors_parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "formats/json.h"
#include "formats/refuse.h"

namespace wring::formats {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr std::size_t kMaxSafetensorsRank = 16;

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
  if (!read_unsigned(shape, kMaxSafetensorsRank, tensor.shape)) {
    refuse(fmt::format("shape must be at most {} integers of 0 or more", kMaxSafetensorsRank),
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

}  // namespace

std::vector<TensorInfo> parse_safetensors(const MappedFile& file) {
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
  return tensors;  // sorted: a JSON object keeps its keys in order
}

}  // namespace wring::formats
