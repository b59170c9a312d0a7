// Norm, activations, rotary and log-sum-exp of scalar/elementwise.cc, as templates over a level's vector
// class V.
#pragma once

#include <cstddef>

#include "kernels/levels.h"
#include "kernels/vector/math.h"

namespace wring::kernels::vector {

template <class V>
struct Elementwise {
  using F = typename V::F;
  using M = typename V::M;
  static constexpr int kParts = 16 / V::kLanes;

  /// A whole vector, or the first n lanes of one.
  struct Whole {
    F load(const float* p) const { return V::load(p); }
    void store(float* p, F a) const { V::store(p, a); }
  };
  struct First {
    int n;
    F load(const float* p) const { return V::load_first(p, n); }
    void store(float* p, F a) const { V::store_first(p, a, n); }
  };

  /// f(i, access) for each vector of n values.
  template <class Function>
  static inline void each(std::size_t n, Function f) {
    std::size_t i = 0;
    for (; i + V::kLanes <= n; i += V::kLanes) f(i, Whole{});
    if (i < n) f(i, First{static_cast<int>(n - i)});
  }

  static float sum_of_squares(const float* x, std::size_t n) {
    F parts[kParts];
    for (F& part : parts) part = V::zero();
    std::size_t i = 0;
    for (; i + 16 <= n; i += 16) {
#pragma GCC unroll 2
      for (int half = 0; half < kParts; ++half) {
        const F a = V::load(x + i + half * V::kLanes);
        parts[half] = V::fma(a, a, parts[half]);
      }
    }
    for (int half = 0; half < kParts; ++half) {
      const int rest = static_cast<int>(n - i) - half * V::kLanes;
      if (rest <= 0) break;
      const F a = V::load_first(x + i + half * V::kLanes, rest < V::kLanes ? rest : V::kLanes);
      parts[half] = V::fma(a, a, parts[half]);  // squares: a sum is never −0, so adding +0 changes nothing
    }
    return V::tree_eight(V::fold(parts));
  }

  static void rms_norm(const float* x, const float* weight, float weight_offset, std::size_t n, float eps,
                       float* y) {
    const F scale = V::set(1.0F / V::square_root(sum_of_squares(x, n) / static_cast<float>(n) + eps));
    const F offset = V::set(weight_offset);
    each(n, [&](std::size_t i, auto at) {
      at.store(y + i, V::mul(V::mul(at.load(x + i), scale), V::add(at.load(weight + i), offset)));
    });
  }

  /// The 16 partial sums' tree over terms: f(vector of x, its lanes that count, partial sum) → partial sum.
  template <class Function>
  static float sum(const float* x, std::size_t n, Function f) {
    F parts[kParts];
    for (F& part : parts) part = V::zero();
    for (std::size_t i = 0; i < n; i += 16) {
      for (int half = 0; half < kParts; ++half) {
        const int rest = static_cast<int>(n - i < 16 ? n - i : 16) - half * V::kLanes;
        if (rest <= 0) break;
        const int lanes = rest < V::kLanes ? rest : V::kLanes;
        parts[half] = f(V::load_first(x + i + half * V::kLanes, lanes), V::range(0, lanes), parts[half]);
      }
    }
    return V::tree_eight(V::fold(parts));
  }

  static void layer_norm(const float* x, const float* weight, const float* bias, std::size_t n, float eps,
                         float* y) {
    const auto count = static_cast<float>(n);
    const F mean = V::set(sum(x, n, [](F a, M, F part) { return V::add(part, a); }) / count);
    const float squares = sum(x, n, [&](F a, M lanes, F part) {
      const F d = V::select(lanes, V::sub(a, mean), V::zero());
      return V::fma(d, d, part);
    });
    const F scale = V::set(1.0F / V::square_root(squares / count + eps));
    each(n, [&](std::size_t i, auto at) {
      const F d = V::mul(V::mul(V::sub(at.load(x + i), mean), scale), at.load(weight + i));
      at.store(y + i, V::add(d, at.load(bias + i)));
    });
  }

