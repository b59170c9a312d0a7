// Packed mode over whole quantized models: the same bits however the work is cut, near exact mode, and not
// the same as exact mode (or nothing would have been packed). It lives in this room because the models are
// made by the quantizers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/engine.h"
#include "quantize/testing.h"
#include "quantize/write_gguf.h"
#include "quantize/write_hf.h"

namespace wring::quantize {
namespace {

using engine::ComputeMode;
using engine::Logits;
using engine::TokenId;
using formats::QuantType;

/// A recipe, and whether BF16 is multiplied as such. No CPU of a test has to: the kernels are then scalar's
/// with the reference of such a CPU's.
struct Case {
  const char* recipe;
  bool bf16_dots;
};

const kernels::KernelTable& table_with_bf16() {
  static const kernels::KernelTable table = [] {
    kernels::KernelTable t = kernels::kernels_for(Isa::kScalar);
    t.bf16 = &kernels::bf16_reference();
    return t;
  }();
  return table;
}

class PackedMode : public ::testing::TestWithParam<Case> {
 protected:
  PackedMode() {
    for (int i = 0; i < 100; ++i) ids_.push_back((i * 7919 + i * i) % 96);
    testing::write_small_llama(scratch_ / "hf");
    const model::Model source = model::Model::open(scratch_ / "hf");
    ThreadPool pool(2);
    const Recipe recipe = parse_recipe(GetParam().recipe);
    PlanOptions options;
    options.deploy = recipe.type != QuantType::kBF16;
    // Keys in another type than queries and values: one input in all forms.
    if (options.deploy) options.keep.push_back(parse_keep_rule("*k_proj=bf16"));
    QuantPlan plan = make_plan(source.spec(), recipe, options);
    settle_plan(plan, largest_magnitudes(source, plan, pool, silent_progress()));
    write_gguf(source, plan, nullptr, scratch_ / "m.gguf", pool, silent_progress());
  }

