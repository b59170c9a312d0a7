#include "quantize/block_quantizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/floats.h"
#include "formats/block_layouts.h"
#include "formats/safetensors.h"
#include "kernels/kernel_table.h"
#include "quantize/testing.h"

namespace wring::quantize {
namespace {

using formats::QuantType;

constexpr QuantType kBlockTypes[] = {
    QuantType::kQ8_0,   QuantType::kQ4_K, QuantType::kQ5_K, QuantType::kQ6_K, QuantType::kIQ4_XS,
    QuantType::kIQ4_NL, QuantType::kQ4_0, QuantType::kQ4_1, QuantType::kQ5_0, QuantType::kQ5_1};

std::vector<float> there_and_back(QuantType type, const std::vector<float>& x,
                                  std::span<const float> importance = {}) {
  const RowQuantizer quantizer(type, x.size(), importance);
  std::vector<std::byte> bytes(quantizer.row_bytes());
  quantizer.quantize(x.data(), bytes.data());
  std::vector<float> back(x.size());
  kernels::kernels_for(Isa::kScalar).dequantize(type, bytes.data(), back.data(), x.size());
  return back;
}

double weighted_square_error(const std::vector<float>& x, const std::vector<float>& back,
                             const std::vector<float>& weight) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    sum += (weight.empty() ? 1.0 : weight[i]) * std::pow(static_cast<double>(x[i]) - back[i], 2);
  return sum;
}

std::vector<float> random_row(std::size_t n, std::uint64_t seed, float scale = 1) {
  std::vector<float> row(n);
  for (float& v : row) v = testing::test_weight(seed) * scale;
  return row;
}

// --- against ggml
// -------------------------------------------------------------------------------------------------------

struct Golden {
  QuantType type;
  double rmse;           // ggml_quantize_chunk without importance
  double weighted_rmse;  // with it: sqrt(Σ importance·e² / Σ importance)
};

// RMSE of ggml's own quantizer (llama.cpp of llama_cpp_python 0.3.36) on
// tests/data/quantize/rows.safetensors.
constexpr Golden kGolden[] = {
    {QuantType::kQ8_0, 0.00015445921811411327, 0.00015337130133442106},
    {QuantType::kQ4_0, 0.0024289521756517747, 0.0021585464806171814},
    {QuantType::kQ4_1, 0.0019756917340629375, 0.0015828972090801733},
    {QuantType::kQ5_0, 0.0012633740167424345, 0.0011676367280851058},
    {QuantType::kQ5_1, 0.000963586845288136, 0.0007662847693261484},
    {QuantType::kQ4_K, 0.001829409356023141, 0.0016212312101003608},
    {QuantType::kQ5_K, 0.0009223272242103745, 0.0008438149775856002},
    {QuantType::kQ6_K, 0.0004850377602263957, 0.0004296179074970685},
    {QuantType::kIQ4_NL, 0.002045970449391745, 0.001823158393428219},
    {QuantType::kIQ4_XS, 0.0020708184989293036, 0.0018649810719265831},
};

class AgainstGgml : public ::testing::TestWithParam<Golden> {};

TEST_P(AgainstGgml, ErrorIsLowerOnItsOwnRows) {
  const auto file = formats::SafetensorsReader::open(testing::data("quantize/rows.safetensors"));
  const auto floats = [&](const char* name) {
    const formats::TensorInfo& t = *file.find(name);
    std::vector<float> out(t.elements());
    std::memcpy(out.data(), t.data.data(), t.data.size());
    return out;
  };
  const std::vector<float> input = floats("input"), importance = floats("importance");
  const std::size_t columns = importance.size(), rows = input.size() / columns;
  double plain = 0, weighted = 0, importance_sum = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    const std::vector<float> x(input.begin() + static_cast<std::ptrdiff_t>(r * columns),
                               input.begin() + static_cast<std::ptrdiff_t>((r + 1) * columns));
    plain += weighted_square_error(x, there_and_back(GetParam().type, x), {});
    weighted += weighted_square_error(x, there_and_back(GetParam().type, x, importance), importance);
    for (const float v : importance) importance_sum += v;
  }
  EXPECT_LT(std::sqrt(plain / static_cast<double>(rows * columns)), GetParam().rmse);
  EXPECT_LT(std::sqrt(weighted / importance_sum), GetParam().weighted_rmse);
}

