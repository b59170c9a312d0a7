// scalar/scalar_math.h in vectors: the same operations in the same order, so the same bits.
#pragma once

namespace wring::kernels::vector {

template <class V>
struct Math {
  using F = typename V::F;

  static inline F exp(F x) {
    const F shifter = V::set(0x1.8p23F);
    const F shifted = V::fma(x, V::set(0x1.715476p+0F), shifter);
    const F n = V::sub(shifted, shifter);
    F r = V::fma(n, V::set(-0x1.62e4p-1F), x);
    r = V::fma(n, V::set(-0x1.7f7d1cp-20F), r);
    F p = V::set(0x1.6a215ap-10F);
    p = V::fma(p, r, V::set(0x1.123b9cp-7F));
    p = V::fma(p, r, V::set(0x1.5558fcp-5F));
    p = V::fma(p, r, V::set(0x1.55549p-3F));
    p = V::fma(p, r, V::set(0x1.fffffcp-2F));
    p = V::fma(p, r, V::set(1.0F));
    p = V::fma(p, r, V::set(1.0F));
    p = V::scale_by_power(p, shifted);
    p = V::select(V::less(x, V::set(-0x1.5d589ep+6F)), V::zero(), p);
    return V::select(V::not_less_equal(x, V::set(0x1.62e42ep+6F)), V::mul(x, V::set(__builtin_inff())), p);
  }

  static inline F tanh(F x) {
    const F a = V::abs(x);
    const F s = V::mul(x, x);
    F p = V::set(-0x1.75623p-8F);
    p = V::fma(p, s, V::set(0x1.520b28p-6F));
    p = V::fma(p, s, V::set(-0x1.b83854p-5F));
    p = V::fma(p, s, V::set(0x1.11070ap-3F));
    p = V::fma(p, s, V::set(-0x1.555532p-2F));
    const F near = V::fma(V::mul(p, s), x, x);
    const F one = V::set(1.0F);
    const F far = V::sub(one, V::div(V::set(2.0F), V::add(exp(V::add(a, a)), one)));
    return V::select(V::less(a, V::set(0.625F)), near, V::with_sign_of(far, x));
  }
};

}  // namespace wring::kernels::vector
