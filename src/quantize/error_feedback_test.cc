// GPTQ's parts against their definitions written out in float64, and the whole on a small model.
#include "quantize/error_feedback.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "quantize/block_feedback.h"
#include "quantize/block_quantizer.h"
#include "quantize/testing.h"
#include "quantize/write_coded.h"

namespace wring::quantize {
namespace {

using formats::QuantType;
using testing::bytes_of_file;
using testing::ScratchFolder;

std::vector<float> normals(std::size_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(n);
  for (float& v : out) v = normal(generator);
  return out;
}

/// Inputs whose columns hang together, as those of a model do.
std::vector<float> correlated(std::size_t rows, std::size_t columns, unsigned seed) {
  std::vector<float> x = normals(rows * columns, seed);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 1; c < columns; ++c) x[r * columns + c] += 0.8F * x[r * columns + c - 1];
  }
  return x;
}

Hessian hessian_of(const std::vector<float>& x, std::size_t columns) {
  ThreadPool pool(2);
  HessianCollector collector(0, pool);
  const auto rows = static_cast<std::int64_t>(x.size() / columns);
  collector.on_input(0, model::Site::kO, 0, {x.data(), rows, static_cast<std::int64_t>(columns), columns});
  return *collector.find(model::Site::kO, 0);
}

TEST(Hessian, IsTheSumOfOuterProducts) {
  const std::size_t rows = 37, columns = 70;
  const std::vector<float> x = normals(rows * columns, 1);
  const Hessian h = hessian_of(x, columns);
  EXPECT_EQ(h.tokens, rows);
  for (std::size_t i = 0; i < columns; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (std::size_t r = 0; r < rows; ++r) sum += double{x[r * columns + i]} * double{x[r * columns + j]};
      ASSERT_NEAR(h.at(i, j), sum, 1e-4) << i << ' ' << j;
    }
  }
}

TEST(Hessian, OfAnotherBlockOrNothingIsNotTaken) {
  ThreadPool pool(1);
  HessianCollector collector(3, pool);
  const std::vector<float> x(8, 1.0F);
  collector.on_input(2, model::Site::kO, 0, {x.data(), 2, 4, 4});
  collector.on_input(3, model::Site::kKept, 0, {x.data(), 2, 4, 4});
  EXPECT_EQ(collector.find(model::Site::kO, 0), nullptr);
  EXPECT_EQ(collector.find(model::Site::kKept, 0), nullptr);
  collector.on_input(3, model::Site::kExpertDown, 5, {x.data(), 2, 4, 4});
  EXPECT_EQ(collector.find(model::Site::kExpertDown, 5)->tokens, 2U);
}

TEST(InverseFactor, IsTheFactorOfTheDampedInverse) {
  const std::size_t n = 24;
  Hessian h = hessian_of(correlated(50, n, 2), n);
  for (std::size_t j = 0; j < n; ++j)
    h.lower[std::max<std::size_t>(7, j) * n + std::min<std::size_t>(7, j)] = 0;  // dead
  std::vector<std::int64_t> columns;
  for (std::size_t c = 0; c < n; ++c) columns.push_back(static_cast<std::int64_t>((c * 5 + 3) % n));
  const auto f = factor_inverse(h, columns, 0.01, ColumnOrder::kFalling);
  ASSERT_TRUE(f);
  double mean = 0;
  for (std::size_t c = 0; c < n; ++c) mean += h.at(c, c) / static_cast<double>(n);
  const auto damped = [&](std::size_t i, std::size_t j) {
    const auto a = static_cast<std::size_t>(columns[static_cast<std::size_t>(f->order[i])]),
               b = static_cast<std::size_t>(columns[static_cast<std::size_t>(f->order[j])]);
    if (a == 7 || b == 7) return a == b ? 1.0 : 0.0;
    return h.at(a, b) + (i == j ? 0.01 * mean : 0.0);
  };
  for (std::size_t i = 0; i + 1 < n; ++i) {
    const auto column = [&](std::size_t p) {
      return static_cast<std::size_t>(columns[static_cast<std::size_t>(f->order[p])]);
    };
    EXPECT_GE(h.at(column(i), column(i)), h.at(column(i + 1), column(i + 1)));
  }
  EXPECT_TRUE(f->dead[static_cast<std::size_t>(std::ranges::find(columns, 7) - columns.begin())]);
  // (UᵀU) H = 1.
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < n; ++k) {
        double inverse = 0;
        for (std::size_t l = 0; l <= std::min(i, k); ++l)
          inverse += double{f->upper[l * n + i]} * double{f->upper[l * n + k]};
        sum += inverse * damped(k, j);
      }
      ASSERT_NEAR(sum, i == j ? 1 : 0, 2e-4) << i << ' ' << j;
    }
  }
}

