// wring bench: how fast models are here, several interleaved, beside what the machine can do at best.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/cpu.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/open.h"
#include "lab/machine.h"
#include "lab/speed.h"
#include "lab/step_cost.h"

namespace wring::cli {
namespace {

using nlohmann::ordered_json;

struct BenchOptions {
  Common common;
  engine::ComputeMode compute = engine::ComputeMode::kPacked;
  std::string kv;
  std::vector<std::string> models;
  lab::SpeedProtocol protocol;
  std::vector<int> steps;
};

engine::EngineOptions engine_options(const BenchOptions& o) {
  engine::EngineOptions options = {.compute = o.compute, .threads = o.common.threads};
  if (o.kv.empty()) return options;
  if (o.compute == engine::ComputeMode::kExact && o.kv != "f32")
    throw Error(ErrorCode::kUsage, "exact mode keeps keys and values in f32", "--kv", "use --compute packed");
  options.kv_type = *formats::quant_type_from_name(o.kv);
  return options;
}

struct Peak {
  std::string_view name;
  double gmacs;
};

// What the model's products could reach.
Peak peak_of(engine::Products products, const lab::MachinePeaks& peaks) {
  switch (products) {
    case engine::Products::kBytes:
      return {"int8", peaks.int8_gmacs};
    case engine::Products::kBf16:
      return {"bf16", peaks.bf16_gmacs};
    case engine::Products::kFloats:
      break;
  }
  return {"fp32", peaks.fp32_gmacs};
}

/// Each model's steps of some positions, after the first prompt length.
std::string add_steps(const BenchOptions& o, const std::vector<engine::Engine*>& engines, ordered_json& out) {
  std::string text = fmt::format("\n{:32} {:>6} {:>9} {:>24} {:>24}\n", "a step of some positions", "after",
                                 "positions", "ms", "in steps of one");
  for (std::size_t m = 0; m < engines.size(); ++m) {
    const auto costs =
        lab::measure_steps(*engines[m], o.protocol.prompts[0], o.steps, o.protocol.runs, terminal_progress());
    for (const lab::StepCost& cost : costs) {
      out["steps"].push_back({{"model", o.models[m]},
                              {"prompt", o.protocol.prompts[0]},
                              {"positions", cost.positions},
                              {"ms", to_json(cost.ms)},
                              {"times_one", to_json(cost.times_one)}});
      text +=
          fmt::format("{:32} {:>6} {:>9} {:>24} {:>24}\n", o.models[m], o.protocol.prompts[0], cost.positions,
                      fmt::format("{:.2f} [{:.2f}, {:.2f}]", cost.ms.median, cost.ms.low, cost.ms.high),
                      fmt::format("{:.2f} [{:.2f}, {:.2f}]", cost.times_one.median, cost.times_one.low,
                                  cost.times_one.high));
    }
  }
  return text;
}

void run(const BenchOptions& o) {
  const engine::EngineOptions options = engine_options(o);
  const std::string kv(formats::name_of(o.compute == engine::ComputeMode::kExact ? formats::QuantType::kF32
                                                                                 : options.kv_type));
  std::vector<model::Model> models;
  for (const std::string& path : o.models) {
    models.push_back(open_model(path));
    lab::check_steps(o.protocol.prompts[0], o.steps, models.back().config().max_position_embeddings);
  }
  std::vector<std::unique_ptr<engine::Engine>> engines;
  std::vector<engine::Engine*> pointers;
  for (const model::Model& m : models) {
    engines.push_back(std::make_unique<engine::Engine>(m, options));
    pointers.push_back(engines.back().get());
  }
  const lab::MachinePeaks peaks = lab::measure_peaks(engines.front()->pool());
  const auto rows = lab::measure_speed(pointers, o.protocol, terminal_progress());
  // Of the whole process: models share it, so no row has one of its own.
  const std::uint64_t peak_bytes = lab::peak_rss_bytes();
  ordered_json out = {{"compute", compute_mode_name(o.compute)},
                      {"kv", kv},
                      {"isa", isa_name(choose_isa())},
                      {"threads", engines.front()->pool().threads()},
                      {"read_bandwidth_gbps", peaks.read_bandwidth_gbps},
                      {"fp32_gmacs", peaks.fp32_gmacs},
                      {"bf16_gmacs", peaks.bf16_gmacs > 0 ? ordered_json(peaks.bf16_gmacs) : ordered_json()},
                      {"int8_gmacs", peaks.int8_gmacs},
                      {"rows", ordered_json::array()}};
  std::string text = fmt::format(
      "{} mode, {} cache, {}, {} threads; read bandwidth {:.1f} GB/s; multiply-adds: fp32 {:.1f} G/s, {}int8 "
      "{:.1f} G/s\n"
      "{:32} {:>6} {:>5} {:>22} {:>24} {:>10} {:>24} {:>12}\n",
      compute_mode_name(o.compute), kv, isa_name(choose_isa()), engines.front()->pool().threads(),
      peaks.read_bandwidth_gbps, peaks.fp32_gmacs,
      peaks.bf16_gmacs > 0 ? fmt::format("bf16 {:.1f} G/s, ", peaks.bf16_gmacs) : "", peaks.int8_gmacs,
      "model", "prompt", "batch", "TTFT ms", "prefill tokens/s", "of peak", "decode tokens/s",
      "of bandwidth");
  for (std::size_t m = 0; m < models.size(); ++m) {
    for (const lab::SpeedRow& r : rows[m]) {
      const double gmacs = r.prefill_tokens_per_s.median * model::block_macs(models[m].spec()) / 1e9;
      // Every decode step reads all weights once, whatever the batch; of experts it is the least.
      const double read = r.decode_tokens_per_s.median / r.batch *
                          static_cast<double>(r.memory.streamed_bytes) / 1e9 / peaks.read_bandwidth_gbps;
      const engine::Products products = engines[m]->products();
      const Peak peak = peak_of(products, peaks);
      const auto share_if = [&](engine::Products which) {
        return products == which ? ordered_json(gmacs / peak.gmacs) : ordered_json();
      };
      out["rows"].push_back({{"model", o.models[m]},
                             {"prompt", r.prompt},
                             {"batch", r.batch},
                             {"ttft_ms", r.ttft_ms.median},
                             {"prefill_tokens_per_s", r.prefill_tokens_per_s.median},
                             {"decode_tokens_per_s", r.decode_tokens_per_s.median},
                             {"peak_rss_bytes", peak_bytes},
                             {"weights_bytes", r.memory.weights_bytes},
                             {"kv_bytes", r.memory.kv_bytes},
                             {"workspace_bytes", r.memory.workspace_bytes},
                             {"prefill_gmacs", gmacs},
                             {"prefill_share_of_fp32_peak", gmacs / peaks.fp32_gmacs},
                             {"prefill_share_of_bf16_peak", share_if(engine::Products::kBf16)},
                             {"prefill_share_of_int8_peak", share_if(engine::Products::kBytes)},
                             {"decode_share_of_read_bandwidth", read},
                             {"spread",
                              {{"ttft_ms", to_json(r.ttft_ms)},
                               {"prefill_tokens_per_s", to_json(r.prefill_tokens_per_s)},
                               {"decode_tokens_per_s", to_json(r.decode_tokens_per_s)}}}});
      const auto cell = [](const lab::Spread& s) {
        return fmt::format("{:.1f} [{:.1f}, {:.1f}]", s.median, s.low, s.high);
      };
      text += fmt::format("{:32} {:>6} {:>5} {:>22} {:>24} {:>10} {:>24} {:>11.0f}%\n", o.models[m], r.prompt,
                          r.batch, cell(r.ttft_ms), cell(r.prefill_tokens_per_s),
                          fmt::format("{:.0f}% {}", gmacs / peak.gmacs * 100, peak.name),
                          cell(r.decode_tokens_per_s), read * 100);
    }
  }
  text += fmt::format(
      "median [min, max] of {} runs after {} warm-ups, models interleaved; peak memory of the process {}\n",
      o.protocol.runs, o.protocol.warmups, human_bytes(static_cast<double>(peak_bytes)));
  if (!o.steps.empty()) text += add_steps(o, pointers, out);
  if (o.common.json) {
    print_json(out);
  } else {
    print(text);
  }
}

}  // namespace

void add_bench(CLI::App& app) {
  auto o = std::make_shared<BenchOptions>();
  CLI::App* c = add_command(
      app, "bench", "time to first token, prefill and decode speed, memory; several models interleaved",
      "wring bench sample/hf --prompt 512 --generate 64", o->common, [o] { run(*o); });
  c->add_option("MODEL", o->models, "Hugging Face folders or .gguf files")->required();
  c->add_option("--prompt", o->protocol.prompts, "tokens in, as 512,4096")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  c->add_option("--generate", o->protocol.generate, "tokens out")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  c->add_option("--batch", o->protocol.batches, "sequences at a time, as 1,8")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  c->add_option("--steps", o->steps,
                "also the cost of one step of so many positions (verifying a draft), as 1,5,6")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  c->add_option("--runs", o->protocol.runs, "runs that count, after 2 warm-ups")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_compute(*c, o->compute);
  c->add_option("--kv", o->kv, "type of cached keys and values: f16 (packed mode's default), bf16 or f32")
      ->check(CLI::IsMember({"f16", "bf16", "f32"}));
}

}  // namespace wring::cli