INSTANTIATE_TEST_SUITE_P(Types, AgainstGgml, ::testing::ValuesIn(kGolden), [](const auto& parameter) {
  return std::string(formats::name_of(parameter.param.type));
});

// --- against the plain fit
// ------------------------------------------------------------------------------------------------

/// Q4_K as the format's first description has it: each group's range divided evenly, scales and mins against
/// the largest of eight.
std::vector<float> plain_q4_k(const std::vector<float>& x) {
  std::vector<float> back(x.size());
  for (std::size_t block = 0; block < x.size(); block += 256) {
    float scales[8], mins[8];
    for (std::size_t g = 0; g < 8; ++g) {
      const auto group = x.begin() + static_cast<std::ptrdiff_t>(block + 32 * g);
      const float low = std::min(0.0F, *std::min_element(group, group + 32)),
                  high = *std::max_element(group, group + 32);
      scales[g] = std::max(0.0F, high - low) / 15;
      mins[g] = -low;
    }
    const float d = f16_to_float(float_to_f16(*std::max_element(scales, scales + 8) / 63));
    const float dmin = f16_to_float(float_to_f16(*std::max_element(mins, mins + 8) / 63));
    for (std::size_t i = 0; i < 256; ++i) {
      const std::size_t g = i / 32;
      const float step = d > 0 ? d * std::min(63.0F, std::nearbyint(scales[g] / d)) : 0;
      const float low = dmin > 0 ? dmin * std::min(63.0F, std::nearbyint(mins[g] / dmin)) : 0;
      const float code = step > 0 ? std::clamp(std::nearbyint((x[block + i] + low) / step), 0.0F, 15.0F) : 0;
      back[block + i] = step * code - low;
    }
  }
  return back;
}

TEST(Q4K, IsNeverWorseThanThePlainFit) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<float> x = random_row(256, seed, 1.0F + static_cast<float>(seed % 7));
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (seed % 4 == 1) x[i] = std::abs(x[i]);              // no negative value
      if (seed % 4 == 2) x[i] = -std::abs(x[i]) - 0.01F;     // no positive one
      if (seed % 4 == 3 && i % 37 == seed % 37) x[i] *= 50;  // outliers
      if (seed % 5 == 0)
        x[i] *= std::ldexp(1.0F, static_cast<int>(i / 32) * 2);  // groups of very different size
    }
    const double searched = weighted_square_error(x, there_and_back(QuantType::kQ4_K, x), {});
    const double plain = weighted_square_error(x, plain_q4_k(x), {});
    EXPECT_LE(searched, plain * (1 + 1e-5)) << "seed " << seed;
  }
}

// --- definitions at the edges
// -----------------------------------------------------------------------------------------------

class EveryBlockType : public ::testing::TestWithParam<QuantType> {};
INSTANTIATE_TEST_SUITE_P(Types, EveryBlockType, ::testing::ValuesIn(kBlockTypes), [](const auto& parameter) {
  return std::string(formats::name_of(parameter.param));
});

TEST_P(EveryBlockType, ZerosMinusZerosAndDenormalsBecomeZero) {
  for (const float value : {0.0F, -0.0F, 1e-40F, -1e-40F, 0x1p-26F}) {
    const std::vector<float> back = there_and_back(GetParam(), std::vector<float>(256, value));
    EXPECT_THAT(back, ::testing::Each(::testing::FloatEq(0.0F))) << value;
  }
}

TEST_P(EveryBlockType, SmallMagnitudesKeepTheirSize) {
  // Near the smallest float16 scale, where steps are coarse: neither lost nor blown up.
  const std::vector<float> x = random_row(256, 5, 1e-3F);  // about 2e-5
  const std::vector<float> back = there_and_back(GetParam(), x);
  const double norm = std::sqrt(weighted_square_error(x, std::vector<float>(256, 0.0F), {}));
  EXPECT_LT(std::sqrt(weighted_square_error(x, back, {})), norm * 0.2);
}

TEST_P(EveryBlockType, TheLargestMagnitudesStayFinite) {
  std::vector<float> x = random_row(256, 6, 10.0F);
  x[0] = kLargestQuantizable;
  x[100] = -kLargestQuantizable;
  const std::vector<float> back = there_and_back(GetParam(), x);
  for (const float v : back) EXPECT_TRUE(std::isfinite(v));
  EXPECT_NEAR(back[0], x[0], 0.15F * kLargestQuantizable);
  EXPECT_NEAR(back[100], x[100], 0.15F * kLargestQuantizable);
}