TEST(InverseFactor, IsDampedMoreWhereThatIsNotEnoughAndGivenUpWhereNothingIs) {
  const std::size_t n = 16;
  Hessian h = hessian_of(normals(3 * n, 4), n);  // of rank 3
  const auto f = factor_inverse(h, {}, 1e-18, ColumnOrder::kAsStored);
  if (f) {
    EXPECT_GT(f->damping, 1e-18);
  }
  h.lower[5 * n + 3] = NAN;
  EXPECT_FALSE(factor_inverse(h, {}, 0.01, ColumnOrder::kAsStored));
}

class Grid : public ::testing::TestWithParam<QuantType> {};

TEST_P(Grid, SaysWhatTheBlocksHold) {
  const std::size_t rows = 3, columns = 512;
  const QuantType type = GetParam();
  ASSERT_TRUE(has_grid(type));
  const std::vector<float> w = normals(rows * columns, 5);
  const RowQuantizer quantizer(type, columns);
  std::vector<std::byte> blocks(rows * quantizer.row_bytes());
  for (std::size_t r = 0; r < rows; ++r)
    quantizer.quantize(w.data() + r * columns, blocks.data() + r * quantizer.row_bytes());
  const MatrixGrid grid = grid_of_blocks(type, blocks, rows, columns);
  ASSERT_EQ(grid.scales.size(), rows * columns / grid.group);
  std::mt19937 generator(6);
  std::vector<std::uint8_t> codes(rows * columns);
  for (std::uint8_t& c : codes) c = static_cast<std::uint8_t>(generator() % grid.levels.size());
  set_codes(type, codes, blocks, columns);
  std::vector<float> stored(rows * columns);
  for (std::size_t r = 0; r < rows; ++r)
    kernels::kernels().dequantize(type, blocks.data() + r * quantizer.row_bytes(),
                                  stored.data() + r * columns, columns);
  EXPECT_EQ(values_of(grid, codes), stored);
}

INSTANTIATE_TEST_SUITE_P(Types, Grid,
                         ::testing::Values(QuantType::kQ4_0, QuantType::kQ8_0, QuantType::kQ4_K,
                                           QuantType::kQ5_K, QuantType::kQ6_K, QuantType::kIQ4_NL,
                                           QuantType::kIQ4_XS));

MatrixGrid small_grid(std::size_t rows, std::size_t columns, std::vector<float> levels) {
  MatrixGrid grid{rows, columns, 8, std::move(levels), {}, {}};
  for (std::size_t i = 0; i < rows * columns / 8; ++i) {
    grid.scales.push_back(0.2F + 0.01F * static_cast<float>(i % 7));
    grid.offsets.push_back(0.1F * static_cast<float>(i % 3));
  }
  return grid;
}

