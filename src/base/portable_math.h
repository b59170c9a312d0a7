// Double-precision elementary functions that give the same bits on every CPU: only + − × ÷ and bit moves,
// nothing of libm, whose code paths differ by CPU level. For rotary angles, statistics and the last step of
// sums; not for inner loops.
#pragma once

namespace wring {

/// e^x within 2 ulp; below −745.2 → 0, above 709.79 → +∞, NaN → NaN.
double portable_exp(double x);

/// ln x within 2 ulp; 0 → −∞, negative or NaN → NaN, +∞ → +∞; subnormal numbers are taken exactly.
double portable_log(double x);

/// sin x and cos x within 2 ulp of 1 (absolute 3e-16) for |x| ≤ 2^24, which covers every rotary angle; NaN
/// beyond.
double portable_sin(double x);
double portable_cos(double x);

/// x^y for x > 0 as e^(y · ln x): relative error < 2e-16 · (2 + |y · ln x|).
double portable_pow(double x, double y);

}  // namespace wring
