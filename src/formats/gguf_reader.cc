// GgufReader: the parts of a split model put together, and metadata asked for by key and kind. What a single
// file may hold is checked in gguf_parse.cc.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/error.h"
#include "formats/gguf.h"
#include "formats/gguf_metadata.h"
#include "formats/gguf_parse.h"
#include "formats/refuse.h"

namespace wring::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxParts = 1000;  // a 1 TB model in parts of 1 GB

std::string part_name(std::string_view stem, std::int64_t number, std::int64_t count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", stem, number, count);
}

}  // namespace

struct GgufReader::State {
  fs::path path;
  std::string file;
  std::vector<MappedFile> mappings;
  GgufMetadata metadata;
  std::vector<TensorInfo> tensors;
  std::unordered_map<std::string_view, std::size_t> by_name;
  std::uint64_t bytes = 0;

  [[noreturn]] void wrong(std::string_view key, std::string_view expected) const {
    refuse_value(path.string(), key, metadata.find(key)->second, expected);
  }

  const GgufValue* find(std::string_view key) const {
    const auto found = metadata.find(key);
    return found == metadata.end() ? nullptr : &found->second.value;
  }

  const GgufValue& require(std::string_view key) const {
    const GgufValue* value = find(key);
    if (value == nullptr) refuse(fmt::format("metadata key {} is missing", key), path.string());
    return *value;
  }

  template <class T>
  const T& as(std::string_view key, std::string_view expected) const {
    const T* value = std::get_if<T>(&require(key));
    if (value == nullptr) wrong(key, expected);
    return *value;
  }

  void add(MappedFile mapping, GgufPart part) {
    bytes += mapping.size();
    mappings.push_back(std::move(mapping));
    std::move(part.tensors.begin(), part.tensors.end(), std::back_inserter(tensors));
  }

  // "m-00002-of-00003.gguf" is part 1 (from 0) of 3; the others lie beside it. `first` is the metadata of the
  // part at `path`.
  void open_parts(const GgufMetadata& first, std::int64_t count) {
    const std::int64_t mine = metadata_integer(first, path.string(), "split.no", 0, count - 1);
    const std::string suffix = part_name("", mine + 1, count);
    const bool named = file.size() > suffix.size() && file.ends_with(suffix);
    const std::string stem = named ? file.substr(0, file.size() - suffix.size()) : path.stem().string();
    const auto path_of = [&](std::int64_t i) {
      return i == mine ? path : path.parent_path() / part_name(stem, i + 1, count);
    };

    std::vector<std::string> missing;
    for (std::int64_t i = 0; i < count; ++i) {
      std::error_code ignored;
      if (!fs::exists(path_of(i), ignored)) missing.push_back(path_of(i).filename().string());
    }
    if (!missing.empty()) {
      refuse("parts of a split model are missing",
             fmt::format("{}, split.count = {}, missing: {}", path.string(), count, fmt::join(missing, ", ")),
             "put all parts into one folder under their own names");
    }

    for (std::int64_t i = 0; i < count; ++i) {
      MappedFile mapping(path_of(i));
      const std::string name = mapping.path().string();
      GgufPart part = parse_gguf(mapping);
      metadata_integer(part.metadata, name, "split.count", count, count);
      metadata_integer(part.metadata, name, "split.no", i, i);
      if (i == 0) metadata = std::move(part.metadata);
      add(std::move(mapping), std::move(part));
    }
    if (!metadata.contains("split.tensors.count")) return;
    const auto found = static_cast<std::int64_t>(tensors.size());
    if (metadata_integer(metadata, path.string(), "split.tensors.count", 0, INT32_MAX) != found) {
      refuse("the parts do not hold the number of tensors that they should",
             fmt::format("{}, split.tensors.count = {}, found {}", path.string(),
                         to_text(metadata.find("split.tensors.count")->second), found));
    }
  }

  void index_names() {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const auto [at, is_new] = by_name.emplace(tensors[i].name, i);
      if (!is_new) {
        refuse("duplicate tensor",
               fmt::format("{} in {} and in {}", tensors[i].name, tensors[at->second].file, tensors[i].file));
      }
    }
  }
};