  static void add(float* x, const float* y, std::size_t n) {
    each(n, [&](std::size_t i, auto at) { at.store(x + i, V::add(at.load(x + i), at.load(y + i))); });
  }

  static void scale(float* x, std::size_t n, float factor) {
    const F f = V::set(factor);
    each(n, [&](std::size_t i, auto at) { at.store(x + i, V::mul(at.load(x + i), f)); });
  }

  static void silu_mul(float* gate, const float* up, std::size_t n) {
    const F one = V::set(1.0F);
    each(n, [&](std::size_t i, auto at) {
      const F v = at.load(gate + i);
      const F silu = V::div(v, V::add(one, Math<V>::exp(V::negate(v))));
      at.store(gate + i, V::mul(silu, at.load(up + i)));
    });
  }

  static void silu(float* x, std::size_t n) {
    const F one = V::set(1.0F);
    each(n, [&](std::size_t i, auto at) {
      const F v = at.load(x + i);
      at.store(x + i, V::div(v, V::add(one, Math<V>::exp(V::negate(v)))));
    });
  }

  static void sigmoid_mul(float* x, const float* gate, std::size_t n) {
    const F one = V::set(1.0F);
    each(n, [&](std::size_t i, auto at) {
      const F sigmoid = V::div(one, V::add(one, Math<V>::exp(V::negate(at.load(gate + i)))));
      at.store(x + i, V::mul(at.load(x + i), sigmoid));
    });
  }

  static void gelu_tanh_mul(float* gate, const float* up, std::size_t n) {
    const F one = V::set(1.0F), half = V::set(0.5F), slope = V::set(kGeluSlope), cubic = V::set(kGeluCubic);
    each(n, [&](std::size_t i, auto at) {
      const F v = at.load(gate + i);
      const F inner = V::mul(slope, V::add(v, V::mul(cubic, V::mul(V::mul(v, v), v))));
      const F gelu = V::mul(V::mul(half, v), V::add(one, Math<V>::tanh(inner)));
      at.store(gate + i, V::mul(gelu, at.load(up + i)));
    });
  }

  static void gelu_tanh(float* x, std::size_t n) {
    const F one = V::set(1.0F), half = V::set(0.5F), slope = V::set(kGeluSlope), cubic = V::set(kGeluCubic);
    each(n, [&](std::size_t i, auto at) {
      const F v = at.load(x + i);
      const F inner = V::mul(slope, V::add(v, V::mul(cubic, V::mul(V::mul(v, v), v))));
      at.store(x + i, V::mul(V::mul(half, v), V::add(one, Math<V>::tanh(inner))));
    });
  }

  static void clamped_swiglu(float* gate, const float* up, std::size_t n, float alpha, float limit) {
    const F one = V::set(1.0F), slope = V::set(alpha), lowest = V::set(-limit);
    // max gives its second operand where one is NaN, so that NaN stays.
    const auto at_most = [&](F v) { return V::negate(V::max(lowest, V::negate(v))); };
    each(n, [&](std::size_t i, auto at) {
      const F g = at_most(at.load(gate + i));
      const F u = V::max(lowest, at_most(at.load(up + i)));
      const F sigmoid = V::div(one, V::add(one, Math<V>::exp(V::negate(V::mul(slope, g)))));
      at.store(gate + i, V::mul(V::mul(g, sigmoid), V::add(u, one)));
    });
  }

  static void exp(float* x, std::size_t n) {
    each(n, [&](std::size_t i, auto at) { at.store(x + i, Math<V>::exp(at.load(x + i))); });
  }

  static void softcap(float* x, std::size_t n, float cap) {
    const F c = V::set(cap);
    each(n, [&](std::size_t i, auto at) {
      at.store(x + i, V::mul(c, Math<V>::tanh(V::div(at.load(x + i), c))));
    });
  }

