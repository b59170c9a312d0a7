#include "formats/quant_type.h"

#include <gtest/gtest.h>

#include "formats/block_layouts.h"

namespace wring::formats {
namespace {

template <class Block>
void expect_block(QuantType type, std::uint32_t block_size) {
  EXPECT_EQ(info_of(type).block_bytes, sizeof(Block)) << name_of(type);
  EXPECT_EQ(info_of(type).block_size, block_size) << name_of(type);
}

TEST(QuantType, BlocksHaveTheSizesOfTheirStructs) {
  expect_block<BlockQ4_0>(QuantType::kQ4_0, 32);
  expect_block<BlockQ4_1>(QuantType::kQ4_1, 32);
  expect_block<BlockQ5_0>(QuantType::kQ5_0, 32);
  expect_block<BlockQ5_1>(QuantType::kQ5_1, 32);
  expect_block<BlockQ8_0>(QuantType::kQ8_0, 32);
  expect_block<BlockQ8_1>(QuantType::kQ8_1, 32);
  expect_block<BlockQ2_K>(QuantType::kQ2_K, 256);
  expect_block<BlockQ3_K>(QuantType::kQ3_K, 256);
  expect_block<BlockQ4_K>(QuantType::kQ4_K, 256);
  expect_block<BlockQ5_K>(QuantType::kQ5_K, 256);
  expect_block<BlockQ6_K>(QuantType::kQ6_K, 256);
  expect_block<BlockQ8_K>(QuantType::kQ8_K, 256);
  expect_block<BlockIQ4_NL>(QuantType::kIQ4_NL, 32);
  expect_block<BlockIQ4_XS>(QuantType::kIQ4_XS, 256);
  expect_block<BlockIQ1_S>(QuantType::kIQ1_S, 256);
  expect_block<BlockIQ1_M>(QuantType::kIQ1_M, 256);
  expect_block<BlockIQ2_XXS>(QuantType::kIQ2_XXS, 256);
  expect_block<BlockIQ2_XS>(QuantType::kIQ2_XS, 256);
  expect_block<BlockIQ2_S>(QuantType::kIQ2_S, 256);
  expect_block<BlockIQ3_XXS>(QuantType::kIQ3_XXS, 256);
  expect_block<BlockIQ3_S>(QuantType::kIQ3_S, 256);
  expect_block<BlockMXFP4>(QuantType::kMXFP4, 32);
  expect_block<BlockNVFP4>(QuantType::kNVFP4, 64);
  expect_block<BlockTQ1_0>(QuantType::kTQ1_0, 256);
  expect_block<BlockTQ2_0>(QuantType::kTQ2_0, 256);
  expect_block<BlockQ1_0>(QuantType::kQ1_0, 128);
  expect_block<BlockQ2_0>(QuantType::kQ2_0, 64);
}

TEST(QuantType, EveryGgufIdHasAnEntryThatLeadsBackToIt) {
  int known = 0;
  for (std::uint32_t id = 0; id < 2000; ++id) {
    const auto type = quant_type_from_gguf_id(id);
    if (!type) continue;
    ++known;
    EXPECT_EQ(static_cast<std::uint32_t>(*type), id);
    EXPECT_EQ(quant_type_from_name(name_of(*type)), type);
  }
  EXPECT_EQ(known, 35);
}

TEST(QuantType, WithdrawnAndForeignIdsAreUnknown) {
  for (const std::uint32_t id : {4U, 5U, 31U, 32U, 33U, 36U, 37U, 38U, 43U, 1000U, 1004U, 0xFFFFFFFFU}) {
    EXPECT_FALSE(quant_type_from_gguf_id(id)) << id;
  }
}

TEST(QuantType, NamesInAnyCaseDtypesExactly) {
  EXPECT_EQ(quant_type_from_name("q4_k"), QuantType::kQ4_K);
  EXPECT_EQ(quant_type_from_name("Iq4_Xs"), QuantType::kIQ4_XS);
  EXPECT_FALSE(quant_type_from_name("q4_k_m"));
  EXPECT_FALSE(quant_type_from_name(""));
  EXPECT_EQ(quant_type_from_dtype("F8_E4M3"), QuantType::kF8_E4M3);
  EXPECT_EQ(quant_type_from_dtype("BOOL"), QuantType::kBool);
  EXPECT_FALSE(quant_type_from_dtype("bf16"));
  EXPECT_FALSE(quant_type_from_dtype("Q8_0"));  // a block type is no dtype
}

TEST(QuantType, BytesOfRows) {
  EXPECT_EQ(bytes_of(QuantType::kQ4_K, 3, 512), 3U * 2 * 144);
  EXPECT_EQ(bytes_of(QuantType::kBF16, 5, 7), 70U);
  EXPECT_TRUE(is_plain_float(QuantType::kBF16));
  EXPECT_FALSE(is_plain_float(QuantType::kF8_E4M3));
  EXPECT_FALSE(is_plain_float(QuantType::kQ8_0));
  EXPECT_FALSE(is_gguf_type(QuantType::kBool));
}

}  // namespace
}  // namespace wring::formats
