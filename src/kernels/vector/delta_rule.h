// The gated delta rule of scalar/delta_rule.cc, as a template over a level's vector class V: a vector holds
// columns of the state, each of which is a recurrence of its own, so the bits are the scalar ones.
#pragma once

#include "kernels/levels.h"

namespace wring::kernels::vector {

template <class V>
struct DeltaRule {
  using F = typename V::F;

  /// All steps over the columns `column` … `column + n`, n at most a vector.
  static inline void columns(const DeltaRuleArgs& a, std::size_t column, int n) {
    for (std::size_t t = 0; t < a.steps; ++t) {
      const float* k = a.k + t * a.k_stride;
      const F decay = V::set(a.decay[t * a.gate_stride]);
      F recalled = V::zero();
      float* s = a.state + column;
      for (std::size_t i = 0; i < a.key_dim; ++i, s += a.value_dim) {
        const F decayed = V::mul(V::load_first(s, n), decay);
        V::store_first(s, decayed, n);
        recalled = V::fma(V::set(k[i]), decayed, recalled);
      }
      const F value = V::load_first(a.v + t * a.v_stride + column, n);
      const F change = V::mul(V::sub(value, recalled), V::set(a.beta[t * a.gate_stride]));
      const float* q = a.q + t * a.q_stride;
      F out = V::zero();
      s = a.state + column;
      for (std::size_t i = 0; i < a.key_dim; ++i, s += a.value_dim) {
        const F changed = V::fma(V::set(k[i]), change, V::load_first(s, n));
        V::store_first(s, changed, n);
        out = V::fma(V::set(q[i]), changed, out);
      }
      if (a.out != nullptr) V::store_first(a.out + t * a.out_stride + column, out, n);
    }
  }

  static void run(const DeltaRuleArgs& a) {
    std::size_t column = 0;
    for (; column + V::kLanes <= a.value_dim; column += V::kLanes) columns(a, column, V::kLanes);
    if (column < a.value_dim) columns(a, column, static_cast<int>(a.value_dim - column));
  }
};

}  // namespace wring::kernels::vector
