// GGUF v2 and v3, read and written. The file is mapped; metadata is checked and copied, tensor bytes are not.
// A model split over several files (name-00001-of-00003.gguf) opens through any of its parts. Layout:
// docs/FORMATS.md, after the GGUF specification of the ggml project.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/atomic_file.h"
#include "formats/tensor_info.h"

namespace wring::formats {

/// How a metadata value is stored; the numbers are those in the file. Arrays are known by their elements'
/// kind.
enum class GgufKind : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

/// A metadata value. Integers are widened, floats are doubles (float32 values exactly), arrays hold one kind.
using GgufValue = std::variant<bool, std::uint64_t, std::int64_t, double, std::string, std::vector<bool>,
                               std::vector<std::uint64_t>, std::vector<std::int64_t>, std::vector<double>,
                               std::vector<std::string>>;

/// A value and how it was stored (an array: its elements), so that a copy is stored the same way.
struct GgufEntry {
  GgufKind kind = GgufKind::kU32;
  GgufValue value;
};

/// What tokenizer.ggml.token_type says of a token: llama.cpp's enum llama_token_type.
namespace token_type {
inline constexpr std::int32_t kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5,
                              kByte = 6;
}

using GgufMetadata = std::map<std::string, GgufEntry, std::less<>>;

/// The value in one line for people: 2048, "llama", ["a", "b", … 49152 in all]. Long strings are cut after 80
/// bytes.
std::string to_text(const GgufEntry& entry);

class GgufReader {
 public:
  /// Opens and checks everything but the weights themselves: magic, version, counts and sizes against the
  /// file, UTF-8 of keys, duplicates, alignment, types, overlaps, split parts. Errors: kBadInput naming file,
  /// key or tensor, value and limit.
  static GgufReader open(const std::filesystem::path& path);
  ~GgufReader();
  GgufReader(GgufReader&&) noexcept;
  GgufReader& operator=(GgufReader&&) noexcept;

  /// In file order, parts one after the other.
  const std::vector<TensorInfo>& tensors() const;
  const TensorInfo* find(std::string_view name) const;

  const GgufMetadata& metadata() const;  // of a split file: the first part's
  bool has(std::string_view key) const;

  // Typed access. Without a fallback a missing key is kBadInput; a value of another kind, or an integer
  // outside [low, high], always is; the message names file, key, value and limit.
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high) const;
  std::int64_t integer_or(std::string_view key, std::int64_t fallback, std::int64_t low,
                          std::int64_t high) const;
  double number(std::string_view key) const;  // any finite number
  double number_or(std::string_view key, double fallback) const;
  bool boolean_or(std::string_view key, bool fallback) const;
  const std::string& string(std::string_view key) const;
  std::string string_or(std::string_view key, std::string_view fallback) const;
  const std::vector<std::string>& strings(std::string_view key) const;  // array of strings
  std::vector<std::int64_t> integers(std::string_view key) const;       // array of any integer kind
  const std::vector<double>& numbers(std::string_view key) const;       // array of floats, all finite

  /// "m.gguf", for messages.
  const std::string& file() const;
  std::uint64_t file_bytes() const;  // all parts

 private:
  struct State;
  explicit GgufReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Writes one GGUF v3 file: first everything that describes it, then each tensor's bytes in the order
/// declared.
class GgufWriter {
 public:
  explicit GgufWriter(const std::filesystem::path& target);
  ~GgufWriter();

  // Metadata, in the order given. A key may be given once (kInternal otherwise).
  void add_string(std::string_view key, std::string_view value);
  void add_u32(std::string_view key, std::uint32_t value);
  void add_f32(std::string_view key, float value);
  void add_bool(std::string_view key, bool value);
  void add_strings(std::string_view key, std::span<const std::string> values);
  void add_i32s(std::string_view key, std::span<const std::int32_t> values);
  void add_f32s(std::string_view key, std::span<const float> values);
  /// Copies a value read from another file, stored as it was there. Keys about that file's own layout
  /// (general.alignment, split.*) are left out.
  void add_entry(std::string_view key, const GgufEntry& entry);

  /// Declares a tensor of `shape` (outermost first). Errors: kNotSupported for a name of more than 63 bytes,
  /// llama.cpp's limit; kInternal for a shape that the type cannot have.
  void declare(std::string_view name, QuantType type, std::span<const std::uint64_t> shape);

  /// Writes header and tensor table; declarations end here.
  void begin_data();

  /// Appends the whole of the next declared tensor's bytes, in pieces of any size; begin the next by calling
  /// it again once the size is full. Errors: kInternal if more bytes come than were declared, kIo from the
  /// disk.
  void write(std::span<const std::byte> bytes);

  /// Checks that every declared byte was written, re-reads the file with GgufReader, runs `check` on it if
  /// given, renames.
  void commit(const std::function<void(const GgufReader&)>& check = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wring::formats
