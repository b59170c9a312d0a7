// The reference of the gated delta rule (kernel_table.h, DeltaRuleArgs). Source: Yang et al. 2024, "Gated
// Delta Networks", in its recurrent form.
#include <cmath>

#include "kernels/scalar/scalar_kernels.h"

namespace wring::kernels::scalar {

void delta_rule(const DeltaRuleArgs& a) {
  for (std::size_t t = 0; t < a.steps; ++t) {
    const float* k = a.k + t * a.k_stride;
    const float* q = a.q + t * a.q_stride;
    const float decay = a.decay[t * a.gate_stride], beta = a.beta[t * a.gate_stride];
    for (std::size_t j = 0; j < a.value_dim; ++j) {
      float recalled = 0;
      for (std::size_t i = 0; i < a.key_dim; ++i) {
        float& s = a.state[i * a.value_dim + j];
        s *= decay;
        recalled = std::fma(k[i], s, recalled);
      }
      const float change = (a.v[t * a.v_stride + j] - recalled) * beta;
      float out = 0;
      for (std::size_t i = 0; i < a.key_dim; ++i) {
        float& s = a.state[i * a.value_dim + j];
        s = std::fma(k[i], change, s);
        out = std::fma(q[i], s, out);
      }
      if (a.out != nullptr) a.out[t * a.out_stride + j] = out;
    }
  }
}

}  // namespace wring::kernels::scalar
