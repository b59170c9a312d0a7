// What this machine can do at best, measured: read bandwidth, and multiply-adds of float32, BF16 and bytes a
// second. Every speed is also given as a share of these, so that figures from different machines compare.
#pragma once

#include "base/thread_pool.h"

namespace wring::lab {

struct MachinePeaks {
  double read_bandwidth_gbps = 0;  // 10⁹ bytes a second, all threads reading memory that no cache holds
  double fp32_gmacs = 0;           // 10⁹ float32 multiply-adds a second, all threads, from registers
  double bf16_gmacs = 0;           // the same of BF16; 0: the level does not use its products
  double int8_gmacs = 0;           // the same of bytes, as packed mode's products use them
};

/// Takes about `seconds` in all; the best of several rounds, since others may use the machine.
MachinePeaks measure_peaks(ThreadPool& pool, double seconds = 1.0);

}  // namespace wring::lab
