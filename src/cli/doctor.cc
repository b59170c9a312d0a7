// wring doctor: what was found of this machine, and what it can do at best.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/cpu.h"
#include "cli/command.h"
#include "cli/version.h"
#include "lab/machine.h"

namespace wring::cli {
namespace {

void run(const Common& common) {
  std::string reason;
  const Isa isa = choose_isa(&reason);
  ThreadPool pool(threads_or_default(common.threads));
  const lab::MachinePeaks peaks = lab::measure_peaks(pool);
  if (common.json) {
    nlohmann::ordered_json out;
    out["isa"] = isa_name(isa);
    out["isa_reason"] = reason;
    out["cpu"] = cpu_info().model;
    out["avx512_vnni"] = cpu_info().avx512_vnni;
    out["avx512_bf16"] = cpu_info().avx512_bf16;
    out["threads"] = pool.threads();
    out["read_bandwidth_gbps"] = peaks.read_bandwidth_gbps;
    out["fp32_gmacs"] = peaks.fp32_gmacs;
    out["bf16_gmacs"] =
        peaks.bf16_gmacs > 0 ? nlohmann::ordered_json(peaks.bf16_gmacs) : nlohmann::ordered_json();
    out["int8_gmacs"] = peaks.int8_gmacs;
    out["build"] = build_id();
    print_json(out);
    return;
  }
  print(fmt::format(
      "CPU level       {}: {}\nthreads         {}\nread bandwidth  {:.1f} GB/s\nfp32 peak       {:.1f} G "
      "multiply-adds/s\n{}int8 peak       {:.1f} G multiply-adds/s\n"
      "build           {}\n",
      isa_name(isa), reason, pool.threads(), peaks.read_bandwidth_gbps, peaks.fp32_gmacs,
      peaks.bf16_gmacs > 0 ? fmt::format("bf16 peak       {:.1f} G multiply-adds/s\n", peaks.bf16_gmacs) : "",
      peaks.int8_gmacs, build_id()));
}

}  // namespace

void add_doctor(CLI::App& app) {
  auto common = std::make_shared<Common>();
  add_command(app, "doctor", "CPU level chosen and why, threads, memory bandwidth, peak multiply-adds, build",
              "wring doctor", *common, [common] { run(*common); });
}

}  // namespace wring::cli
