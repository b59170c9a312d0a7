// Speed as users feel it: time to the first token, prefill and decode rates, for several models interleaved
// in one sitting, since a shared machine drifts. Protocol (docs/METHODS.md): warm-ups first, then runs;
// median, minimum and maximum are kept.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/progress.h"
#include "engine/engine.h"

namespace wring::lab {

struct SpeedProtocol {
  std::vector<int> prompts = {512};  // tokens in
  int generate = 256;                // tokens out
  std::vector<int> batches = {1};    // sequences at a time
  int warmups = 2;
  int runs = 5;
};

struct Spread {
  double median = 0, low = 0, high = 0;
};

struct SpeedRow {
  int prompt = 0, batch = 0;
  Spread ttft_ms;               // from the request to its first token, sampling included
  Spread prefill_tokens_per_s;  // all sequences' prompt tokens over the time to the last first token
  Spread decode_tokens_per_s;   // all sequences' further tokens over the time after that
  engine::Engine::Memory memory;
};

/// rows[m] belongs to engines[m]: one row a prompt length and batch. Every model runs once before any runs a
/// second time. Prompts are the same fixed pseudo-random ids for all. Errors: kBadInput if prompt + generate
/// is longer than a model's context.
std::vector<std::vector<SpeedRow>> measure_speed(const std::vector<engine::Engine*>& engines,
                                                 const SpeedProtocol& protocol, ProgressSink& progress);

/// The check on the contexts alone, so that a protocol that does not fit is refused before any work. Errors:
/// as above, naming both lengths.
void check_speed_protocol(const SpeedProtocol& protocol, std::int64_t max_position_embeddings);

/// The same ids for every model of one vocabulary; `salt` makes other ones.
std::vector<engine::TokenId> prompt_ids(int count, std::int64_t vocab_size, int salt);

/// Precondition: not empty.
Spread spread_of(std::vector<double> values);

/// {"median","min","max"}
nlohmann::json to_json(const Spread& spread);

/// The highest resident memory of this process so far, bytes.
std::uint64_t peak_rss_bytes();

}  // namespace wring::lab
