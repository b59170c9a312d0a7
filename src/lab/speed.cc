#include "lab/speed.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/scheduler.h"

namespace wring::lab {
namespace {

using Clock = std::chrono::steady_clock;
using engine::TokenId;

struct Sample {
  double ttft_ms, prefill, decode;
};

/// `memory` is taken at last tokens, when the cache is fullest: a step that ends sequences gives their pages
/// back.
Sample run_once(engine::Engine& engine, int prompt, int batch, int generate, engine::Engine::Memory& memory,
                const ProgressSink& progress) {
  engine::Scheduler scheduler(engine, {.max_sequences = batch});
  double first_token = 0, all_first = 0;
  int started = 0;
  const Clock::time_point start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  for (int b = 0; b < batch; ++b) {
    engine::Request request;
    request.prompt = prompt_ids(prompt, engine.model().spec().vocab_size, b);
    request.max_tokens = generate;
    request.on_token = [&, tokens = 0](TokenId) mutable {
      if (++tokens == generate) {
        const std::uint64_t most = memory.kv_bytes;
        memory = engine.memory();
        memory.kv_bytes = std::max(memory.kv_bytes, most);
      }
      if (tokens == 1) {
        if (++started == 1) first_token = elapsed();
        all_first = elapsed();
      }
      return true;
    };
    scheduler.submit(std::move(request));
  }
  while (scheduler.step()) progress.throw_if_cancelled();
  const double total = elapsed();
  return {first_token * 1e3, static_cast<double>(prompt) * batch / all_first,
          generate > 1 ? static_cast<double>(generate - 1) * batch / (total - all_first) : 0};
}

}  // namespace

// An LCG spreads the ids; which tokens they are does not change the work.
std::vector<TokenId> prompt_ids(int count, std::int64_t vocab_size, int salt) {
  std::vector<TokenId> ids;
  std::uint64_t x = 12345 + static_cast<std::uint64_t>(salt);
  for (int i = 0; i < count; ++i) {
    x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    ids.push_back(static_cast<TokenId>((x >> 33) % static_cast<std::uint64_t>(vocab_size)));
  }
  return ids;
}

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return {(values[(n - 1) / 2] + values[n / 2]) / 2, values.front(), values.back()};
}

nlohmann::json to_json(const Spread& s) {
  return {{"median", s.median}, {"min", s.low}, {"max", s.high}};
}

void check_speed_protocol(const SpeedProtocol& protocol, std::int64_t max_position_embeddings) {
  for (const int prompt : protocol.prompts) {
    if (prompt + protocol.generate <= max_position_embeddings) continue;
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} tokens in and {} out are more than the model's context of {}", prompt,
                            protocol.generate, max_position_embeddings));
  }
}

std::vector<std::vector<SpeedRow>> measure_speed(const std::vector<engine::Engine*>& engines,
                                                 const SpeedProtocol& p, ProgressSink& progress) {
  for (const engine::Engine* e : engines)
    check_speed_protocol(p, e->model().config().max_position_embeddings);
  std::vector<std::vector<SpeedRow>> rows(engines.size());
  const std::uint64_t total =
      engines.size() * p.prompts.size() * p.batches.size() * static_cast<std::uint64_t>(p.warmups + p.runs);
  std::uint64_t done = 0;
  for (const int prompt : p.prompts) {
    for (const int batch : p.batches) {
      std::vector<std::vector<Sample>> samples(engines.size());
      std::vector<engine::Engine::Memory> memory(engines.size());
      for (int round = 0; round < p.warmups + p.runs; ++round) {
        for (std::size_t m = 0; m < engines.size(); ++m) {
          progress.throw_if_cancelled();
          progress.update("timing", done++, total, "runs");
          const Sample s = run_once(*engines[m], prompt, batch, p.generate, memory[m], progress);
          if (round >= p.warmups) samples[m].push_back(s);
        }
      }
      for (std::size_t m = 0; m < engines.size(); ++m) {
        const auto column = [&](double Sample::*field) {
          std::vector<double> v;
          for (const Sample& s : samples[m]) v.push_back(s.*field);
          return spread_of(std::move(v));
        };
        rows[m].push_back({prompt, batch, column(&Sample::ttft_ms), column(&Sample::prefill),
                           column(&Sample::decode), memory[m]});
      }
    }
  }
  return rows;
}

std::uint64_t peak_rss_bytes() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace wring::lab