/// The same by elimination of one column after the other from H⁻¹, in float64.
std::vector<std::uint8_t> by_definition(const std::vector<float>& weights, const MatrixGrid& grid,
                                        const Hessian& h, const InverseFactor& f) {
  const std::size_t n = grid.columns;
  double mean = 0;
  for (std::size_t c = 0; c < n; ++c) mean += h.at(c, c) / static_cast<double>(n);
  std::vector<std::uint8_t> codes(grid.rows * n);
  for (std::size_t r = 0; r < grid.rows; ++r) {
    std::vector<double> inverse(n * n), w(n);
    std::vector<std::vector<double>> a(n, std::vector<double>(2 * n));
    for (std::size_t i = 0; i < n; ++i) {
      w[i] = weights[r * n + i];
      for (std::size_t j = 0; j < n; ++j) a[i][j] = h.at(i, j) + (i == j ? f.damping * mean : 0);
      a[i][n + i] = 1;
    }
    for (std::size_t i = 0; i < n; ++i) {  // Gauss and Jordan
      const double pivot = a[i][i];
      for (double& v : a[i]) v /= pivot;
      for (std::size_t k = 0; k < n; ++k) {
        if (k == i) continue;
        const double times = a[k][i];
        for (std::size_t j = 0; j < 2 * n; ++j) a[k][j] -= times * a[i][j];
      }
    }
    for (std::size_t i = 0; i < n; ++i)
      std::copy_n(a[i].begin() + static_cast<std::ptrdiff_t>(n), n,
                  inverse.begin() + static_cast<std::ptrdiff_t>(i * n));
    for (const std::int32_t column : f.order) {
      const auto c = static_cast<std::size_t>(column), g = (r * n + c) / grid.group;
      const double scale = grid.scales[g], offset = grid.offsets[g];
      std::size_t best = 0;
      for (std::size_t l = 1; l < grid.levels.size(); ++l) {
        const auto distance = [&](std::size_t k) {
          return std::abs(w[c] - (scale * double{grid.levels[k]} - offset));
        };
        if (distance(l) < distance(best)) best = l;
      }
      codes[r * n + c] = static_cast<std::uint8_t>(best);
      const double error = (w[c] - (scale * double{grid.levels[best]} - offset)) / inverse[c * n + c];
      for (std::size_t k = 0; k < n; ++k) w[k] -= error * inverse[c * n + k];
      const std::vector<double> row(inverse.begin() + static_cast<std::ptrdiff_t>(c * n),
                                    inverse.begin() + static_cast<std::ptrdiff_t>((c + 1) * n));
      const double pivot = row[c];
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) inverse[i * n + j] -= row[i] * row[j] / pivot;
      }
    }
  }
  return codes;
}

TEST(ErrorFeedback, EqualsTheDefinition) {
  const std::size_t rows = 13, n = 32;
  const Hessian h = hessian_of(correlated(80, n, 7), n);
  const std::vector<float> weights = normals(rows * n, 8);
  ThreadPool pool(2);
  const std::vector<float> even = {-4, -3, -2, -1, 0, 1, 2, 3},
                           uneven = {-6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6};
  for (const std::vector<float>& levels : {even, uneven}) {
    const MatrixGrid grid = small_grid(rows, n, levels);
    for (const ColumnOrder order : {ColumnOrder::kAsStored, ColumnOrder::kFalling}) {
      const auto f = factor_inverse(h, {}, 0.01, order);
      ASSERT_TRUE(f);
      EXPECT_EQ(round_with_feedback(weights, grid, *f, pool), by_definition(weights, grid, h, *f));
    }
  }
}

TEST(ErrorFeedback, LosesLessThanRoundingAlone) {
  const std::size_t rows = 20, n = 64;
  const Hessian h = hessian_of(correlated(500, n, 9), n);
  const std::vector<float> weights = normals(rows * n, 10);
  const MatrixGrid grid = small_grid(rows, n, {-16, -12, -8, -4, 0, 4, 8, 12, 16});
  ThreadPool pool(2);
  const auto f = factor_inverse(h, {}, 0.01, ColumnOrder::kFalling);
  InverseFactor none = *f;  // no column passes anything on
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) none.upper[i * n + j] = 0;
  }
  const auto loss = [&](const InverseFactor& factor) {
    return output_error(weights, values_of(grid, round_with_feedback(weights, grid, factor, pool)), h, {},
                        pool);
  };
  EXPECT_LT(loss(*f), 0.5 * loss(none));
  EXPECT_EQ(output_error(weights, weights, h, {}, pool), 0);
}