TEST_P(EveryBlockType, AnOutlierIsKept) {
  std::vector<float> x = random_row(256, 7);
  x[40] = 20.0F;
  EXPECT_NEAR(there_and_back(GetParam(), x)[40], 20.0F, 2.0F);
}

TEST_P(EveryBlockType, PowersOfTwoScaleExactly) {
  const std::vector<float> x = random_row(256, 8, 8.0F);
  std::vector<float> larger = x;
  for (float& v : larger) v *= 64;
  const std::vector<float> back = there_and_back(GetParam(), x),
                           back_larger = there_and_back(GetParam(), larger);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(back_larger[i], 64 * back[i]) << i;
}

TEST_P(EveryBlockType, BlocksDoNotDependOnEachOther) {
  const std::vector<float> first = random_row(256, 9), second = random_row(256, 10, 3.0F);
  std::vector<float> both = first;
  both.insert(both.end(), second.begin(), second.end());
  std::vector<float> expected = there_and_back(GetParam(), first);
  const std::vector<float> more = there_and_back(GetParam(), second);
  expected.insert(expected.end(), more.begin(), more.end());
  EXPECT_EQ(there_and_back(GetParam(), both), expected);
}

// --- importance
// -----------------------------------------------------------------------------------------------------------

TEST_P(EveryBlockType, ImportanceLowersTheWeightedError) {
  std::vector<float> x(4096), importance(4096);
  std::uint64_t seed = 11;
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = testing::test_weight(seed);
    importance[i] = 0.01F + 4000 * testing::test_weight(seed) * testing::test_weight(seed);
    importance[i] = std::abs(importance[i]);
  }
  EXPECT_LT(weighted_square_error(x, there_and_back(GetParam(), x, importance), importance),
            weighted_square_error(x, there_and_back(GetParam(), x), importance));
}

TEST_P(EveryBlockType, TheScaleOfImportanceDoesNotMatter) {
  const std::vector<float> x = random_row(256, 12);
  std::vector<float> importance(256), larger(256);
  for (std::size_t i = 0; i < 256; ++i) {
    importance[i] = static_cast<float>(1 + i % 13);
    larger[i] = importance[i] * 0x1p40F;
  }
  EXPECT_EQ(there_and_back(GetParam(), x, importance), there_and_back(GetParam(), x, larger));
}

TEST_P(EveryBlockType, ZeroImportanceIsEqualImportance) {
  const std::vector<float> x = random_row(256, 13);
  EXPECT_EQ(there_and_back(GetParam(), x, std::vector<float>(256, 0.0F)), there_and_back(GetParam(), x));
}

TEST_P(EveryBlockType, ColumnsOfZeroImportanceStillGetASensibleCode) {
  const std::vector<float> x = random_row(512, 14);
  std::vector<float> importance(512, 1.0F);
  for (std::size_t i = 0; i < 512; ++i) {
    if (i % 3 == 0 || (i >= 256 && i < 320)) importance[i] = 0;  // single columns, and whole groups
  }
  const std::vector<float> back = there_and_back(GetParam(), x, importance);
  for (std::size_t i = 0; i < 512; ++i) EXPECT_NEAR(back[i], x[i], 0.03F) << i;
}

// --- plain types, contracts
// -----------------------------------------------------------------------------------------------

TEST(RowQuantizer, PlainTypesRoundToNearestEven) {
  const std::vector<float> x = {1.0F, -0.0F, 1.00390625F, 65504.0F, 1e-40F, 0.1F};
  EXPECT_EQ(there_and_back(QuantType::kF32, x), x);
  EXPECT_EQ(there_and_back(QuantType::kF16, x)[5], 0.0999755859375F);
  EXPECT_EQ(there_and_back(QuantType::kBF16, x)[2], 1.0F);  // halfway: to even
}

TEST(RowQuantizer, RefusesWhatItCannotWrite) {
  EXPECT_EQ(testing::error_of([] { RowQuantizer(QuantType::kQ2_K, 256); }).code(), ErrorCode::kInternal);
  EXPECT_EQ(testing::error_of([] { RowQuantizer(QuantType::kQ4_K, 128); }).code(), ErrorCode::kInternal);
  const std::vector<float> bad = {1.0F, NAN};
  EXPECT_EQ(testing::error_of([&] { RowQuantizer(QuantType::kQ8_0, 32, bad); }).code(), ErrorCode::kInternal);
}

}  // namespace
}  // namespace wring::quantize
