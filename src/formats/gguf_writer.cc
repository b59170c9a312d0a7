// GgufWriter: metadata is encoded as it is added, tensor offsets are settled by begin_data(), bytes then
// stream to the disk.
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <set>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/gguf.h"
#include "formats/gguf_metadata.h"

namespace wring::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is written in the byte order of the CPU");

constexpr std::uint64_t kAlignment = 32;
constexpr std::uint32_t kVersion = 3;
constexpr std::size_t kMaxNameBytes = 63;  // ggml keeps names in 64 bytes, the closing zero included

[[noreturn]] void gguf_bug(std::string what, std::string_view where) {
  throw Error(ErrorCode::kInternal, "writing GGUF: " + std::move(what), std::string(where));
}

template <class T>
void put(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void put_string(std::string& out, std::string_view text) {
  put<std::uint64_t>(out, text.size());
  out.append(text);
}

// Stores `value` as `kind`; false where the two do not belong together.
template <class Wide>
bool put_as(std::string& out, GgufKind kind, const Wide& value) {
  if constexpr (std::is_same_v<Wide, std::uint64_t>) {
    switch (kind) {
      case GgufKind::kU8:
        put(out, static_cast<std::uint8_t>(value));
        return true;
      case GgufKind::kU16:
        put(out, static_cast<std::uint16_t>(value));
        return true;
      case GgufKind::kU32:
        put(out, static_cast<std::uint32_t>(value));
        return true;
      case GgufKind::kU64:
        put(out, value);
        return true;
      default:
        return false;
    }
  } else if constexpr (std::is_same_v<Wide, std::int64_t>) {
    switch (kind) {
      case GgufKind::kI8:
        put(out, static_cast<std::int8_t>(value));
        return true;
      case GgufKind::kI16:
        put(out, static_cast<std::int16_t>(value));
        return true;
      case GgufKind::kI32:
        put(out, static_cast<std::int32_t>(value));
        return true;
      case GgufKind::kI64:
        put(out, value);
        return true;
      default:
        return false;
    }
  } else if constexpr (std::is_same_v<Wide, double>) {
    if (kind == GgufKind::kF32) put(out, static_cast<float>(value));
    if (kind == GgufKind::kF64) put(out, value);
    return kind == GgufKind::kF32 || kind == GgufKind::kF64;
  } else if constexpr (std::is_same_v<Wide, bool>) {
    put(out, static_cast<std::uint8_t>(value ? 1 : 0));
    return kind == GgufKind::kBool;
  } else {
    put_string(out, value);
    return kind == GgufKind::kString;
  }
}

struct EntryEncoder {
  std::string& out;
  GgufKind kind;

  template <class Wide>
  bool operator()(const Wide& value) const {
    put(out, static_cast<std::uint32_t>(kind));
    return put_as(out, kind, value);
  }
  template <class Wide>
  bool operator()(const std::vector<Wide>& values) const {
    put(out, kGgufArrayKind);
    put(out, static_cast<std::uint32_t>(kind));
    put<std::uint64_t>(out, values.size());
    for (const auto& value : values) {
      if (!put_as<Wide>(out, kind, value)) return false;
    }
    return true;
  }
};

struct DeclaredInGguf {
  std::string name;
  QuantType type;
  std::vector<std::uint64_t> shape;
  std::uint64_t offset, bytes;
};

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

struct GgufWriter::State {
  explicit State(const std::filesystem::path& target) : file(target) {}

  AtomicFile file;
  std::string pairs;  // encoded metadata
  std::set<std::string, std::less<>> keys, names;
  std::vector<DeclaredInGguf> tensors;
  std::uint64_t data_bytes = 0;  // declared so far, padding included
  bool in_data = false;
  std::size_t current = 0;    // the tensor being written
  std::uint64_t written = 0;  // of its bytes

  void add(std::string_view key, GgufKind kind, const GgufValue& value) {
    if (in_data) gguf_bug("metadata after begin_data()", key);
    if (!is_valid_utf8(key) || key.empty())
      gguf_bug("a key must be valid UTF-8 and not empty", printable(key));
    if (!keys.emplace(key).second) gguf_bug("a metadata key was given twice", key);
    put_string(pairs, key);
    if (!std::visit(EntryEncoder{pairs, kind}, value))
      gguf_bug("a value and its stored kind do not belong together", key);
  }

  void check_reread(const GgufReader& reader) const {
    if (reader.tensors().size() != tensors.size())
      gguf_bug("the file does not read back as it was written", reader.file());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const TensorInfo& read = reader.tensors()[i];
      const DeclaredInGguf& meant = tensors[i];
      if (read.name != meant.name || read.type != meant.type || read.shape != meant.shape ||
          read.data.size() != meant.bytes) {
        gguf_bug("the file does not read back as it was written", meant.name);
      }
    }
  }
};

GgufWriter::GgufWriter(const std::filesystem::path& target) : state_(std::make_unique<State>(target)) {}
GgufWriter::~GgufWriter() = default;

