// Packed mode: every level gives scalar's bits for every type and shape, extreme codes included, and scalar
// gives the product of the dequantized weights with the quantized activations.
#include "kernels/packed.h"

#include <cmath>
#include <limits>
#include <tuple>

#include "base/aligned_buffer.h"
#include "base/floats.h"
#include "formats/block_layouts.h"
#include "kernels/test_support.h"

namespace wring::kernels {

namespace {

using formats::QuantType;

std::vector<Level> packed_levels() {
  std::vector<Level> found = levels();
#ifdef WRING_HAS_SIMDE
  found.push_back({"simde-avx512", &simde_packed()});
#endif
  return found;
}

constexpr QuantType kTypes[] = {QuantType::kQ4_K, QuantType::kQ6_K, QuantType::kQ8_0};

void set_scales(QuantType type, std::byte* block, std::mt19937& random) {
  const auto scale = [&] {
    return float_to_f16(std::ldexp(1.0F + static_cast<float>(random() % 1000) / 1000, -6));
  };
  switch (type) {
    case QuantType::kQ4_K:
      reinterpret_cast<formats::BlockQ4_K*>(block)->d = scale();
      reinterpret_cast<formats::BlockQ4_K*>(block)->dmin = scale();
      break;
    case QuantType::kQ6_K:
      reinterpret_cast<formats::BlockQ6_K*>(block)->d = scale();
      break;
    default:
      reinterpret_cast<formats::BlockQ8_0*>(block)->d = scale();
  }
}

/// rows × columns of a type in a file's layout: random bits in the codes, or all of them `fill`.
struct Weights {
  Weights(QuantType t, std::size_t r, std::size_t c, unsigned seed, int fill = -1)
      : type(t), rows(r), columns(c) {
    std::mt19937 random(seed);
    row_bytes = static_cast<std::size_t>(formats::bytes_of(type, 1, columns));
    file.resize(rows * row_bytes);
    for (std::byte& b : file) b = static_cast<std::byte>(fill < 0 ? random() : static_cast<unsigned>(fill));
    const std::size_t block = formats::info_of(type).block_bytes;
    for (std::size_t at = 0; at < file.size(); at += block) set_scales(type, file.data() + at, random);
    pack();
  }
  void pack() {
    const std::size_t group = packed_group_bytes(type, columns);
    packed.reserve((rows + 15) / 16 * group);
    for (std::size_t first = 0; first < rows; first += 16) {
      const std::byte* pointers[16] = {};
      for (std::size_t i = 0; i < 16 && first + i < rows; ++i)
        pointers[i] = file.data() + (first + i) * row_bytes;
      pack_group(type, pointers, columns, packed.data() + first / 16 * group);
    }
  }
  QuantType type;
  std::size_t rows, columns, row_bytes;
  std::vector<std::byte> file;
  AlignedBuffer<std::byte> packed;
};

struct Activations {
  Activations(const KernelTable& table, const std::vector<float>& x, std::size_t columns)
      : tokens(x.size() / columns), buffer(chunks_of(columns) * tokens) {
    std::memset(static_cast<void*>(buffer.data()), 0, chunks_of(columns) * tokens * sizeof(ActivationChunk));
    rows = {buffer.data(), tokens, columns};
    for (std::size_t t = 0; t < tokens; ++t) table.quantize_row(x.data() + t * columns, rows, t);
  }
  const ActivationChunk& chunk(std::size_t token, std::size_t column) const {
    return *rows.at(column / 256, token);
  }
  float scale(std::size_t token, std::size_t column) const {
    return chunk(token, column).scales[column % 256 / 32];
  }
  int code(std::size_t token, std::size_t column) const { return chunk(token, column).codes[column % 256]; }

