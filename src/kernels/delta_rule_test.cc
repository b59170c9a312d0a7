// The gated delta rule: every level gives the reference's bits, wherever calls begin, and the reference
// agrees with the definition in float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/kernel_table.h"
#include "kernels/test_support.h"

namespace wring::kernels {
namespace {

struct Inputs {
  std::size_t key_dim, value_dim, steps;
  std::vector<float> q = random_values(key_dim * steps, 1), k = random_values(key_dim * steps, 2),
                     v = random_values(value_dim * steps, 3), decay, beta;
  Inputs(std::size_t keys, std::size_t values, std::size_t n) : key_dim(keys), value_dim(values), steps(n) {
    for (float& x : k) x /= std::sqrt(static_cast<float>(keys));
    for (const float x : random_values(n, 4)) decay.push_back(std::exp(-std::abs(x)));
    for (const float x : random_values(n, 5)) beta.push_back(1 / (1 + std::exp(-x)));
  }
  DeltaRuleArgs from(std::size_t t, std::size_t n, float* state, float* out) const {
    return {.q = q.data() + t * key_dim,
            .k = k.data() + t * key_dim,
            .v = v.data() + t * value_dim,
            .q_stride = key_dim,
            .k_stride = key_dim,
            .v_stride = value_dim,
            .decay = decay.data() + t,
            .beta = beta.data() + t,
            .gate_stride = 1,
            .key_dim = key_dim,
            .value_dim = value_dim,
            .steps = n,
            .state = state,
            .out = out == nullptr ? nullptr : out + t * value_dim,
            .out_stride = value_dim};
  }
};

TEST(DeltaRule, EveryLevelGivesTheReferencesBitsWhereverCallsBegin) {
  for (const auto& [keys, values] : {std::pair{32, 32}, {16, 48}, {5, 7}, {128, 33}, {1, 1}}) {
    const Inputs in(static_cast<std::size_t>(keys), static_cast<std::size_t>(values), 23);
    const std::vector<float> start = random_values(in.key_dim * in.value_dim, 6);
    std::vector<float> state = start, out(in.value_dim * in.steps);
    reference().delta_rule(in.from(0, in.steps, state.data(), out.data()));
    for (const Level& level : levels()) {
      for (const std::size_t chunk : {std::size_t{23}, std::size_t{1}, std::size_t{5}}) {
        std::vector<float> other = start, got(out.size());
        for (std::size_t t = 0; t < in.steps; t += chunk)
          level.table->delta_rule(in.from(t, std::min(chunk, in.steps - t), other.data(), got.data()));
        EXPECT_EQ(other, state) << level.name << ' ' << keys << ' ' << values << ' ' << chunk;
        EXPECT_EQ(got, out) << level.name << ' ' << keys << ' ' << values << ' ' << chunk;
      }
      std::vector<float> other = start;
      level.table->delta_rule(in.from(0, in.steps, other.data(), nullptr));
      EXPECT_EQ(other, state) << level.name;
    }
  }
}

TEST(DeltaRule, AgreesWithTheDefinition) {
  Inputs in(24, 40, 50);
  for (std::vector<float>* values : {&in.q, &in.k, &in.v}) {
    for (float& x : *values) x = std::clamp(x, -3.0F, 3.0F);
  }
  std::vector<float> state(in.key_dim * in.value_dim), out(in.value_dim * in.steps);
  reference().delta_rule(in.from(0, in.steps, state.data(), out.data()));
  std::vector<double> s(state.size());
  for (std::size_t t = 0; t < in.steps; ++t) {
    const float *k = in.k.data() + t * in.key_dim, *q = in.q.data() + t * in.key_dim;
    for (double& x : s) x *= static_cast<double>(in.decay[t]);
    for (std::size_t j = 0; j < in.value_dim; ++j) {
      double recalled = 0, expected = 0;
      for (std::size_t i = 0; i < in.key_dim; ++i)
        recalled += static_cast<double>(k[i]) * s[i * in.value_dim + j];
      const double change =
          (static_cast<double>(in.v[t * in.value_dim + j]) - recalled) * static_cast<double>(in.beta[t]);
      for (std::size_t i = 0; i < in.key_dim; ++i) {
        s[i * in.value_dim + j] += static_cast<double>(k[i]) * change;
        expected += static_cast<double>(q[i]) * s[i * in.value_dim + j];
      }
      ASSERT_NEAR(out[t * in.value_dim + j], expected, 1e-4) << t << ' ' << j;
    }
  }
}

}  // namespace
}  // namespace wring::kernels
