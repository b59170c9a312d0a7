// What this CPU can do, and how many threads may be used: the cgroup's limit counts, not only the cores that
// are seen.
#pragma once

#include <string>
#include <string_view>

namespace wring {

/// CPU levels with kernels of their own, in rising order. Each includes the ones before it.
enum class Isa {
  kScalar,  // plain C++: the reference
  kAvx2,    // AVX2, FMA, F16C
  kAvx512,  // AVX-512 F, BW, DQ, VL
};

std::string_view isa_name(Isa isa);  // "scalar", "avx2", "avx512"

struct CpuInfo {
  Isa best = Isa::kScalar;  // the highest level that CPU and operating system support
  bool avx512_vnni = false;
  bool avx512_bf16 = false;
  /// Whether BF16's dot products (AVX512_BF16) do more multiply-adds a second than float32's: twice as many
  /// on AMD's CPUs (Zen 4 on), half as many on Intel's (Sapphire Rapids: 115 G/s against 228 on two cores).
  bool bf16_dots_pay = false;
  std::string model;  // "AMD EPYC 7B13"
};

const CpuInfo& cpu_info();

/// The level to run: the best one, or WRING_ISA where set. Errors: kNotSupported if the CPU lacks the level
/// that was asked for, kUsage for an unknown name. `reason`, if given, gets one sentence for `wring doctor`.
Isa choose_isa(std::string* reason = nullptr);

/// Threads to use by default: the smallest of cores, affinity mask and cgroup quota (rounded up), at least 1.
int default_threads();

/// `asked`, or default_threads() where it is 0 or less: what a --threads flag means.
int threads_or_default(int asked);

}  // namespace wring
