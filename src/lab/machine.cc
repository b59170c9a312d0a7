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

std::uint64_t read_all(const std::uint64_t* words, std::size_t count) {
  std::uint64_t sums[8] = {};
  for (std::size_t i = 0; i + 8 <= count; i += 8) {
    for (std::size_t j = 0; j < 8; ++j) sums[j] ^= words[i + j];
  }
  std::uint64_t all = 0;
  for (const std::uint64_t s : sums) all ^= s;
  return all;
}

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
  const std::size_t words = kReadBytes / sizeof(std::uint64_t) / threads / 8 * 8;
  AlignedBuffer<std::uint64_t> buffer(words * threads);
  pool.run([&](int worker) {
    std::fill_n(buffer.data() + static_cast<std::size_t>(worker) * words, words,
                static_cast<std::uint64_t>(worker) + 1);
  });
  std::vector<std::uint64_t> results(threads *
                                     8);  // a cache line each; keeps the reads from being optimised away
  const kernels::KernelTable& table = kernels::kernels();
  std::vector<Sink> sinks(threads);
  const Clock::time_point start = Clock::now();
  do {
    Clock::time_point t = Clock::now();
    pool.run([&](int worker) {
      const auto w = static_cast<std::size_t>(worker);
      results[w * 8] ^= read_all(buffer.data() + w * words, words);
    });
    peaks.read_bandwidth_gbps = std::max(peaks.read_bandwidth_gbps,
                                         static_cast<double>(words * threads * 8) / seconds_since(t) / 1e9);
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
