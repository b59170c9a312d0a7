#include "quantize/coded_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/floats.h"
#include "quantize/testing.h"

namespace wring::quantize {
namespace {

using formats::QuantType;
using ::testing::ElementsAre;

const CodedFormat kFormats[] = {{CodeKind::kInt4, 32}, {CodeKind::kFp8, 0}, {CodeKind::kNvfp4, 16}};

/// BF16 values, of which the first group of 32 is zero.
std::vector<float> some_weights(std::int64_t rows, std::int64_t columns) {
  std::vector<float> weights(static_cast<std::size_t>(rows * columns));
  std::uint64_t state = 7;
  for (float& w : weights) w = testing::test_weight(state);
  std::fill_n(weights.begin(), 32, 0.0F);
  return weights;
}

float largest_of(std::span<const float> values) {
  float largest = 0;
  for (const float v : values) largest = std::max(largest, std::abs(v));
  return largest;
}

TEST(CodedFormats, LevelsRiseAndAreTheirCodes) {
  for (const CodedFormat& format : kFormats) {
    const std::span<const Level> all = levels(format.kind);
    EXPECT_EQ(all.size(), format.kind == CodeKind::kInt4 ? 16U : format.kind == CodeKind::kFp8 ? 253U : 15U);
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(level_of(format.kind, all[i].code), all[i].value);
      EXPECT_EQ(nearest_code(format.kind, all[i].value), all[i].code);
      if (i == 0) continue;
      EXPECT_LT(all[i - 1].value, all[i].value);
      // Between two levels, the nearer one; halfway, either.
      const float middle = (all[i - 1].value + all[i].value) / 2;
      EXPECT_EQ(level_of(format.kind, nearest_code(format.kind, std::nextafter(middle, -1e9F))),
                all[i - 1].value);
      EXPECT_EQ(level_of(format.kind, nearest_code(format.kind, std::nextafter(middle, 1e9F))), all[i].value);
    }
    EXPECT_EQ(nearest_code(format.kind, 1e9F), all.back().code);
    EXPECT_EQ(nearest_code(format.kind, -1e9F), all.front().code);
  }
}

TEST(CodedFormats, ScalesAreDefinedByTheLargestMagnitude) {
  const std::int64_t columns = 64;
  const std::vector<float> w = some_weights(3, columns);
  ThreadPool pool(2);
  const auto bf16 = [](float x) { return bf16_to_float(float_to_bf16(x)); };

  const CodedScales int4 = fit_scales(kFormats[0], w, columns, 0, pool);
  ASSERT_EQ(int4.stored.size(), 6U);
  EXPECT_EQ(int4.stored[0], 0x1p-7F);  // of zeros
  EXPECT_EQ(int4.stored[3], bf16(largest_of(std::span(w).subspan(96, 32)) / 7.5F));
  EXPECT_EQ(int4.of(1, 40), int4.stored[3]);

  const CodedScales fp8 = fit_scales(kFormats[1], w, columns, 0, pool);
  ASSERT_EQ(fp8.stored.size(), 3U);
  EXPECT_EQ(fp8.stored[2], bf16(largest_of(std::span(w).subspan(128, 64)) / 448.0F));

  const float largest = largest_of(w);
  const CodedScales nvfp4 = fit_scales(kFormats[2], w, columns, largest, pool);
  ASSERT_EQ(nvfp4.stored.size(), 12U);
  EXPECT_NEAR(nvfp4.divisor, 448 * 6 / largest, 0.01F * nvfp4.divisor);
  EXPECT_EQ(nvfp4.stored[0], 0.125F);  // of zeros
  for (const float s : nvfp4.stored) EXPECT_EQ(e4m3_to_float(float_to_e4m3(s)), s);
  EXPECT_GT(*std::ranges::max_element(nvfp4.stored), 400.0F);  // the whole range of E4M3 is used
  EXPECT_EQ(fit_scales(kFormats[2], std::vector<float>(64), columns, 0, pool).divisor, 1.0F);
}

TEST(CodedFormats, RoundingIsNearestUpToTheQuotientsBf16) {
  const std::int64_t columns = 64;
  const std::vector<float> w = some_weights(5, columns);
  ThreadPool pool(2);
  for (const CodedFormat& format : kFormats) {
    const CodedScales scales = fit_scales(format, w, columns, largest_of(w), pool);
    const std::vector<std::uint8_t> codes = round_to_nearest(format, w, columns, scales, pool);
    ASSERT_EQ(codes.size(), w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      const float scale =
          scales.of(static_cast<std::int64_t>(i) / columns, static_cast<std::int64_t>(i) % columns);
      const float error = std::abs(w[i] - level_of(format.kind, codes[i]) * scale);
      float least = 1e9F;
      for (const Level& l : levels(format.kind)) least = std::min(least, std::abs(w[i] - l.value * scale));
      EXPECT_LE(error, least + std::abs(w[i]) * 0x1p-7F) << format.name() << ' ' << i;
    }
  }
}

TEST(CodedFormats, PartsHaveTheDeclaredBytes) {
  const std::int64_t rows = 3, columns = 64;
  const std::vector<float> w = some_weights(rows, columns);
  ThreadPool pool(1);
  for (CodedFormat format : kFormats) {
    format.coded_inputs = format.kind == CodeKind::kNvfp4;
    const CodedScales scales = fit_scales(format, w, columns, largest_of(w), pool);
    const auto codes = round_to_nearest(format, w, columns, scales, pool);
    const std::vector<CodedPart> parts = parts_of(format, rows, columns);
    const auto bytes = pack(format, codes, columns, scales, 3.5F);
    ASSERT_EQ(bytes.size(), parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i)
      EXPECT_EQ(bytes[i].size(), parts[i].bytes()) << parts[i].name;
  }
}

TEST(CodedFormats, Int4PacksEightColumnsAWordLowestFirst) {
  const CodedFormat format{CodeKind::kInt4, 32};
  std::vector<std::uint8_t> codes(32, 8);
  codes[0] = 0;   // −8
  codes[1] = 15;  // 7
  CodedScales scales;
  scales.stored = {1.5F};
  scales.columns_per_scale = 32;
  const auto parts = pack(format, codes, 32, scales);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0][0], std::byte{0xF0});
  EXPECT_EQ(parts[0][1], std::byte{0x88});
  EXPECT_THAT(parts[1], ElementsAre(std::byte{0xC0}, std::byte{0x3F}));
  EXPECT_EQ(parts[2][0], std::byte{1});
  EXPECT_EQ(parts[2][8], std::byte{32});
}

}  // namespace
}  // namespace wring::quantize
