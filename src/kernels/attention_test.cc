// Attention: equal to the bit on every level and however queries are cut into calls; near the true softmax;
// what a query does not see has no influence, whatever lies in memory there.
#include <algorithm>
#include <cmath>
#include <memory>

#include "base/floats.h"
#include "kernels/test_support.h"

namespace wring::kernels {
namespace {

struct Shape {
  int context = 70;  // positions in all
  int queries = 5;   // the last ones
  int group = 3;
  int head_dim = 64;
  int value_dim = 64;
  int window = 0;
  float softcap = 0;
  bool sinks = false;
  formats::QuantType kv = formats::QuantType::kF32;
  SumOrder order = SumOrder::kSixteen;
};

float rounded(float value, formats::QuantType type) {
  if (type == formats::QuantType::kF16) return f16_to_float(float_to_f16(value));
  if (type == formats::QuantType::kBF16) return bf16_to_float(float_to_bf16(value));
  return value;
}

// Keys and values in pages, queries, and one call's arguments.
class Sequence {
 public:
  Sequence(const Shape& shape, unsigned seed) : shape_(shape) {
    const auto n = static_cast<std::size_t>(shape.context);
    k_ = random_values(n * shape.head_dim, seed, 3.0F);
    v_ = random_values(n * shape.value_dim, seed + 1, 100.0F);
    q_ = random_values(static_cast<std::size_t>(shape.queries) * stride(), seed + 2, 3.0F);
    // What the cache holds is the truth: the type's own rounding is not attention's error.
    for (std::vector<float>* values : {&k_, &v_}) {
      for (float& value : *values) value = rounded(value, shape.kv);
    }
    sinks_ = random_values(static_cast<std::size_t>(shape.group), seed + 3, 2.0F);
    const std::size_t pages = (n + kPageTokens - 1) / kPageTokens;
    for (std::size_t page = 0; page < pages; ++page) {
      // What no position was written to holds NaN (all ones, in every type), as a page handed on from another
      // sequence might.
      const std::size_t bytes = kPageTokens * formats::info_of(shape.kv).block_bytes;
      k_pages_.emplace_back(bytes * shape.head_dim, std::byte{0xFF});
      v_pages_.emplace_back(bytes * shape.value_dim, std::byte{0xFF});
    }
    for (std::size_t i = 0; i < n; ++i) {
      reference().store_kv(shape.kv, &k_[i * shape.head_dim], &v_[i * shape.value_dim], shape.head_dim,
                           shape.value_dim, static_cast<int>(i % kPageTokens),
                           k_pages_[i / kPageTokens].data(), v_pages_[i / kPageTokens].data());
    }
    for (std::size_t page = 0; page < pages; ++page) {
      const bool below =
          static_cast<std::int64_t>((page + 1) * kPageTokens) <= lowest(shape.context - shape.queries);
      k_pointers_.push_back(below ? nullptr : k_pages_[page].data());
      v_pointers_.push_back(below ? nullptr : v_pages_[page].data());
    }
  }

  std::size_t stride() const { return static_cast<std::size_t>(shape_.group) * shape_.head_dim + 3; }
  std::size_t out_stride() const { return static_cast<std::size_t>(shape_.group) * shape_.value_dim + 2; }
  std::int64_t lowest(std::int64_t position) const {
    return shape_.window > 0 ? std::max<std::int64_t>(0, position - shape_.window + 1) : 0;
  }

