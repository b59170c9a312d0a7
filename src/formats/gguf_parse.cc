// GGUF versions 2 and 3, little-endian: magic, version, counts; key-value pairs; tensor table; data from the
// next multiple of the alignment on. After the GGUF specification of the ggml project; drawn in
// docs/FORMATS.md.
#include "formats/gguf_parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/gguf_metadata.h"
#include "formats/refuse.h"

namespace wring::formats {
namespace {

constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kMaxAlignment = 65536;
constexpr std::uint64_t kMaxKeyBytes = 65535;                     // the specification's limit
constexpr std::uint64_t kMaxArrayItems = std::uint64_t{1} << 24;  // 60 times the largest vocabulary known
constexpr std::uint64_t kLeastPairBytes = 8 + 1 + 4 + 1;          // key length, key, kind, value
constexpr std::uint64_t kLeastTensorBytes = 8 + 1 + 4 + 4 + 8;    // name length, name, rank, type, offset

// Takes bytes off the front of the file; whoever would read past its end gets an error that says what was
// being read.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, std::string path) : bytes_(bytes), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::uint64_t position() const { return at_; }
  std::uint64_t left() const { return bytes_.size() - at_; }

  /// What is being read, for messages: "tokenizer.ggml.tokens".
  void set_subject(std::string subject) { subject_ = std::move(subject); }
  std::string place() const { return fmt::format("{}, {}, byte offset {}", path_, subject_, at_); }

  void require(std::uint64_t count, std::uint64_t item_bytes) const {
    if (count <= left() / item_bytes) return;
    refuse("file is truncated: reading goes past its end",
           fmt::format("{}, {} x {} bytes needed, {} left of {}", place(), count, item_bytes, left(),
                       bytes_.size()),
           "the download may be incomplete");
  }

