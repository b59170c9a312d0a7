// SafetensorsWriter: the header is complete before the first byte of data, so tensors are declared first.
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/safetensors.h"

namespace wring::formats {
namespace {

static_assert(std::endian::native == std::endian::little,
              "safetensors is written in the byte order of the CPU");

[[noreturn]] void safetensors_bug(std::string what, std::string_view where) {
  throw Error(ErrorCode::kInternal, "writing safetensors: " + std::move(what), std::string(where));
}

struct DeclaredInSafetensors {
  std::string name;
  QuantType type;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin, bytes;
  std::uint64_t written = 0;
};

}  // namespace

struct SafetensorsWriter::State {
  explicit State(const std::filesystem::path& target) : file(target) {}

  AtomicFile file;
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::size_t, std::less<>> by_name;  // into tensors
  std::vector<DeclaredInSafetensors> tensors;
  std::uint64_t data_bytes = 0;
  std::uint64_t data_begin = 0;  // in the file
  bool in_data = false;
  std::size_t current = 0;  // the first tensor that is not complete

  void skip_complete() {  // also tensors that have no elements
    while (current < tensors.size() && tensors[current].written == tensors[current].bytes) ++current;
  }

  void append(DeclaredInSafetensors& tensor, std::span<const std::byte> bytes) {
    if (bytes.size() > tensor.bytes - tensor.written)
      safetensors_bug("more bytes came than were declared", tensor.name);
    file.write_at(data_begin + tensor.begin + tensor.written, bytes);
    tensor.written += bytes.size();
    skip_complete();
  }

  void check_reread() const {
    const SafetensorsReader reader = SafetensorsReader::open(file.temporary_path());
    if (reader.tensors().size() != tensors.size())
      safetensors_bug("the file does not read back as it was written", "");
    for (const DeclaredInSafetensors& meant : tensors) {
      const TensorInfo* read = reader.find(meant.name);
      if (read == nullptr || read->type != meant.type || read->shape != meant.shape ||
          read->data.size() != meant.bytes) {
        safetensors_bug("the file does not read back as it was written", meant.name);
      }
    }
  }
};

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& target)
    : state_(std::make_unique<State>(target)) {}
SafetensorsWriter::~SafetensorsWriter() = default;

void SafetensorsWriter::set_metadata(std::map<std::string, std::string> metadata) {
  for (const auto& [key, value] : metadata) {
    if (!is_valid_utf8(key) || !is_valid_utf8(value))
      safetensors_bug("metadata must be valid UTF-8", printable(key));
  }
  state_->metadata = std::move(metadata);
}

void SafetensorsWriter::declare(std::string_view name, QuantType type, std::span<const std::uint64_t> shape) {
  State& s = *state_;
  if (s.in_data) safetensors_bug("a tensor was declared after begin_data()", name);
  if (!is_valid_utf8(name) || name == "__metadata__") safetensors_bug("not a tensor's name", printable(name));
  if (s.by_name.contains(name)) safetensors_bug("a tensor was declared twice", name);
  const QuantTypeInfo& info = info_of(type);
  if (info.block_size != 1) safetensors_bug(fmt::format("{} is not a safetensors type", info.name), name);
  // Readers view the data in place, so a tensor must begin at a multiple of its element's size.
  if (s.data_bytes % info.block_bytes != 0) safetensors_bug("declare tensors of wider types first", name);
  std::uint64_t bytes = info.block_bytes;
  for (const std::uint64_t d : shape) bytes *= d;
  s.by_name.emplace(name, s.tensors.size());
  s.tensors.push_back({std::string(name), type, {shape.begin(), shape.end()}, s.data_bytes, bytes});
  s.data_bytes += bytes;
}

void SafetensorsWriter::begin_data() {
  State& s = *state_;
  if (s.in_data) safetensors_bug("begin_data() was called twice", "");
  s.in_data = true;
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!s.metadata.empty()) header["__metadata__"] = s.metadata;
  for (const DeclaredInSafetensors& t : s.tensors) {
    header[t.name] = {
        {"dtype", name_of(t.type)}, {"shape", t.shape}, {"data_offsets", {t.begin, t.begin + t.bytes}}};
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // so that the data begins aligned
  const std::uint64_t length = text.size();
  s.file.write(std::as_bytes(std::span(&length, 1)));
  s.file.write(text);
  s.data_begin = s.file.position();
  s.skip_complete();
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  State& s = *state_;
  if (!s.in_data) safetensors_bug("bytes came before begin_data()", "");
  if (bytes.empty()) return;
  if (s.current == s.tensors.size()) safetensors_bug("bytes came after the last tensor", "");
  s.append(s.tensors[s.current], bytes);
}

void SafetensorsWriter::write(std::string_view name, std::span<const std::byte> bytes) {
  State& s = *state_;
  if (!s.in_data) safetensors_bug("bytes came before begin_data()", name);
  const auto found = s.by_name.find(name);
  if (found == s.by_name.end()) safetensors_bug("the tensor was not declared", name);
  s.append(s.tensors[found->second], bytes);
}

void SafetensorsWriter::commit() {
  State& s = *state_;
  if (!s.in_data) safetensors_bug("commit() came before begin_data()", "");
  if (s.current != s.tensors.size())
    safetensors_bug("a tensor's bytes are not complete", s.tensors[s.current].name);
  s.file.flush();
  s.check_reread();
  s.file.commit();
}

}  // namespace wring::formats