  /// The results of all queries, `chunk` of them a call.
  std::vector<float> run(const KernelTable& table, int chunk) const {
    std::vector<float> out(static_cast<std::size_t>(shape_.queries) * out_stride(), -7.0F);
    for (int from = 0; from < shape_.queries; from += chunk) {
      AttentionArgs args = {};
      args.queries = std::min(chunk, shape_.queries - from);
      args.q = q_.data() + static_cast<std::size_t>(from) * stride();
      args.q_stride = stride();
      args.group = shape_.group;
      args.head_dim = shape_.head_dim;
      args.value_dim = shape_.value_dim;
      args.first_position = shape_.context - shape_.queries + from;
      args.window = shape_.window;
      args.kv_type = shape_.kv;
      args.order = shape_.order;
      args.k_pages = k_pointers_.data();
      args.v_pages = v_pointers_.data();
      args.scale = 1.0F / std::sqrt(static_cast<float>(shape_.head_dim));
      args.softcap = shape_.softcap;
      args.sinks = shape_.sinks ? sinks_.data() : nullptr;
      args.out = out.data() + static_cast<std::size_t>(from) * out_stride();
      args.out_stride = out_stride();
      const std::size_t floats =
          attention_scratch_floats(args.queries, args.group, args.head_dim, args.value_dim);
      std::vector<float> scratch(floats + 17,
                                 NAN);  // stale numbers must not matter; the last one is a sentinel
      scratch.back() = 12345.0F;
      args.scratch =
          scratch.data() + (64 - reinterpret_cast<std::uintptr_t>(scratch.data()) % 64) % 64 / sizeof(float);
      table.attention(args);
      EXPECT_EQ(scratch.back(), 12345.0F);
    }
    return out;
  }

  /// Value d of query i, head h, in float64 from the textbook's formula; `size` gets Σ p |v|.
  double truth(int i, int h, int d, double& size) const {
    const std::int64_t last = shape_.context - shape_.queries + i;
    std::vector<double> scores;
    double max = shape_.sinks ? sinks_[h] : -INFINITY;
    for (std::int64_t j = lowest(last); j <= last; ++j) {
      double s = 0;
      for (int e = 0; e < shape_.head_dim; ++e) {
        s += static_cast<double>(q_[static_cast<std::size_t>(i) * stride() + h * shape_.head_dim + e]) *
             k_[static_cast<std::size_t>(j) * shape_.head_dim + e];
      }
      s /= std::sqrt(static_cast<double>(shape_.head_dim));
      if (shape_.softcap != 0) s = shape_.softcap * std::tanh(s / shape_.softcap);
      scores.push_back(s);
      max = std::max(max, s);
    }
    double total = shape_.sinks ? std::exp(sinks_[h] - max) : 0;
    double out = 0;
    size = 0;
    for (std::size_t j = 0; j < scores.size(); ++j) {
      const double p = std::exp(scores[j] - max);
      const double v = v_[(static_cast<std::size_t>(lowest(last)) + j) * shape_.value_dim + d];
      total += p;
      out += p * v;
      size += p * std::fabs(v);
    }
    size /= total;
    return out / total;
  }

