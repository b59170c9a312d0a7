// Models whose matrices are of a block type give what the blocks' float32 values give, to the bit: every type
// in exact mode, and in packed mode those that it has no kernel for. Blocks and values are ggml's.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/testing.h"
#include "formats/gguf.h"
#include "kernels/packed.h"

namespace wring::engine {
namespace {

using formats::QuantType;

constexpr std::uint64_t kWide = 256;  // hidden and intermediate size: one super-block
constexpr std::uint64_t kVocabulary = 32;

// A file of one test, removed at its end.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& name)
      : path(std::filesystem::path(::testing::TempDir()) /
             ("wring_block_types_" + std::to_string(::getpid()) + "_" + name + ".gguf")) {}
  ~ScratchFile() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  const std::filesystem::path path;
};

// Writes a llama of one layer. Its matrices are drawn from `count` pieces of equal size that follow each
// other in `pieces`: the same draws for the same count, whatever the type.
void write_one_layer(const std::filesystem::path& path, QuantType type, std::span<const std::byte> pieces,
                     std::size_t count) {
  formats::GgufWriter writer(path);
  writer.add_string("general.architecture", "llama");
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::uint32_t>>{{"embedding_length", kWide},
                                                          {"feed_forward_length", kWide},
                                                          {"block_count", 1},
                                                          {"context_length", 64},
                                                          {"attention.head_count", 4}}) {
    writer.add_u32("llama." + key, value);
  }
  writer.add_f32("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  const std::vector<std::string> norms = {"output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"};
  const std::vector<std::pair<std::string, std::uint64_t>> matrices = {
      {"token_embd", kVocabulary}, {"output", kVocabulary}, {"blk.0.attn_q", kWide},
      {"blk.0.attn_k", kWide},     {"blk.0.attn_v", kWide}, {"blk.0.attn_output", kWide},
      {"blk.0.ffn_gate", kWide},   {"blk.0.ffn_up", kWide}, {"blk.0.ffn_down", kWide}};
  for (const std::string& name : norms)
    writer.declare(name + ".weight", QuantType::kF32, std::vector<std::uint64_t>{kWide});
  for (const auto& [name, rows] : matrices)
    writer.declare(name + ".weight", type, std::vector<std::uint64_t>{rows, kWide});
  writer.begin_data();
  const std::vector<float> ones(kWide, 1.0F);
  for (std::size_t i = 0; i < norms.size(); ++i) writer.write(std::as_bytes(std::span(ones)));
  std::mt19937 generator(8);
  const std::size_t piece_bytes = pieces.size() / count;
  for (const auto& [name, rows] : matrices) {
    const std::uint64_t bytes = formats::bytes_of(type, rows, kWide);
    for (std::uint64_t written = 0; written < bytes; written += piece_bytes)
      writer.write(pieces.subspan(generator() % count * piece_bytes, piece_bytes));
  }
  writer.commit();
}

// Logits of four positions at once, then of one more.
std::vector<float> logits_of(const std::filesystem::path& path, ComputeMode compute) {
  const model::Model model = model::Model::open(path);
  Engine engine(model, {.compute = compute, .threads = 1});
  const SequenceId sequence = engine.add_sequence();
  const std::vector<TokenId> ids = {3, 17, 9, 30, 1};
  std::vector<float> all;
  for (const auto& [first, count] : {std::pair<std::size_t, std::size_t>{0, 4}, {4, 1}}) {
    const Rows rows = engine
                          .step({{{sequence, static_cast<std::int64_t>(first),
                                   std::span(ids).subspan(first, count), Logits::kAll}}})
                          .logits;
    for (std::int64_t i = 0; i < rows.count; ++i)
      all.insert(all.end(), rows.row(i).begin(), rows.row(i).end());
    engine.commit(sequence, static_cast<std::int64_t>(count));
  }
  return all;
}

TEST(BlockTypes, GiveTheLogitsOfTheirValues) {
  const auto golden = formats::SafetensorsReader::open(testing::data("kernels/ggml_blocks.safetensors"));
  int types = 0;
  for (const formats::TensorInfo& stored : golden.tensors()) {
    if (!stored.name.ends_with(".raw")) continue;
    const std::string name = stored.name.substr(0, stored.name.size() - 4);
    const QuantType type = formats::quant_type_from_name(name).value();
    if (formats::info_of(type).block_size == 1) continue;  // their values go up to the largest number
    ++types;
    const ScratchFile blocks(name), floats(name + "_f32");
    const std::size_t count = stored.data.size() / formats::info_of(type).block_bytes;
    write_one_layer(blocks.path, type, testing::read<std::byte>(golden, stored.name), count);
    write_one_layer(floats.path, QuantType::kF32, testing::read<std::byte>(golden, name + ".f32"), count);
    for (const ComputeMode compute : {ComputeMode::kExact, ComputeMode::kPacked}) {
      if (compute == ComputeMode::kPacked && kernels::has_packed(type)) continue;
      const std::vector<float> want = logits_of(floats.path, compute), got = logits_of(blocks.path, compute);
      ASSERT_EQ(want.size(), 5 * kVocabulary);
      const auto [least, most] = std::ranges::minmax(want);
      EXPECT_TRUE(std::isfinite(least) && std::isfinite(most) && least < most) << name;
      EXPECT_EQ(0, std::memcmp(want.data(), got.data(), want.size() * sizeof(float))) << name;
    }
  }
  EXPECT_EQ(types, 25);
}

// The code of the error that `path` meets on its way into an engine, if its message names `type`.
ErrorCode refusal_of(const std::filesystem::path& path, QuantType type, ComputeMode compute) {
  try {
    logits_of(path, compute);
    ADD_FAILURE() << formats::name_of(type) << " was taken";
  } catch (const Error& e) {
    EXPECT_NE(e.message().find(formats::name_of(type)), std::string::npos) << e.what();
    EXPECT_NE(e.where().find("token_embd.weight"), std::string::npos) << e.what();
    return e.code();
  }
  return ErrorCode::kInternal;
}

TEST(BlockTypes, OnesThatAreNoWeightsAreRefusedByName) {
  const std::pair<QuantType, ErrorCode> refused[] = {{QuantType::kQ8_1, ErrorCode::kBadInput},
                                                     {QuantType::kQ8_K, ErrorCode::kBadInput},
                                                     {QuantType::kI32, ErrorCode::kBadInput},
                                                     {QuantType::kF64, ErrorCode::kNotSupported}};
  for (const auto& [type, code] : refused) {
    const ScratchFile file{std::string(formats::name_of(type))};
    write_one_layer(file.path, type, std::vector<std::byte>(formats::info_of(type).block_bytes), 1);
    for (const ComputeMode compute : {ComputeMode::kExact, ComputeMode::kPacked})
      EXPECT_EQ(refusal_of(file.path, type, compute), code) << formats::name_of(type);
  }
}

}  // namespace
}  // namespace wring::engine