GgufReader GgufReader::open(const fs::path& path) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->file = path.filename().string();
  MappedFile mapping(path);
  GgufPart part = parse_gguf(mapping);
  const std::int64_t count = part.metadata.contains("split.count")
                                 ? metadata_integer(part.metadata, path.string(), "split.count", 0, kMaxParts)
                                 : 1;
  if (count > 1) {
    state->open_parts(part.metadata, count);
  } else {
    state->metadata = std::move(part.metadata);
    state->add(std::move(mapping), std::move(part));
  }
  state->index_names();
  return GgufReader(std::move(state));
}

GgufReader::GgufReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
GgufReader::~GgufReader() = default;
GgufReader::GgufReader(GgufReader&&) noexcept = default;
GgufReader& GgufReader::operator=(GgufReader&&) noexcept = default;

const std::vector<TensorInfo>& GgufReader::tensors() const {
  return state_->tensors;
}

const TensorInfo* GgufReader::find(std::string_view name) const {
  const auto found = state_->by_name.find(name);
  return found == state_->by_name.end() ? nullptr : &state_->tensors[found->second];
}

const GgufMetadata& GgufReader::metadata() const {
  return state_->metadata;
}
bool GgufReader::has(std::string_view key) const {
  return state_->find(key) != nullptr;
}

std::int64_t GgufReader::integer(std::string_view key, std::int64_t low, std::int64_t high) const {
  return metadata_integer(state_->metadata, state_->path.string(), key, low, high);
}

std::int64_t GgufReader::integer_or(std::string_view key, std::int64_t fallback, std::int64_t low,
                                    std::int64_t high) const {
  return has(key) ? integer(key, low, high) : fallback;
}

double GgufReader::number(std::string_view key) const {
  const GgufValue& value = state_->require(key);
  if (const auto* d = std::get_if<double>(&value); d != nullptr && std::isfinite(*d)) return *d;
  if (const auto* u = std::get_if<std::uint64_t>(&value)) return static_cast<double>(*u);
  if (const auto* i = std::get_if<std::int64_t>(&value)) return static_cast<double>(*i);
  state_->wrong(key, "a finite number");
}

double GgufReader::number_or(std::string_view key, double fallback) const {
  return has(key) ? number(key) : fallback;
}

bool GgufReader::boolean_or(std::string_view key, bool fallback) const {
  return has(key) ? state_->as<bool>(key, "a boolean") : fallback;
}

const std::string& GgufReader::string(std::string_view key) const {
  return state_->as<std::string>(key, "a string");
}

std::string GgufReader::string_or(std::string_view key, std::string_view fallback) const {
  return has(key) ? string(key) : std::string(fallback);
}

const std::vector<std::string>& GgufReader::strings(std::string_view key) const {
  return state_->as<std::vector<std::string>>(key, "an array of strings");
}

std::vector<std::int64_t> GgufReader::integers(std::string_view key) const {
  const GgufValue& value = state_->require(key);
  if (const auto* i = std::get_if<std::vector<std::int64_t>>(&value)) return *i;
  const auto& u = state_->as<std::vector<std::uint64_t>>(key, "an array of integers");
  std::vector<std::int64_t> out;
  for (const std::uint64_t v : u) {
    if (v > static_cast<std::uint64_t>(INT64_MAX)) state_->wrong(key, "an array of integers below 2^63");
    out.push_back(static_cast<std::int64_t>(v));
  }
  return out;
}

const std::vector<double>& GgufReader::numbers(std::string_view key) const {
  const auto& values = state_->as<std::vector<double>>(key, "an array of numbers");
  if (!std::ranges::all_of(values, [](double v) { return std::isfinite(v); })) {
    state_->wrong(key, "an array of finite numbers");
  }
  return values;
}

const std::string& GgufReader::file() const {
  return state_->file;
}
std::uint64_t GgufReader::file_bytes() const {
  return state_->bytes;
}

}  // namespace wring::formats
