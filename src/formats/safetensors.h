// safetensors, read and written: one file, or the shards that model.safetensors.index.json names. Files are
// mapped; headers are checked in full. Layout: the safetensors format description of Hugging Face
// (docs/FORMATS.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/atomic_file.h"
#include "formats/tensor_info.h"

namespace wring::formats {

class SafetensorsReader {
 public:
  /// Opens a .safetensors file, or a model folder: the index's shards if there is an index, else
  /// model.safetensors. Errors: kBadInput naming file, tensor, value and limit (header length, depth, dtype,
  /// shape, offsets, overlaps, gaps, bytes left over, shards that are missing, unreadable or lie outside the
  /// folder by name, tensors missing from their shard).
  static SafetensorsReader open(const std::filesystem::path& path);
  ~SafetensorsReader();
  SafetensorsReader(SafetensorsReader&&) noexcept;
  SafetensorsReader& operator=(SafetensorsReader&&) noexcept;

  const std::vector<TensorInfo>& tensors() const;  // sorted by name
  const TensorInfo* find(std::string_view name) const;
  std::uint64_t file_bytes() const;
  /// Things worth one warning line each (a tensor that lies in a shard which the index does not name for it).
  const std::vector<std::string>& warnings() const;

 private:
  struct State;
  explicit SafetensorsReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Writes one safetensors file; tensors are declared first, then written, in that order or by name. Wider
/// element types are declared first, so that each tensor begins at a multiple of its element's size
/// (kInternal otherwise).
class SafetensorsWriter {
 public:
  explicit SafetensorsWriter(const std::filesystem::path& target);
  ~SafetensorsWriter();
  void set_metadata(std::map<std::string, std::string> metadata);
  void declare(std::string_view name, QuantType type, std::span<const std::uint64_t> shape);
  void begin_data();
  /// As GgufWriter::write.
  void write(std::span<const std::byte> bytes);
  /// The next bytes of this tensor.
  void write(std::string_view name, std::span<const std::byte> bytes);
  /// Checks that every declared byte was written, re-reads the file with SafetensorsReader, renames.
  void commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wring::formats