  static void rope_half(float* x, const float* cosine, const float* sine, std::size_t half) {
    each(half, [&](std::size_t i, auto at) {
      const F a = at.load(x + i);
      const F b = at.load(x + half + i);
      const F c = at.load(cosine + i);
      const F s = at.load(sine + i);
      at.store(x + i, V::sub(V::mul(a, c), V::mul(b, s)));
      at.store(x + half + i, V::add(V::mul(b, c), V::mul(a, s)));
    });
  }

  static void rope_pairs(float* x, const float* cosine, const float* sine, std::size_t half) {
    constexpr std::size_t kPairs = V::kLanes / 2;
    std::size_t i = 0;
    for (; i + kPairs <= half; i += kPairs) {
      const F a = V::load(x + 2 * i);
      const F s = V::negate_even(V::load_twice(sine + i));
      V::store(x + 2 * i, V::add(V::mul(a, V::load_twice(cosine + i)), V::mul(V::swap_pairs(a), s)));
    }
    for (; i < half; ++i) {
      const float a = x[2 * i];
      const float b = x[2 * i + 1];
      x[2 * i] = a * cosine[i] - b * sine[i];
      x[2 * i + 1] = b * cosine[i] + a * sine[i];
    }
  }

  static double log_sum_exp(const float* x, std::size_t n) {
    const F none = V::set(-__builtin_inff());
    F highest = none;
    std::size_t i = 0;
    for (; i + V::kLanes <= n; i += V::kLanes) highest = V::max(highest, V::load(x + i));
    if (i < n) {
      const int rest = static_cast<int>(n - i);
      highest = V::max(highest, V::select(V::range(0, rest), V::load_first(x + i, rest), none));
    }
    const float max = V::max_of(highest);
    typename V::DoubleSums sums;
    const F shift = V::set(max);
    for (i = 0; i + 16 <= n; i += 16) {
#pragma GCC unroll 2
      for (int half = 0; half < kParts; ++half) {
        sums.add(half, Math<V>::exp(V::sub(V::load(x + i + half * V::kLanes), shift)));
      }
    }
    for (int half = 0; half < kParts; ++half) {
      const int rest = static_cast<int>(n - i) - half * V::kLanes;
      if (rest <= 0) break;
      const int lanes = rest < V::kLanes ? rest : V::kLanes;
      const F term = Math<V>::exp(V::sub(V::load_first(x + i + half * V::kLanes, lanes), shift));
      sums.add(half, V::select(V::range(0, lanes), term, V::zero()));
    }
    return scalar::add_log(max, sums.total());
  }

  static std::size_t fma_loop(std::size_t rounds, float* sink) {
    constexpr int kChains = 12;  // latency times units is 8 to 10 on CPUs of today
    F acc[kChains];
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) acc[i] = V::set(static_cast<float>(i));
    const F half = V::set(0.5F);
    const F one = V::set(1.0F);
    for (std::size_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
      for (int i = 0; i < kChains; ++i) acc[i] = V::fma(acc[i], half, one);
    }
    F total = acc[0];
#pragma GCC unroll 12
    for (int i = 1; i < kChains; ++i) total = V::add(total, acc[i]);
    *sink = V::max_of(total);
    return rounds * kChains * V::kLanes;
  }

  static float read_loop(const float* x, std::size_t n) {
    constexpr std::size_t kChains = 8;
    F acc[kChains];
#pragma GCC unroll 8
    for (F& highest : acc) highest = V::set(x[0]);
    for (std::size_t i = 0; i < n; i += kChains * V::kLanes) {
#pragma GCC unroll 8
      for (std::size_t chain = 0; chain < kChains; ++chain)
        acc[chain] = V::max(acc[chain], V::load(x + i + chain * V::kLanes));
    }
#pragma GCC unroll 8
    for (const F& highest : acc) acc[0] = V::max(acc[0], highest);
    return V::max_of(acc[0]);
  }
};

}  // namespace wring::kernels::vector
