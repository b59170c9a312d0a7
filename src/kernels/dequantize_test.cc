// Stored blocks against ggml's own values, to the bit: a few blocks of each type in tests/data, all of the
// fixtures where they lie beside the checkout; and every level against the reference on random bytes.
#include <algorithm>
#include <filesystem>
#include <iterator>

#include "formats/safetensors.h"
#include "kernels/test_support.h"

namespace wring::kernels {
namespace {

using formats::QuantType;

constexpr QuantType kTypes[] = {
    QuantType::kF32,   QuantType::kF16,     QuantType::kBF16,  QuantType::kQ4_0,    QuantType::kQ4_1,
    QuantType::kQ5_0,  QuantType::kQ5_1,    QuantType::kQ8_0,  QuantType::kQ2_K,    QuantType::kQ3_K,
    QuantType::kQ4_K,  QuantType::kQ5_K,    QuantType::kQ6_K,  QuantType::kIQ4_NL,  QuantType::kIQ4_XS,
    QuantType::kMXFP4, QuantType::kNVFP4,   QuantType::kTQ1_0, QuantType::kTQ2_0,   QuantType::kQ1_0,
    QuantType::kQ2_0,  QuantType::kIQ1_S,   QuantType::kIQ1_M, QuantType::kIQ2_XXS, QuantType::kIQ2_XS,
    QuantType::kIQ2_S, QuantType::kIQ3_XXS, QuantType::kIQ3_S};

std::vector<float> values_of(const KernelTable& table, QuantType type, const void* src, std::size_t n) {
  std::vector<float> values(n, -7.0F);
  table.dequantize(type, src, values.data(), n);
  return values;
}

void expect_golden(const std::filesystem::path& path) {
  const auto file = formats::SafetensorsReader::open(path);
  for (const QuantType type : kTypes) {
    if (type == QuantType::kF32) continue;
    const std::string name(formats::name_of(type));
    const auto* raw = file.find(name + ".raw");
    const auto* golden = file.find(name + ".f32");
    ASSERT_TRUE(raw != nullptr && golden != nullptr) << name;
    const std::size_t n = golden->elements();
    std::vector<float> expected(n);
    std::memcpy(expected.data(), golden->data.data(), n * sizeof(float));
    const std::vector<std::byte> blocks(raw->data.begin(), raw->data.end());  // aligned
    EXPECT_TRUE(same_bits(expected, values_of(reference(), type, blocks.data(), n))) << name;
    for (const Level& level : levels()) {
      EXPECT_TRUE(same_bits(expected, values_of(*level.table, type, blocks.data(), n)))
          << level.name << ' ' << name;
    }
  }
}

TEST(Dequantize, GivesGgmlsValues) {
  expect_golden(std::filesystem::path(WRING_SOURCE_DIR) / "tests/data/kernels/ggml_blocks.safetensors");
}

TEST(Dequantize, GivesGgmlsValuesOfAllFixtures) {
  const auto path = std::filesystem::path(WRING_SOURCE_DIR) / "../shared/fixtures/ggml/dequant.safetensors";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no fixtures beside this checkout";
  EXPECT_EQ(formats::SafetensorsReader::open(path).tensors().size(), 2 * (std::size(kTypes) - 1));  // not F32
  expect_golden(path);
}

TEST(Dequantize, EveryLevelGivesTheReferencesBitsForRandomBytes) {
  std::mt19937 generator(31);
  for (const QuantType type : kTypes) {
    ASSERT_TRUE(has_dequantize(type));
    const auto& info = formats::info_of(type);
    for (const std::size_t blocks : {1, 2, 3, 7, 16, 33, 100}) {
      // Two bytes in front: blocks in a file are aligned to no more.
      std::vector<unsigned char> bytes(2 + blocks * info.block_bytes);
      for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(generator());
      const std::size_t n = blocks * info.block_size;
      const auto expected = values_of(reference(), type, bytes.data() + 2, n);
      for (const Level& level : levels()) {
        EXPECT_TRUE(same_bits(expected, values_of(*level.table, type, bytes.data() + 2, n)))
            << level.name << ' ' << info.name << ", blocks " << blocks;
      }
    }
  }
}

TEST(Dequantize, EveryHalfIsTakenAsItIs) {
  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  for (const QuantType type : {QuantType::kF16, QuantType::kBF16}) {
    const auto expected = values_of(reference(), type, halves.data(), halves.size());
    for (const Level& level : levels()) {
      const auto got = values_of(*level.table, type, halves.data(), halves.size());
      // Signalling NaN included: the bits themselves, not only that both are NaN.
      EXPECT_EQ(0, std::memcmp(expected.data(), got.data(), expected.size() * sizeof(float))) << level.name;
    }
  }
  const auto f16 = values_of(reference(), QuantType::kF16, halves.data(), halves.size());
  EXPECT_EQ(f16[0x3C00], 1.0F);
  EXPECT_EQ(f16[0x0001], 0x1p-24F);
  EXPECT_EQ(f16[0xFBFF], -65504.0F);
  EXPECT_TRUE(std::isinf(f16[0x7C00]));
}

TEST(Dequantize, KnowsWhichTypesItHas) {
  // Types of activations, integers and float64 are no weights; every other type that a GGUF file can hold is.
  for (std::uint32_t id = 0; id < 100; ++id) {
    const auto type = formats::quant_type_from_gguf_id(id);
    if (!type) continue;
    const bool expected = std::find(std::begin(kTypes), std::end(kTypes), *type) != std::end(kTypes);
    EXPECT_EQ(has_dequantize(*type), expected) << formats::name_of(*type);
  }
  for (const QuantType type :
       {QuantType::kQ8_1, QuantType::kQ8_K, QuantType::kI8, QuantType::kI16, QuantType::kI32, QuantType::kI64,
        QuantType::kF64, QuantType::kF8_E4M3, QuantType::kU8}) {
    EXPECT_FALSE(has_dequantize(type)) << formats::name_of(type);
  }
}

}  // namespace
}  // namespace wring::kernels