 private:
  Shape shape_;
  std::vector<float> k_, v_, q_, sinks_;
  std::vector<std::vector<std::byte>> k_pages_, v_pages_;
  std::vector<const void*> k_pointers_, v_pointers_;
};

std::vector<Shape> shapes() {
  std::vector<Shape> all = {
      {},
      {.context = 1, .queries = 1, .group = 1},
      {.context = 64, .queries = 64, .group = 1, .head_dim = 16, .value_dim = 8},
      {.context = 65, .queries = 2, .group = 7, .head_dim = 24, .value_dim = 20},
      {.context = 130, .queries = 33, .group = 4, .head_dim = 32, .value_dim = 33, .softcap = 3.0F},
      {.context = 513, .queries = 3, .group = 2, .head_dim = 80, .value_dim = 96},
      {.context = 600, .queries = 40, .group = 3, .sinks = true},
      {.context = 700, .queries = 70, .group = 2, .head_dim = 40, .value_dim = 128, .window = 100},
      {.context = 1300,
       .queries = 70,
       .group = 1,
       .head_dim = 7,
       .value_dim = 5,
       .window = 600,
       .softcap = 2.0F,
       .sinks = true},
      {.context = 1030, .queries = 1, .group = 5, .head_dim = 128, .value_dim = 64, .window = 7},
      {.context = 1100, .queries = 2, .group = 64, .head_dim = 32, .value_dim = 24},
  };
  const std::size_t plain = all.size();
  for (const formats::QuantType kv :
       {formats::QuantType::kF32, formats::QuantType::kF16, formats::QuantType::kBF16}) {
    for (std::size_t i = 0; i < plain; ++i) {
      all.push_back(all[i]);
      all.back().kv = kv;
      all.back().order = SumOrder::kRising;
    }
  }
  return all;
}

TEST(Attention, EveryLevelGivesTheReferencesBits) {
  unsigned seed = 20;
  for (const Shape& shape : shapes()) {
    const Sequence sequence(shape, seed += 10);
    const auto expected = sequence.run(reference(), shape.queries);
    for (const float value : expected) EXPECT_FALSE(std::isnan(value));
    for (const Level& level : levels()) {
      EXPECT_TRUE(same_bits(expected, sequence.run(*level.table, shape.queries)))
          << level.name << ", context " << shape.context;
    }
  }
}

TEST(Attention, AQueryDoesNotDependOnItsCompany) {
  unsigned seed = 20;
  for (const Shape& shape : shapes()) {
    const Sequence sequence(shape, seed += 10);
    for (const Level& level : levels()) {
      const auto expected = sequence.run(*level.table, shape.queries);
      for (const int chunk : {1, 7, 64}) {
        EXPECT_TRUE(same_bits(expected, sequence.run(*level.table, chunk)))
            << level.name << ", context " << shape.context << ", chunks of " << chunk;
      }
    }
  }
}

TEST(Attention, TheReferenceIsNearTheTruth) {
  unsigned seed = 20;
  for (const Shape& shape : shapes()) {
    const Sequence sequence(shape, seed += 10);
    const auto got = sequence.run(reference(), shape.queries);
    for (int i = 0; i < shape.queries; i += std::max(1, shape.queries / 5)) {
      for (int h = 0; h < shape.group; ++h) {
        for (int d = 0; d < shape.value_dim; d += 3) {
          double size = 0;
          const double expected = sequence.truth(i, h, d, size);
          const float value =
              got[static_cast<std::size_t>(i) * sequence.out_stride() + h * shape.value_dim + d];
          // Scores are known to a few 1e-6, which moves each probability by as much.
          ASSERT_NEAR(value, expected, 2e-5 * size + 1e-30) << "context " << shape.context << ", query " << i;
        }
      }
    }
  }
}

TEST(Attention, OutputBetweenHeadsIsLeftAlone) {
  const Shape shape;
  const Sequence sequence(shape, 5);
  for (const Level& level : levels()) {
    const auto out = sequence.run(*level.table, 2);
    for (int i = 0; i < shape.queries; ++i) {
      EXPECT_EQ(out[static_cast<std::size_t>(i) * sequence.out_stride() + shape.group * shape.value_dim],
                -7.0F)
          << level.name;
    }
  }
}

TEST(StoreKv, EveryLevelStoresTheSameBits) {
  for (const auto type : {formats::QuantType::kF32, formats::QuantType::kF16, formats::QuantType::kBF16}) {
    for (const int dim : {1, 8, 20, 64, 131}) {
      const auto n = static_cast<std::size_t>(dim);
      std::vector<float> k = random_values(n, 21, 1e6F), v = random_values(n, 22, 1e6F);
      k[n / 2] = INFINITY;
      v[n / 3] = NAN;
      const auto stored = [&](const KernelTable& table) {
        std::vector<std::byte> pages(2 * kPageTokens * n * sizeof(float), std::byte{0x5A});
        std::byte* v_page = pages.data() + kPageTokens * n * sizeof(float);
        for (const int slot : {0, 17, kPageTokens - 1})
          table.store_kv(type, k.data(), v.data(), dim, dim, slot, pages.data(), v_page);
        return pages;
      };
      for (const Level& level : levels())
        EXPECT_EQ(stored(*level.table), stored(reference()))
            << level.name << ' ' << formats::name_of(type) << ' ' << dim;
    }
  }
}

}  // namespace
}  // namespace wring::kernels