  template <class T>
  T take() {
    require(1, sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  std::string take_string() {
    const auto length = take<std::uint64_t>();
    require(length, 1);
    std::string text(reinterpret_cast<const char*>(bytes_.data() + at_), length);
    at_ += length;
    return text;
  }

 private:
  std::span<const std::byte> bytes_;
  std::string path_, subject_ = "header";
  std::uint64_t at_ = 0;
};

bool take_bool(Cursor& cursor) {
  const std::string place = cursor.place();
  const auto value = cursor.take<std::uint8_t>();
  if (value > 1) refuse("a boolean must be stored as 0 or 1", fmt::format("{}, value {}", place, value));
  return value == 1;
}

template <class Wide, class Take>
std::vector<Wide> take_array(std::uint64_t count, Take&& take) {
  std::vector<Wide> values;
  values.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) values.push_back(static_cast<Wide>(take()));
  return values;
}

// Reads one scalar, or `count` of them into an array. The caller has checked that they fit into the file.
template <class Stored, class Wide>
GgufValue take_numbers(Cursor& cursor, bool is_array, std::uint64_t count) {
  if (!is_array) return static_cast<Wide>(cursor.take<Stored>());
  cursor.require(count, sizeof(Stored));
  return take_array<Wide>(count, [&] { return cursor.take<Stored>(); });
}

GgufValue take_strings(Cursor& cursor, bool is_array, std::uint64_t count) {
  if (is_array) {  // vocabularies: any bytes
    cursor.require(count, sizeof(std::uint64_t));
    return take_array<std::string>(count, [&] { return cursor.take_string(); });
  }
  const std::string place = cursor.place();
  std::string text = cursor.take_string();
  if (!is_valid_utf8(text))
    refuse("string is not valid UTF-8", fmt::format("{}, value {}", place, printable(text.substr(0, 80))));
  return text;
}

GgufValue take_bools(Cursor& cursor, bool is_array, std::uint64_t count) {
  if (!is_array) return take_bool(cursor);
  cursor.require(count, 1);
  return take_array<bool>(count, [&] { return take_bool(cursor); });
}

GgufEntry take_entry(Cursor& cursor) {
  const std::string place = cursor.place();
  auto stored_kind = cursor.take<std::uint32_t>();
  const bool is_array = stored_kind == kGgufArrayKind;
  std::uint64_t count = 1;
  if (is_array) {
    stored_kind = cursor.take<std::uint32_t>();
    if (stored_kind == kGgufArrayKind) refuse("arrays of arrays (nested arrays) are not supported", place);
    count = cursor.take<std::uint64_t>();
    if (count > kMaxArrayItems) {
      cursor.require(count, 1);
      refuse("array is too long", fmt::format("{}, {} items, at most {}", place, count, kMaxArrayItems));
    }
  }
  const auto kind = static_cast<GgufKind>(stored_kind);
  switch (kind) {
    case GgufKind::kU8:
      return {kind, take_numbers<std::uint8_t, std::uint64_t>(cursor, is_array, count)};
    case GgufKind::kI8:
      return {kind, take_numbers<std::int8_t, std::int64_t>(cursor, is_array, count)};
    case GgufKind::kU16:
      return {kind, take_numbers<std::uint16_t, std::uint64_t>(cursor, is_array, count)};
    case GgufKind::kI16:
      return {kind, take_numbers<std::int16_t, std::int64_t>(cursor, is_array, count)};
    case GgufKind::kU32:
      return {kind, take_numbers<std::uint32_t, std::uint64_t>(cursor, is_array, count)};
    case GgufKind::kI32:
      return {kind, take_numbers<std::int32_t, std::int64_t>(cursor, is_array, count)};
    case GgufKind::kU64:
      return {kind, take_numbers<std::uint64_t, std::uint64_t>(cursor, is_array, count)};
    case GgufKind::kI64:
      return {kind, take_numbers<std::int64_t, std::int64_t>(cursor, is_array, count)};
    case GgufKind::kF32:
      return {kind, take_numbers<float, double>(cursor, is_array, count)};
    case GgufKind::kF64:
      return {kind, take_numbers<double, double>(cursor, is_array, count)};
    case GgufKind::kBool:
      return {kind, take_bools(cursor, is_array, count)};
    case GgufKind::kString:
      return {kind, take_strings(cursor, is_array, count)};
  }
  refuse("unknown kind of metadata value", fmt::format("{}, kind {}, known are 0 to 12", place, stored_kind));
}

GgufMetadata take_metadata(Cursor& cursor, std::uint64_t count) {
  GgufMetadata metadata;
  for (std::uint64_t i = 0; i < count; ++i) {
    cursor.set_subject(fmt::format("metadata key {} of {}", i + 1, count));
    const std::string place = cursor.place();
    std::string key = cursor.take_string();
    if (key.empty() || key.size() > kMaxKeyBytes || !is_valid_utf8(key)) {
      refuse(fmt::format("a metadata key must be 1 to {} bytes of valid UTF-8", kMaxKeyBytes),
             fmt::format("{}, key \"{}\", {} bytes", place, printable(key.substr(0, 80)), key.size()));
    }
    cursor.set_subject(key);
    GgufEntry entry = take_entry(cursor);
    if (!metadata.try_emplace(key, std::move(entry)).second)
      refuse("duplicate metadata key", fmt::format("{}, {}", cursor.path(), key));
  }
  return metadata;
}

std::uint64_t alignment_of(const GgufMetadata& metadata, const std::string& path) {
  const auto found = metadata.find("general.alignment");
  if (found == metadata.end()) return kDefaultAlignment;
  const auto* value = std::get_if<std::uint64_t>(&found->second.value);
  if (value == nullptr || !std::has_single_bit(*value) || *value < 8 || *value > kMaxAlignment) {
    refuse(fmt::format("alignment must be a power of two from 8 to {}", kMaxAlignment),
           fmt::format("{}, general.alignment = {}", path, to_text(found->second)));
  }
  return *value;
}

struct TableRow {
  TensorInfo tensor;
  std::uint64_t offset, bytes;  // from the start of the data
};

TableRow take_row(Cursor& cursor, std::uint64_t alignment) {
  TableRow row;
  row.tensor.name = cursor.take_string();
  const std::string& name = row.tensor.name;
  const std::string place = fmt::format("{}, {}", cursor.path(), printable(name.substr(0, 200)));
  if (name.empty() || name.size() > kMaxKeyBytes || !is_valid_utf8(name))
    refuse("a tensor's name must be valid UTF-8 and not empty", place);
  cursor.set_subject(name);

  const auto rank = cursor.take<std::uint32_t>();
  if (rank > kMaxGgufRank)
    refuse("tensor has too many dimensions", fmt::format("{}, {}, at most {}", place, rank, kMaxGgufRank));
  for (std::uint32_t i = 0; i < rank; ++i) row.tensor.shape.push_back(cursor.take<std::uint64_t>());
  std::reverse(row.tensor.shape.begin(), row.tensor.shape.end());  // the file has the innermost first

  const auto id = cursor.take<std::uint32_t>();
  const std::optional<QuantType> type = quant_type_from_gguf_id(id);
  if (!type) {
    const bool withdrawn = id == 4 || id == 5 || (id >= 31 && id <= 33) || (id >= 36 && id <= 38);
    refuse(withdrawn ? "tensor type was withdrawn and is no longer supported" : "unknown tensor type",
           fmt::format("{}, type id {}", place, id));
  }
  row.tensor.type = *type;

  const QuantTypeInfo& info = info_of(*type);
  std::uint64_t elements = 1;
  for (const std::uint64_t d : row.tensor.shape) {
    if (d == 0 || d > kMaxDimension || __builtin_mul_overflow(elements, d, &elements) ||
        elements > UINT64_MAX / info.block_bytes) {
      refuse(d == 0 ? "tensor has a dimension of zero" : "tensor dimensions are too large",
             fmt::format("{}, shape {}", place, fmt::join(row.tensor.shape, " x ")));
    }
  }
  if (row.tensor.columns() % info.block_size != 0) {
    refuse("row length is not a whole number of blocks",
           fmt::format("{}, {} columns, {} has blocks of {}", place, row.tensor.columns(), info.name,
                       info.block_size));
  }
  row.bytes = bytes_of(*type, row.tensor.rows(), row.tensor.columns());

  row.offset = cursor.take<std::uint64_t>();
  if (row.offset % alignment != 0) {
    refuse("tensor offset is not a multiple of the alignment",
           fmt::format("{}, offset {}, alignment {}", place, row.offset, alignment));
  }
  return row;
}

// Each tensor lies within the data and no two share bytes; bytes between them are padding.
void check_regions(const std::vector<TableRow>& rows, std::uint64_t data_start, std::uint64_t data_bytes,
                   const std::string& path) {
  std::vector<const TableRow*> order;
  for (const TableRow& row : rows) {
    if (row.offset > data_bytes || row.bytes > data_bytes - row.offset) {
      refuse("file is truncated: tensor runs past the end of the file",
             fmt::format("{}, {}, offset {} + {} bytes, the file has {} bytes of data from byte offset {} on",
                         path, row.tensor.name, row.offset, row.bytes, data_bytes, data_start),
             "the download may be incomplete");
    }
    order.push_back(&row);
  }
  std::sort(order.begin(), order.end(),
            [](const TableRow* a, const TableRow* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const TableRow &a = *order[i - 1], &b = *order[i];
    if (b.offset - a.offset < a.bytes) {
      refuse("tensors overlap: the region is smaller than type and shape need",
             fmt::format("{}, {} at offset {} needs {} bytes, {} begins at offset {}", path, a.tensor.name,
                         a.offset, a.bytes, b.tensor.name, b.offset));
    }
  }
}

void check_start(Cursor& cursor, std::uint64_t size) {
  if (size == 0) refuse("file is empty: 0 bytes", cursor.path());
  const auto magic = cursor.take<std::array<char, 4>>();
  if (const std::string_view found(magic.data(), magic.size()); found != "GGUF") {
    refuse("not a GGUF file: wrong magic",
           fmt::format("{}, found \"{}\", expected \"GGUF\"", cursor.path(), printable(found)));
  }
  const auto version = cursor.take<std::uint32_t>();
  if (version == 2 || version == 3) return;
  const bool big_endian = version != 0 && (version & 0xFFFFU) == 0;
  throw Error(version == 1 || big_endian ? ErrorCode::kNotSupported : ErrorCode::kBadInput,
              big_endian ? "big-endian GGUF files are not supported" : "GGUF version is not supported",
              fmt::format("{}, version {}, supported are 2 and 3", cursor.path(), version),
              "convert the model again");
}

}  // namespace

GgufPart parse_gguf(const MappedFile& file) {
  Cursor cursor(file.bytes(), file.path().string());
  check_start(cursor, file.size());
  const auto tensor_count = cursor.take<std::uint64_t>();
  const auto pair_count = cursor.take<std::uint64_t>();
  const auto check_count = [&](const char* what, std::uint64_t count, std::uint64_t least_bytes) {
    const std::uint64_t limit = cursor.left() / least_bytes;
    if (count > limit) {
      refuse(
          fmt::format("file is truncated or damaged: it cannot hold that many {}", what),
          fmt::format("{}, {} {}, at most {} in {} bytes", cursor.path(), count, what, limit, file.size()));
    }
  };
  check_count("metadata keys", pair_count, kLeastPairBytes);
  check_count("tensors", tensor_count, kLeastTensorBytes);

  GgufPart part;
  part.metadata = take_metadata(cursor, pair_count);
  const std::uint64_t alignment = alignment_of(part.metadata, cursor.path());

  std::vector<TableRow> rows;
  std::set<std::string_view> names;
  rows.reserve(tensor_count);
  for (std::uint64_t i = 0; i < tensor_count; ++i) {
    cursor.set_subject(fmt::format("tensor {} of {}", i + 1, tensor_count));
    rows.push_back(take_row(cursor, alignment));
    if (!names.insert(rows.back().tensor.name).second) {
      refuse("duplicate tensor", fmt::format("{}, {}", cursor.path(), rows.back().tensor.name));
    }
  }
  const std::uint64_t data_start = (cursor.position() + alignment - 1) / alignment * alignment;
  const std::span<const std::byte> data =
      file.bytes().subspan(std::min<std::uint64_t>(data_start, file.size()));
  check_regions(rows, data_start, data.size(), cursor.path());
  for (TableRow& row : rows) {
    row.tensor.data = data.subspan(row.offset, row.bytes);
    row.tensor.file = file.path().filename().string();
    part.tensors.push_back(std::move(row.tensor));
  }
  return part;
}

}  // namespace wring::formats
