// Importance matrices in llama.cpp's GGUF form: for each weight "name.in_sum2" (n_expert, columns) F32, the
// sum over tokens of the squared inputs, and "name.counts" (n_expert, 1) F32, the number of tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace wring::formats {

struct ImatrixEntry {
  std::vector<float> sum_squares;  // (experts, columns): Σ x_j² over tokens
  std::vector<float> counts;       // (experts): tokens seen
};

struct Imatrix {
  std::map<std::string, ImatrixEntry> entries;  // by GGUF weight name: "blk.0.attn_q.weight"
  std::vector<std::string> datasets;
  std::uint32_t chunk_count = 0;
  std::uint32_t chunk_size = 0;
};

/// Errors: kBadInput for a file that is not an imatrix, a missing counts tensor, a size that disagrees, NaN,
/// Inf or negative sums.
Imatrix read_imatrix(const std::filesystem::path& path);

/// Writes atomically. Errors: kIo.
void write_imatrix(const Imatrix& imatrix, const std::filesystem::path& path);

}  // namespace wring::formats