  std::size_t tokens;
  AlignedBuffer<ActivationChunk> buffer;
  QuantizedRows rows;
};

std::vector<float> product(const KernelTable& table, const Weights& w, const QuantizedRows& x,
                           std::size_t tokens) {
  std::vector<float> y(tokens * (w.rows + 3), -1.0F);
  table.packed_matmul(w.type, w.packed.data(), w.rows, x, tokens, y.data(), w.rows + 3);
  return y;
}

TEST(Packed, EveryLevelGivesScalarsBitsForEveryShape) {
  const std::tuple<std::size_t, std::size_t, std::size_t> shapes[] = {
      {1, 256, 1},
      {16, 256, 2},
      {17, 512, 3},
      {33, 768, 4},
      {40, 768, 5},
      {32, 512, 6},
      {16, 1536, 7},
      {16, 512, 12},
      {48, 512, 13},
      {33, 256, 64},
      {16, 2048, 100},
      {16, 11264, 26},
      // More tokens, and more chunks, than AVX-512 takes at a time, in a pair of groups, one alone and one
      // row.
      {49, 2304, 123}};
  for (const QuantType type : kTypes) {
    for (auto [rows, columns, tokens] : shapes) {
      if (type == QuantType::kQ8_0)
        columns += columns % 512 == 0 ? 32 : 96;  // a last chunk that is not whole
      const Weights w(type, rows, columns, 1);
      const Activations x(reference(), random_values(tokens * columns, 2), columns);
      const auto expected = product(reference(), w, x.rows, tokens);
      for (const Level& level : packed_levels()) {
        EXPECT_TRUE(same_bits(expected, product(*level.table, w, x.rows, tokens)))
            << level.name << ' ' << formats::name_of(type) << ' ' << rows << 'x' << columns << 'x' << tokens;
      }
    }
  }
}

/// 256 columns of some tokens, every code `code`.
Activations all_of(int code, std::size_t tokens) {
  Activations x(reference(), std::vector<float>(256 * tokens, 1.0F), 256);
  for (std::size_t t = 0; t < tokens; ++t) {
    ActivationChunk& chunk = *x.rows.at(0, t);
    std::fill_n(chunk.codes, 256, static_cast<std::int8_t>(code));
    std::fill_n(chunk.code_sums, 16, static_cast<std::int16_t>(16 * code));
  }
  return x;
}

TEST(Packed, ExtremeCodesDoNotSaturate) {
  // All-ones and all-zeros bit patterns are the largest and smallest codes of a type; 0x80 is −128 in Q8_0.
  for (const QuantType type : kTypes) {
    for (const int fill : {0x00, 0xFF, 0x7F, 0x80}) {
      const Weights w(type, 16, 256, 3, fill);
      for (const auto& [code, tokens] : {std::pair{127, 1U},
                                         {-127, 1U},
                                         {127, 3U},
                                         {-127, 3U},
                                         {127, 6U},
                                         {-127, 6U},
                                         {127, 16U},
                                         {-127, 16U}}) {
        const Activations x = all_of(code, tokens);
        const auto expected = product(reference(), w, x.rows, tokens);
        for (const Level& level : packed_levels()) {
          EXPECT_TRUE(same_bits(expected, product(*level.table, w, x.rows, tokens)))
              << level.name << ' ' << formats::name_of(type) << " fill " << fill << " code " << code
              << " tokens " << tokens;
        }
      }
    }
  }
}

TEST(Packed, TheLargestSumsOfASuperBlockAreExact) {
  // Q6_K's code −32 with scale −128 in all of 32 columns: 16,646,144 of the 2^24 that float32 holds exactly.
  Weights w(QuantType::kQ6_K, 16, 256, 3, 0);
  for (std::size_t row = 0; row < w.rows; ++row) {
    auto* block = reinterpret_cast<formats::BlockQ6_K*>(w.file.data() + row * w.row_bytes);
    std::fill(std::begin(block->scales), std::end(block->scales), std::int8_t{-128});
  }
  w.pack();
  for (const unsigned tokens : {1U, 6U, 16U}) {
    for (const int code : {127, -127}) {
      const Activations x = all_of(code, tokens);
      const auto expected = product(reference(), w, x.rows, tokens);
      EXPECT_GT(std::fabs(expected[0]), 0.0F);
      for (const Level& level : packed_levels())
        EXPECT_TRUE(same_bits(expected, product(*level.table, w, x.rows, tokens)))
            << level.name << ' ' << tokens;
    }
  }
}

TEST(Packed, ScalarIsTheProductOfDequantizedWeightsAndQuantizedActivations) {
  for (const QuantType type : kTypes) {
    constexpr std::size_t kRows = 21, kColumns = 512, kTokens = 2;
    const Weights w(type, kRows, kColumns, 4);
    const Activations x(reference(), random_values(kTokens * kColumns, 5, 10.0F), kColumns);
    const auto y = product(reference(), w, x.rows, kTokens);
    for (std::size_t r = 0; r < kRows; ++r) {
      std::vector<float> row(kColumns);
      reference().dequantize(type, w.file.data() + r * w.row_bytes, row.data(), kColumns);
      for (std::size_t t = 0; t < kTokens; ++t) {
        double sum = 0, size = 0;
        for (std::size_t c = 0; c < kColumns; ++c) {
          const double term = static_cast<double>(row[c]) * x.code(t, c) * static_cast<double>(x.scale(t, c));
          sum += term;
          size += std::fabs(term);
        }
        // Q4_K's scale·q and min parts are larger than their difference.
        EXPECT_NEAR(y[t * (kRows + 3) + r], sum, 1e-5 * size) << formats::name_of(type) << " row " << r;
      }
    }
  }
}

TEST(Packed, ARowAndATokenDoNotDependOnTheirCompany) {
  for (const QuantType type : kTypes) {
    constexpr std::size_t kRows = 32, kColumns = 512, kTokens = 11;
    const Weights w(type, kRows, kColumns, 6);
    const Activations x(reference(), random_values(kTokens * kColumns, 7), kColumns);
    for (const Level& level : packed_levels()) {
      const auto together = product(*level.table, w, x.rows, kTokens);
      for (std::size_t t = 0; t < kTokens; ++t) {
        const auto alone = product(*level.table, w, x.rows.from(t), 1);
        EXPECT_TRUE(same_bits(together.data() + t * (kRows + 3), alone.data(), kRows))
            << level.name << ' ' << t;
        float second[16];
        level.table->packed_matmul(type, w.packed.data() + packed_group_bytes(type, kColumns), 16,
                                   x.rows.from(t), 1, second, 16);
        EXPECT_TRUE(same_bits(alone.data() + 16, second, 16)) << level.name << ' ' << t;
      }
    }
  }
}

TEST(Packed, ActivationsAreRoundedToTheNearestCodeOfTheBestScale) {
  const auto x = random_values(32 * 40, 8);
  const Activations q(reference(), x, x.size());
  int other = 0;
  for (std::size_t block = 0; block < x.size(); block += 32) {
    float largest = 0;
    for (std::size_t i = block; i < block + 32; ++i) largest = std::max(largest, std::fabs(x[i]));
    const auto error_of = [&](float scale) {
      double sum = 0;
      for (std::size_t i = block; i < block + 32; ++i) {
        const double error = x[i] - static_cast<double>(scale) * std::nearbyint(x[i] / scale);
        sum += error * error;
      }
      return sum;
    };
    const float scale = q.scale(0, block);
    double least = error_of(largest / 127.0F);
    for (const float code : {126.0F, 125.0F, 124.0F}) least = std::min(least, error_of(largest / code));
    EXPECT_LE(error_of(scale), least * 1.001);
    other += scale != largest / 127.0F;
    for (std::size_t i = block; i < block + 32; ++i) {
      EXPECT_LE(std::abs(q.code(0, i)), 127);
      EXPECT_LE(std::fabs(static_cast<float>(q.code(0, i)) * scale - x[i]), 0.5001F * scale);
    }
  }
  EXPECT_GT(other, 10);
}

TEST(Packed, QuantizedActivationsAreTheSameOnEveryLevelWhateverTheyHold) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = random_values(32 * 64, 9, 1e30F);
  x[3] = NAN;
  x[40] = kInfinity;
  x[70] = -kInfinity;
  for (int i = 96; i < 128; ++i) x[i] = 0.0F;
  for (int i = 128; i < 160; ++i) x[i] = 1e-40F;
  for (int i = 160; i < 192; ++i) x[i] = std::numeric_limits<float>::max();
  for (int i = 192; i < 224; ++i) x[i] = static_cast<float>((i - 192) * 3 % 100);  // scale 1 is the best
  x[192] = 127.0F;
  x[193] = 1.5F;  // halves go to even
  x[194] = 2.5F;
  const Activations expected(reference(), x, x.size());
  for (const std::size_t bad : {0, 32, 64}) {
    EXPECT_TRUE(std::isnan(expected.scale(0, bad)));
    EXPECT_EQ(expected.code(0, bad + 1), 0);
  }
  EXPECT_EQ(expected.scale(0, 96), 0.0F);
  EXPECT_EQ(expected.scale(0, 128), 0.0F);
  EXPECT_GE(expected.code(0, 160), 124);
  EXPECT_TRUE(std::isfinite(expected.scale(0, 160)));
  EXPECT_EQ(expected.code(0, 193), 2);
  EXPECT_EQ(expected.code(0, 194), 2);
  for (const Level& level : packed_levels()) {
    const Activations got(*level.table, x, x.size());
    for (std::size_t at = 0; at < x.size(); at += 256) {
      const ActivationChunk &a = expected.chunk(0, at), &b = got.chunk(0, at);
      EXPECT_EQ(std::memcmp(a.codes, b.codes, sizeof(a.codes)), 0) << level.name;
      EXPECT_EQ(std::memcmp(a.code_sums, b.code_sums, sizeof(a.code_sums)), 0) << level.name;
      EXPECT_TRUE(same_bits(a.scales, b.scales, 8)) << level.name;
      EXPECT_TRUE(same_bits(a.sums, b.sums, 8)) << level.name;
    }
  }
}

}  // namespace
}  // namespace wring::kernels