void GgufWriter::add_string(std::string_view key, std::string_view value) {
  if (!is_valid_utf8(value)) gguf_bug("a string must be valid UTF-8", key);
  state_->add(key, GgufKind::kString, std::string(value));
}
void GgufWriter::add_u32(std::string_view key, std::uint32_t value) {
  state_->add(key, GgufKind::kU32, std::uint64_t{value});
}
void GgufWriter::add_f32(std::string_view key, float value) {
  state_->add(key, GgufKind::kF32, double{value});
}
void GgufWriter::add_bool(std::string_view key, bool value) {
  state_->add(key, GgufKind::kBool, value);
}
void GgufWriter::add_strings(std::string_view key, std::span<const std::string> values) {
  state_->add(key, GgufKind::kString, std::vector<std::string>(values.begin(), values.end()));
}
void GgufWriter::add_i32s(std::string_view key, std::span<const std::int32_t> values) {
  state_->add(key, GgufKind::kI32, std::vector<std::int64_t>(values.begin(), values.end()));
}

void GgufWriter::add_f32s(std::string_view key, std::span<const float> values) {
  state_->add(key, GgufKind::kF32, std::vector<double>(values.begin(), values.end()));
}

void GgufWriter::add_entry(std::string_view key, const GgufEntry& entry) {
  if (key == "general.alignment" || key.starts_with("split.")) return;  // the other file's own layout
  state_->add(key, entry.kind, entry.value);
}

void GgufWriter::declare(std::string_view name, QuantType type, std::span<const std::uint64_t> shape) {
  State& s = *state_;
  if (s.in_data) gguf_bug("a tensor was declared after begin_data()", name);
  if (name.size() > kMaxNameBytes) {
    throw Error(ErrorCode::kNotSupported, "tensor name is too long for GGUF",
                fmt::format("{}, {} bytes, at most {}", name, name.size(), kMaxNameBytes));
  }
  if (name.empty() || !is_valid_utf8(name))
    gguf_bug("a tensor's name must be valid UTF-8 and not empty", printable(name));
  if (s.names.contains(name)) gguf_bug("a tensor was declared twice", name);
  const QuantTypeInfo& info = info_of(type);
  const std::uint64_t columns = shape.empty() ? 1 : shape.back();
  if (!is_gguf_type(type) || shape.size() > kMaxGgufRank || columns % info.block_size != 0) {
    gguf_bug(fmt::format("{} cannot be stored with shape {}", info.name, fmt::join(shape, " x ")), name);
  }
  std::uint64_t elements = 1;
  for (const std::uint64_t d : shape) {
    if (d == 0) gguf_bug("a tensor has a dimension of zero", name);
    elements *= d;
  }
  const std::uint64_t bytes = bytes_of(type, elements / columns, columns);
  s.names.emplace(name);
  s.tensors.push_back({std::string(name), type, {shape.begin(), shape.end()}, s.data_bytes, bytes});
  s.data_bytes += aligned(bytes);
}

void GgufWriter::begin_data() {
  State& s = *state_;
  if (s.in_data) gguf_bug("begin_data() was called twice", "");
  s.in_data = true;
  std::string header = "GGUF";
  put(header, kVersion);
  put<std::uint64_t>(header, s.tensors.size());
  put<std::uint64_t>(header, s.keys.size());
  header += s.pairs;
  for (const DeclaredInGguf& t : s.tensors) {
    put_string(header, t.name);
    put(header, static_cast<std::uint32_t>(t.shape.size()));
    for (std::size_t i = t.shape.size(); i-- > 0;) put(header, t.shape[i]);  // innermost first
    put(header, static_cast<std::uint32_t>(t.type));
    put(header, t.offset);
  }
  s.file.write(header);
  s.file.pad_to(kAlignment);
}

void GgufWriter::write(std::span<const std::byte> bytes) {
  State& s = *state_;
  if (!s.in_data) gguf_bug("bytes came before begin_data()", "");
  if (bytes.empty()) return;
  if (s.current == s.tensors.size()) gguf_bug("bytes came after the last tensor", "");
  const DeclaredInGguf& tensor = s.tensors[s.current];
  if (bytes.size() > tensor.bytes - s.written) gguf_bug("more bytes came than were declared", tensor.name);
  s.file.write(bytes);
  s.written += bytes.size();
  if (s.written == tensor.bytes) {
    s.file.pad_to(kAlignment);  // the last tensor's too: llama.cpp reads whole aligned pieces
    ++s.current;
    s.written = 0;
  }
}

void GgufWriter::commit(const std::function<void(const GgufReader&)>& check) {
  State& s = *state_;
  if (!s.in_data) gguf_bug("commit() came before begin_data()", "");
  if (s.current != s.tensors.size()) gguf_bug("a tensor's bytes are not complete", s.tensors[s.current].name);
  s.file.flush();
  {
    const GgufReader reader = GgufReader::open(s.file.temporary_path());
    s.check_reread(reader);
    if (check) check(reader);
  }
  s.file.commit();
}

}  // namespace wring::formats
