#include "lab/machine.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/kernel_table.h"

namespace wring::lab {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Larger than any last-level cache that two cores share, small enough for every machine.
constexpr std::size_t kReadBytes = std::size_t{512} << 20;

struct alignas(64) Sink {
  float value = 0;
  std::int32_t integer = 0;
};

// 10⁹ multiply-adds a second; loop(worker) tells how many it did.
template <class F>
double rate(ThreadPool& pool, F&& loop) {
  std::vector<std::size_t> done(static_cast<std::size_t>(pool.threads()));
  const Clock::time_point start = Clock::now();
  pool.run(
      [&](int worker) { done[static_cast<std::size_t>(worker)] = loop(static_cast<std::size_t>(worker)); });
  double all = 0;
  for (const std::size_t d : done) all += static_cast<double>(d);
  return all / seconds_since(start) / 1e9;
}

}  // namespace

MachinePeaks measure_peaks(ThreadPool& pool, double seconds) {
  MachinePeaks peaks;
  const auto threads = static_cast<std::size_t>(pool.threads());
  const std::size_t floats = kReadBytes / sizeof(float) / threads / 128 * 128;
  AlignedBuffer<float> buffer(floats * threads);
  const auto part = [&](int worker) { return buffer.data() + static_cast<std::size_t>(worker) * floats; };
  pool.run([&](int worker) { std::fill_n(part(worker), floats, static_cast<float>(worker)); });
  const kernels::KernelTable& table = kernels::kernels();
  std::vector<Sink> sinks(threads);
  const Clock::time_point start = Clock::now();
  do {
    Clock::time_point t = Clock::now();
    pool.run([&](int worker) {
      sinks[static_cast<std::size_t>(worker)].value = table.read_loop(part(worker), floats);
    });
    peaks.read_bandwidth_gbps =
        std::max(peaks.read_bandwidth_gbps,
                 static_cast<double>(floats * threads * sizeof(float)) / seconds_since(t) / 1e9);
    const double fp32 = rate(pool, [&](std::size_t w) { return table.fma_loop(100'000, &sinks[w].value); });
    peaks.fp32_gmacs = std::max(peaks.fp32_gmacs, fp32);
    if (table.bf16 != nullptr) {
      const double bf16 =
          rate(pool, [&](std::size_t w) { return table.bf16->peak_loop(100'000, &sinks[w].value); });
      peaks.bf16_gmacs = std::max(peaks.bf16_gmacs, bf16);
    }
    const double int8 =
        rate(pool, [&](std::size_t w) { return table.byte_loop(100'000, &sinks[w].integer); });
    peaks.int8_gmacs = std::max(peaks.int8_gmacs, int8);
  } while (seconds_since(start) < seconds);
  return peaks;
}

}  // namespace wring::lab
