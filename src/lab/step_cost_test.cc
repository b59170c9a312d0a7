// Steps are timed and dropped again, sizes come back in the order asked for, and more positions cost more.
#include "lab/step_cost.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/model_files.h"
#include "engine/testing.h"

namespace wring::lab {
namespace {

using engine::testing::data;

TEST(StepCost, TimesEverySizeInTheOrderAskedForAndLeavesNoSequence) {
  const model::Model model = model::Model::open(data("arch/llama"));
  engine::Engine engine(model, {.compute = engine::ComputeMode::kExact, .threads = 1});
  const auto costs = measure_steps(engine, 8, {16, 1}, 5, silent_progress());
  ASSERT_EQ(costs.size(), 2U);
  EXPECT_EQ(costs[0].positions, 16);
  EXPECT_EQ(costs[1].positions, 1);
  EXPECT_EQ(costs[1].times_one.median, 1.0);
  EXPECT_GT(costs[0].times_one.median, 1.0);
  EXPECT_GT(costs[0].ms.low, 0.0);
  EXPECT_EQ(engine.memory().kv_bytes, 0U);
}

TEST(StepCost, RefusesWhatTheContextCannotHold) {
  const model::Model model = model::Model::open(data("arch/llama"));
  engine::Engine engine(model, {.compute = engine::ComputeMode::kExact, .threads = 1});
  EXPECT_THROW(measure_steps(engine, 1 << 20, {2}, 1, silent_progress()), Error);
}

}  // namespace
}  // namespace wring::lab
