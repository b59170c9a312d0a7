// Importance matrices over GgufReader and GgufWriter. Keys and tensor names are those of llama.cpp's imatrix
// tool.
#include "formats/imatrix.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "formats/gguf.h"

namespace wring::formats {
namespace {

constexpr std::string_view kSums = ".in_sum2";
constexpr std::string_view kCounts = ".counts";

[[noreturn]] void refuse_imatrix(std::string what, const std::filesystem::path& path,
                                 const std::string& tensor) {
  throw Error(ErrorCode::kBadInput, std::move(what), fmt::format("{}, {}", path.string(), tensor));
}

std::vector<float> read_floats(const TensorInfo& tensor, const std::filesystem::path& path) {
  if (tensor.type != QuantType::kF32) {
    refuse_imatrix(fmt::format("an importance matrix must be F32, not {}", name_of(tensor.type)), path,
                   tensor.name);
  }
  std::vector<float> values(tensor.elements());
  std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i]) || values[i] < 0) {
      refuse_imatrix(fmt::format("importance must be finite and not negative: value {} at {}", values[i], i),
                     path, tensor.name);
    }
  }
  return values;
}

ImatrixEntry read_entry(const TensorInfo& sums, const TensorInfo& counts, const std::filesystem::path& path) {
  // llama.cpp drops outer dimensions of 1, so that a dense matrix has (columns) and (1).
  if (sums.rows() != counts.elements()) {
    refuse_imatrix(fmt::format("{} rows of sums, but {} counts", sums.rows(), counts.elements()), path,
                   sums.name);
  }
  ImatrixEntry entry{read_floats(sums, path), read_floats(counts, path)};
  constexpr float kMostTokens = 0x1p53F;
  for (const float count : entry.counts) {
    if (count > kMostTokens)
      refuse_imatrix(fmt::format("{} tokens are more than {}", count, kMostTokens), path, counts.name);
  }
  return entry;
}

std::string base_of(std::string_view tensor, std::string_view suffix) {
  return std::string(tensor.substr(0, tensor.size() - suffix.size()));
}

// (rows, columns), without the outer dimension where it is 1.
std::vector<std::uint64_t> shape_of(std::uint64_t rows, std::uint64_t columns) {
  return rows == 1 ? std::vector<std::uint64_t>{columns} : std::vector<std::uint64_t>{rows, columns};
}

}  // namespace

Imatrix read_imatrix(const std::filesystem::path& path) {
  const GgufReader reader = GgufReader::open(path);
  if (const std::string type = reader.string_or("general.type", ""); type != "imatrix") {
    throw Error(ErrorCode::kBadInput, "not an importance matrix",
                fmt::format("{}, general.type = \"{}\", expected \"imatrix\"", path.string(), type));
  }
  Imatrix out;
  if (reader.has("imatrix.datasets")) out.datasets = reader.strings("imatrix.datasets");
  out.chunk_count = static_cast<std::uint32_t>(reader.integer_or("imatrix.chunk_count", 0, 0, UINT32_MAX));
  out.chunk_size = static_cast<std::uint32_t>(reader.integer_or("imatrix.chunk_size", 0, 0, UINT32_MAX));
  for (const TensorInfo& tensor : reader.tensors()) {
    const bool is_sums = tensor.name.ends_with(kSums);
    if (!is_sums && !tensor.name.ends_with(kCounts))
      refuse_imatrix("not a tensor of an importance matrix", path, tensor.name);
    const std::string base = base_of(tensor.name, is_sums ? kSums : kCounts);
    const std::string partner = base + std::string(is_sums ? kCounts : kSums);
    const TensorInfo* other = reader.find(partner);
    if (other == nullptr) refuse_imatrix(fmt::format("{} is missing", partner), path, tensor.name);
    if (is_sums) out.entries.emplace(base, read_entry(tensor, *other, path));
  }
  return out;
}

void write_imatrix(const Imatrix& imatrix, const std::filesystem::path& path) {
  GgufWriter writer(path);
  writer.add_string("general.type", "imatrix");
  writer.add_strings("imatrix.datasets", imatrix.datasets);
  writer.add_u32("imatrix.chunk_count", imatrix.chunk_count);
  writer.add_u32("imatrix.chunk_size", imatrix.chunk_size);
  for (const auto& [name, entry] : imatrix.entries) {
    const std::size_t experts = entry.counts.size();
    if (experts == 0 || entry.sum_squares.empty() || entry.sum_squares.size() % experts != 0) {
      throw Error(ErrorCode::kInternal, "importance sums and counts disagree", name);
    }
    writer.declare(name + std::string(kSums), QuantType::kF32,
                   shape_of(experts, entry.sum_squares.size() / experts));
    writer.declare(name + std::string(kCounts), QuantType::kF32, shape_of(experts, 1));
  }
  writer.begin_data();
  for (const auto& [name, entry] : imatrix.entries) {
    writer.write(std::as_bytes(std::span(entry.sum_squares)));
    writer.write(std::as_bytes(std::span(entry.counts)));
  }
  writer.commit();
}

}  // namespace wring::formats