  static engine::EngineOptions packed_options() {
    engine::EngineOptions options = {.compute = ComputeMode::kPacked};
    if (GetParam().bf16_dots) options.kernels = &table_with_bf16();
    return options;
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

INSTANTIATE_TEST_SUITE_P(Recipes, PackedMode,
                         ::testing::Values(Case{"q4_k", false}, Case{"q6_k", false}, Case{"q8_0", false},
                                           Case{"q4_k", true}, Case{"bf16", true}),
                         [](const auto& test) {
                           return std::string(test.param.recipe) + (test.param.bf16_dots ? "_bf16_dots" : "");
                         });

TEST_P(PackedMode, GivesTheSameBitsHoweverTheWorkIsCut) {
  const model::Model m = model::Model::open(scratch_ / "m.gguf");
  engine::EngineOptions options = packed_options();
  options.threads = 1;
  engine::Engine one(m, options);
  options.threads = 3;
  engine::Engine three(m, options);
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
  engine::Engine exact(m, {}), packed(m, packed_options());
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
    engine::EngineOptions of_type = packed_options();
    of_type.kv_type = types[i];
    engine::Engine engine(m, of_type);
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

// Experts' integer products, with few rows each, between recurrent and attention layers.
TEST(PackedModeExperts, GiveTheSameBitsHoweverTheWorkIsCut) {
  const testing::ScratchFolder scratch;
  testing::write_random_model(scratch / "hf", testing::small_moe_config("qwen3_5_moe_text"));
  testing::to_quantized_file(model::Model::open(scratch / "hf"), "q4_k", scratch / "m.gguf");
  const model::Model m = model::Model::open(scratch / "m.gguf");
  std::vector<TokenId> ids;
  for (int i = 0; i < 90; ++i) ids.push_back((i * 7919 + i * i) % 96);
  const auto last = [&](int threads, std::size_t chunk) {
    engine::Engine engine(m, {.compute = ComputeMode::kPacked, .threads = threads});
    const engine::SequenceId s = engine.add_sequence();
    std::vector<float> out;
    for (std::size_t at = 0; at < ids.size(); at += chunk) {
      const auto part = std::span(ids).subspan(at, std::min(chunk, ids.size() - at));
      const engine::StepResult r = engine.step({{{s, static_cast<std::int64_t>(at), part, Logits::kLast}}});
      out.assign(r.logits.row(0).begin(), r.logits.row(0).end());
      engine.commit(s, static_cast<std::int64_t>(part.size()));
    }
    return out;
  };
  const std::vector<float> whole = last(1, 512);
  for (const std::size_t chunk : {1, 7, 64}) EXPECT_EQ(last(3, chunk), whole) << chunk;
}

void write_bf16_hf(const model::Model& source, const std::filesystem::path& folder, ThreadPool& pool) {
  QuantPlan plan = make_convert_plan(source.spec(), QuantType::kBF16, FileForm::kHf, 1);
  const auto is_vector = [](const PlannedTensor& t) { return t.role == TensorRole::kVector; };
  for (PlannedTensor& t : plan.tensors) {
    if (is_vector(t)) t.asked = t.used = QuantType::kF32;  // as in the GGUF file
  }
  std::stable_partition(plan.tensors.begin(), plan.tensors.end(), is_vector);  // wider types first
  settle_plan(plan, largest_magnitudes(source, plan, pool, silent_progress()));
  write_hf(source, plan, QuantType::kBF16, folder, pool, silent_progress());
}

TEST(PackedModeBf16, RowsInAnotherOrderGiveTheSameBits) {
  // Query and key rows lie in pairs order in a GGUF file of this architecture.
  testing::ScratchFolder scratch;
  testing::write_small_llama(scratch / "f32");
  const model::Model source = model::Model::open(scratch / "f32");
  ThreadPool pool(2);
  QuantPlan gguf = make_plan(source.spec(), parse_recipe("bf16"), {});
  settle_plan(gguf, largest_magnitudes(source, gguf, pool, silent_progress()));
  write_gguf(source, gguf, nullptr, scratch / "m.gguf", pool, silent_progress());
  write_bf16_hf(source, scratch / "hf", pool);

  const model::Model plain = model::Model::open(scratch / "hf"),
                     paired = model::Model::open(scratch / "m.gguf");
  ASSERT_GT(paired.weight("model.layers.0.self_attn.q_proj.weight").paired_head_dim, 0);
  const engine::EngineOptions options = {
      .compute = ComputeMode::kPacked, .threads = 2, .kernels = &table_with_bf16()};
  engine::Engine a(plain, options), b(paired, options);
  EXPECT_EQ(a.products(), engine::Products::kBf16);
  EXPECT_EQ(b.products(), engine::Products::kBf16);
  const std::vector<TokenId> ids = {5, 9, 20, 17, 3, 31, 0, 44};
  const auto logits = [&](engine::Engine& engine, std::size_t count) {
    const engine::StepResult r =
        engine.step({{{engine.add_sequence(), 0, std::span(ids).first(count), Logits::kLast}}});
    return std::vector<float>(r.logits.row(0).begin(), r.logits.row(0).end());
  };
  for (const std::size_t count : {std::size_t{1}, ids.size()})
    EXPECT_EQ(logits(a, count), logits(b, count)) << count;
}

TEST(PackedModeBf16, ExactModeDoesNotKnowIt) {
  testing::ScratchFolder scratch;
  testing::write_small_llama(scratch / "f32");
  const model::Model source = model::Model::open(scratch / "f32");
  ThreadPool pool(2);
  write_bf16_hf(source, scratch / "hf", pool);
  const model::Model m = model::Model::open(scratch / "hf");
  engine::Engine with(m, {.kernels = &table_with_bf16()}), without(m, {});
  EXPECT_EQ(with.products(), engine::Products::kFloats);
  const std::vector<TokenId> ids = {5, 9, 20};
  const engine::StepResult a = with.step({{{with.add_sequence(), 0, ids, Logits::kLast}}});
  const engine::StepResult b = without.step({{{without.add_sequence(), 0, ids, Logits::kLast}}});
  EXPECT_TRUE(std::ranges::equal(a.logits.row(0), b.logits.row(0)));
}

}  // namespace
}  // namespace wring::quantize
