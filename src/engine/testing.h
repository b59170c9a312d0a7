// What the engine's tests share: the tiny models of tests/data and their golden numbers from the reference
// implementation.
#pragma once

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/batch.h"
#include "formats/safetensors.h"

namespace wring::engine::testing {

inline std::filesystem::path data(const std::string& name) {
  return std::filesystem::path(WRING_SOURCE_DIR) / "tests" / "data" / name;
}

template <class T>
std::vector<T> read(const formats::SafetensorsReader& file, const std::string& name) {
  const formats::TensorInfo& t = *file.find(name);
  std::vector<T> values(t.data.size() / sizeof(T));
  std::memcpy(values.data(), t.data.data(), t.data.size());
  return values;
}

/// Golden ids are stored as int64.
inline std::vector<TokenId> read_ids(const formats::SafetensorsReader& file, const std::string& name) {
  const formats::TensorInfo& t = *file.find(name);
  std::vector<TokenId> ids;
  if (t.type == formats::QuantType::kI64) {
    for (const std::int64_t id : read<std::int64_t>(file, name)) ids.push_back(static_cast<TokenId>(id));
  } else {
    ids = read<TokenId>(file, name);
  }
  return ids;
}

}  // namespace wring::engine::testing