TEST(ErrorFeedback, DeadColumnsAreZeros) {
  const std::size_t n = 8;
  std::vector<float> x = normals(40 * n, 11);
  for (std::size_t r = 0; r < 40; ++r) x[r * n + 2] = 0;
  const auto f = factor_inverse(hessian_of(x, n), {}, 0.01, ColumnOrder::kAsStored);
  ThreadPool pool(1);
  MatrixGrid grid{1, n, 8, {-2, -1, 0, 1, 2}, {1.0F}, {0.0F}};
  const std::vector<float> weights = {1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(round_with_feedback(weights, grid, *f, pool)[2], 2);  // the level 0
}

/// A small llama, and documents of ids for it.
class SmallModel : public ::testing::Test {
 protected:
  SmallModel() {
    testing::write_small_llama(scratch_ / "source");
    std::mt19937 generator(12);
    for (int d = 0; d < 3; ++d) {
      documents_.emplace_back();
      for (int i = 0; i < 40; ++i)
        documents_.back().push_back(static_cast<engine::TokenId>(generator() % 96));
    }
  }
  QuantizeReport write(const std::string& recipe, const std::string& name, int threads,
                       const FeedbackOptions& options = {}) {
    const model::Model source = model::Model::open(scratch_ / "source");
    ThreadPool pool(threads);
    const QuantPlan plan =
        testing::settled_plan(source, make_plan(source.spec(), parse_recipe(recipe), {}), pool);
    BlockFeedback feedback(source, plan, documents_, options, threads);
    return write_gguf(source, plan, {nullptr, &feedback}, scratch_ / name, pool, silent_progress());
  }
  ScratchFolder scratch_;
  std::vector<std::vector<engine::TokenId>> documents_;
};

TEST_F(SmallModel, IsWrittenTheSameByAnyNumberOfThreads) {
  write("q4_k+imatrix+gptq", "one.gguf", 1);
  write("q4_k+imatrix+gptq", "three.gguf", 3);
  EXPECT_EQ(bytes_of_file(scratch_ / "one.gguf"), bytes_of_file(scratch_ / "three.gguf"));
}

TEST_F(SmallModel, OptionsChangeWhatIsWritten) {
  const auto written = [&](const std::string& recipe, const FeedbackOptions& options) {
    write(recipe, "m.gguf", 2, options);
    return bytes_of_file(scratch_ / "m.gguf");
  };
  const std::string usual = written("iq4_xs+gptq", {});
  EXPECT_NE(usual, written("iq4_xs+imatrix+gptq", {}));
  EXPECT_NE(usual, written("iq4_xs+gptq", {.damping = 1.0}));
  EXPECT_NE(usual, written("iq4_xs+gptq", {.order = ColumnOrder::kAsStored}));
}

TEST_F(SmallModel, AFolderOfCodesIsReadAsItWasRounded) {
  const model::Model source = model::Model::open(scratch_ / "source");
  ThreadPool pool(2);
  const QuantPlan plan =
      testing::settled_plan(source, make_plan(source.spec(), parse_recipe("int4-gptq"), {}), pool);
  BlockFeedback feedback(source, plan, documents_, {}, 2);
  const QuantizeReport report =
      write_coded(source, plan, nullptr, scratch_ / "folder", pool, silent_progress(),
                  [&](const PlannedTensor& planned, std::span<const float>, const CodedScales&) {
                    return feedback.take(planned, silent_progress()).codes;
                  });
  const QuantizeReport plain =
      write_coded(source, plan, nullptr, scratch_ / "plain", pool, silent_progress());
  EXPECT_GT(report.relative_error, plain.relative_error);  // of weights; outputs are what it is after
  const model::Model written = model::Model::open(scratch_ / "folder"),
                     rounded = model::Model::open(scratch_ / "plain");
  const auto distance = [&](const model::Model& m) {
    double sum = 0;
    const std::vector<float> a = testing::all_logits(m), b = testing::all_logits(source);
    for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
  };
  EXPECT_LT(distance(written), distance(rounded));
}

}  // namespace
}  // namespace wring::quantize
