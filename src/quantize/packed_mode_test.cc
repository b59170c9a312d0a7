// Packed mode over whole quantized models: the same bits however the work is cut, near exact mode, and not
// the same as exact mode (or nothing would have been packed). It lives in this room because the models are
// made by the quantizers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/engine.h"
#include "quantize/testing.h"
#include "quantize/write_gguf.h"

namespace wring::quantize {
namespace {

using engine::ComputeMode;
using engine::Logits;
using engine::TokenId;
using formats::QuantType;

class PackedMode : public ::testing::TestWithParam<const char*> {
 protected:
  PackedMode() {
    for (int i = 0; i < 100; ++i) ids_.push_back((i * 7919 + i * i) % 96);
    testing::write_small_llama(scratch_ / "hf");
    const model::Model source = model::Model::open(scratch_ / "hf");
    ThreadPool pool(2);
    PlanOptions options;
    options.deploy = true;
    // Keys in another type than queries and values: one input in all forms.
    options.keep.push_back(parse_keep_rule("*k_proj=bf16"));
    QuantPlan plan = make_plan(source.spec(), parse_recipe(GetParam()), options);
    settle_plan(plan, largest_magnitudes(source, plan, pool, silent_progress()));
    write_gguf(source, plan, nullptr, scratch_ / "m.gguf", pool, silent_progress());
  }

  std::vector<float> logits(engine::Engine& engine, std::size_t chunk) const {
    std::vector<float> out;
    const engine::SequenceId s = engine.add_sequence();
    for (std::size_t at = 0; at < ids_.size(); at += chunk) {
      const auto part = std::span(ids_).subspan(at, std::min(chunk, ids_.size() - at));
      const engine::StepResult r = engine.step({{{s, static_cast<std::int64_t>(at), part, Logits::kAll}}});
      for (std::int64_t i = 0; i < r.logits.count; ++i)
        out.insert(out.end(), r.logits.row(i).begin(), r.logits.row(i).end());
      engine.commit(s, static_cast<std::int64_t>(part.size()));
    }
    engine.remove_sequence(s);
    return out;
  }

  testing::ScratchFolder scratch_;
  std::vector<TokenId> ids_;
};

INSTANTIATE_TEST_SUITE_P(Recipes, PackedMode, ::testing::Values("q4_k", "q6_k", "q8_0"));

TEST_P(PackedMode, GivesTheSameBitsHoweverTheWorkIsCut) {
  const model::Model m = model::Model::open(scratch_ / "m.gguf");
  engine::Engine one(m, {.compute = ComputeMode::kPacked, .threads = 1});
  engine::Engine three(m, {.compute = ComputeMode::kPacked, .threads = 3});
  const std::vector<float> whole = logits(one, 512);
  for (const std::size_t chunk : {1, 6, 7, 64}) EXPECT_EQ(logits(three, chunk), whole) << chunk;

  // A batch mate, and a draft of which nothing is kept.
  const auto ids = std::span(ids_);
  const engine::SequenceId a = three.add_sequence(), b = three.add_sequence();
  three.step({{{a, 0, ids.subspan(50, 20), Logits::kNone}, {b, 0, ids.first(40), Logits::kNone}}});
  three.commit(b, 40);
  three.step({{{b, 40, ids.subspan(3, 5), Logits::kNone}}});
  three.commit(b, 0);
  const engine::StepResult r = three.step({{{b, 40, ids.subspan(40), Logits::kLast}}});
  EXPECT_TRUE(std::ranges::equal(r.logits.row(0), std::span(whole).last(96)));
}

TEST_P(PackedMode, IsNearExactModeWithinTheActivationsRounding) {
  const model::Model m = model::Model::open(scratch_ / "m.gguf");
  engine::Engine exact(m, {}), packed(m, {.compute = ComputeMode::kPacked});
  const std::vector<float> a = logits(exact, 512), b = logits(packed, 512);
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(double{a[i]} - b[i], 2);
    size += std::pow(double{a[i]}, 2);
  }
  // Codes of 8 bits round a bell-shaped block of 32 by about 0.6 % of its size; a few layers of that.
  EXPECT_LT(std::sqrt(difference / size), 0.03);
  EXPECT_GT(std::sqrt(difference / size), 1e-4);
}

TEST_P(PackedMode, TheCacheIsInTheTypeThatWasAskedFor) {
  const model::Model m = model::Model::open(scratch_ / "m.gguf");
  std::uint64_t bytes[3];
  std::vector<float> values[3];
  const QuantType types[] = {QuantType::kF32, QuantType::kF16, QuantType::kBF16};
  for (int i = 0; i < 3; ++i) {
    engine::Engine engine(m, {.compute = ComputeMode::kPacked, .kv_type = types[i]});
    const engine::SequenceId s = engine.add_sequence();
    const engine::StepResult r = engine.step({{{s, 0, ids_, Logits::kLast}}});
    values[i].assign(r.logits.row(0).begin(), r.logits.row(0).end());
    bytes[i] = engine.memory().kv_bytes;
  }
  EXPECT_EQ(bytes[0], 2 * bytes[1]);
  EXPECT_EQ(bytes[1], bytes[2]);
  EXPECT_NE(values[0], values[1]);
  EXPECT_NE(values[1], values[2]);
}

}  // namespace
}  // namespace wring::quantize
