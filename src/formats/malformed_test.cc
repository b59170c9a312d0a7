// Files damaged at random, with a fixed seed: the readers may accept or refuse them, but only by
// wring::Error.
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "formats/gguf.h"
#include "formats/safetensors.h"
#include "formats/test_files.h"

namespace wring::formats {
namespace {

using testing_files::raw;
using testing_files::raw_string;

constexpr int kRounds = 6000;

// Numbers at which sizes, counts and offsets go wrong.
constexpr std::uint64_t kEdges[] = {0,
                                    1,
                                    7,
                                    31,
                                    32,
                                    255,
                                    65536,
                                    0x7FFFFFFF,
                                    0xFFFFFFFF,
                                    std::uint64_t{1} << 31,
                                    std::uint64_t{1} << 58,
                                    std::uint64_t{1} << 63,
                                    UINT64_MAX,
                                    UINT64_MAX - 7};

std::string damaged(std::string bytes, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (std::size_t times = 1 + below(3); times > 0 && !bytes.empty(); --times) {
    const std::size_t at = below(bytes.size());
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.erase(at, 1 + below(16));
        break;
      case 4:
        bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(64)));
        break;
      case 5: {
        const std::uint64_t edge = kEdges[below(std::size(kEdges))];
        const std::size_t width = std::min<std::size_t>(below(2) == 0 ? 4 : 8, bytes.size() - at);
        bytes.replace(at, width, raw(edge).substr(0, width));
      }
    }
  }
  return bytes;
}

// Opens damaged copies of `sound` and reads whatever is accepted to its last byte; returns how many were
// refused.
template <class Open>
int refused(const std::string& sound, std::uint32_t seed, Open&& open) {
  std::mt19937 random(seed);
  int count = 0;
  for (int i = 0; i < kRounds; ++i) {
    try {
      unsigned sum = 0;
      for (const TensorInfo& t : open(damaged(sound, random))) {
        for (const std::byte b : t.data) sum += static_cast<unsigned>(b);
        EXPECT_EQ(t.data.size(), bytes_of(t.type, t.rows(), t.columns())) << t.name;
      }
      EXPECT_LT(sum, 1U << 30);
    } catch (const Error& e) {
      EXPECT_FALSE(std::string_view(e.what()).empty());
      ++count;
    }
  }
  return count;
}

TEST(Malformed, GgufEndsInTensorsOrInAnError) {
  testing_files::GgufBytes b;
  b.text("general.architecture", "llama").u32("llama.block_count", 2).u32("general.alignment", 32);
  b.pair("tokens", raw<std::uint32_t>(9) + raw<std::uint32_t>(8) + raw<std::uint64_t>(3) + raw_string("a") +
                       raw_string("bc") + raw_string(""));
  b.pair("types", raw<std::uint32_t>(9) + raw<std::uint32_t>(5) + raw<std::uint64_t>(2) +
                      raw<std::uint32_t>(1) + raw<std::uint32_t>(3));
  b.pair("flag", raw<std::uint32_t>(7) + raw<std::uint8_t>(1));
  b.tensor("token_embd.weight", {32, 4}, 8, 0)
      .tensor("norm.weight", {4}, 0, 160)
      .tensor("w", {2, 2, 2}, 1, 192);
  b.data.assign(208, 'x');
  const testing_files::MemoryFile file;
  std::optional<GgufReader> reader;
  const int count = refused(b.bytes(), 1, [&](const std::string& bytes) {
    reader = GgufReader::open(file.with(bytes));
    return reader->tensors();
  });
  EXPECT_GT(count, kRounds / 3);
  EXPECT_LT(count, kRounds);
}

TEST(Malformed, SafetensorsEndInTensorsOrInAnError) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]},"c":{"dtype":"I8","shape":[0],"data_offsets":[32,32]}})";
  const testing_files::MemoryFile file;
  std::optional<SafetensorsReader> reader;
  const int count = refused(testing_files::safetensors_bytes(header, std::string(32, 'x')), 2,
                            [&](const std::string& bytes) {
                              reader = SafetensorsReader::open(file.with(bytes));
                              return reader->tensors();
                            });
  EXPECT_GT(count, kRounds / 3);
  EXPECT_LT(count, kRounds);
}

}  // namespace
}  // namespace wring::formats
