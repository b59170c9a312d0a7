#include "base/cpu.h"

#include <cpuid.h>
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/error.h"

namespace wring {
namespace {

std::string read_model_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

// Asked of the CPU itself: not every compiler knows this feature by name.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

CpuInfo detect() {
  CpuInfo info;
  info.model = read_model_name();
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  info.best = avx2 && avx512 ? Isa::kAvx512 : avx2 ? Isa::kAvx2 : Isa::kScalar;
  info.avx512_vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  info.avx512_bf16 = avx512 && __builtin_cpu_supports("avx512bf16");
  info.bf16_dots_pay = info.avx512_bf16 && __builtin_cpu_is("amd") != 0;
  return info;
}

// cgroup v2: "max 100000" or "<quota> <period>" in microseconds.
int cgroup_threads() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 1 << 20;
  return static_cast<int>(std::ceil(std::strtod(quota.c_str(), nullptr) / period));
}

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return "scalar";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "?";
}

const CpuInfo& cpu_info() {
  static const CpuInfo info = detect();
  return info;
}

Isa choose_isa(std::string* reason) {
  const Isa best = cpu_info().best;
  const char* asked = std::getenv("WRING_ISA");
  if (asked == nullptr || *asked == '\0') {
    if (reason) *reason = fmt::format("the best level of this CPU ({})", cpu_info().model);
    return best;
  }
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
    if (isa_name(isa) != asked) continue;
    if (isa > best) {
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("this CPU lacks the level that WRING_ISA asks for: {}", asked),
                  fmt::format("best level here: {}", isa_name(best)),
                  "unset WRING_ISA or choose a lower level");
    }
    if (reason) *reason = fmt::format("WRING_ISA={} (best level of this CPU: {})", asked, isa_name(best));
    return isa;
  }
  throw Error(ErrorCode::kUsage, fmt::format("WRING_ISA is not a known level: {}", asked), "",
              "use scalar, avx2 or avx512");
}

int default_threads() {
  int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  cpu_set_t mask;
  if (::sched_getaffinity(0, sizeof(mask), &mask) == 0) threads = std::min(threads, CPU_COUNT(&mask));
  return std::max(1, std::min(threads, cgroup_threads()));
}

int threads_or_default(int asked) {
  return asked > 0 ? asked : default_threads();
}

}  // namespace wring
