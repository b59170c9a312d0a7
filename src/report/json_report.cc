// StudyResults as JSON.
#include "report/json_report.h"

#include <nlohmann/json.hpp>

namespace wring::report {
namespace {

using nlohmann::json;

json speed_json(const lab::SpeedRow& s) {
  return {{"prompt", s.prompt},
          {"batch", s.batch},
          {"ttft_ms", lab::to_json(s.ttft_ms)},
          {"prefill_tokens_per_s", lab::to_json(s.prefill_tokens_per_s)},
          {"decode_tokens_per_s", lab::to_json(s.decode_tokens_per_s)},
          {"weights_bytes", s.memory.weights_bytes},
          {"kv_bytes", s.memory.kv_bytes},
          {"workspace_bytes", s.memory.workspace_bytes}};
}

template <class T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

json candidate_json(const lab::CandidateResult& c) {
  json j = {{"name", c.name},
            {"type", c.type},
            {"file_bytes", c.file_bytes},
            {"bits_per_weight", c.bits_per_weight},
            {"file_bits_per_weight", c.file_bits_per_weight},
            {"quantize_seconds", or_null(c.quantize_seconds)},
            {"relative_error", or_null(c.relative_error)},
            {"weighted_error", or_null(c.weighted_error)},
            {"file_xxh3", c.file_hash.empty() ? json() : json(c.file_hash)},
            {"eval", evaluate::to_json(c.eval)},
            {"speed", json::array()}};
  for (const lab::SpeedRow& s : c.speeds) j["speed"].push_back(speed_json(s));
  return j;
}

// What most readers want of a candidate, flat; null where it was not measured.
json table_row(const lab::CandidateResult& c) {
  json j = {{"name", c.name},
            {"file_bytes", c.file_bytes},
            {"bits_per_weight", c.bits_per_weight},
            {"nll", c.eval.nll},
            {"ppl", c.eval.ppl},
            {"delta_nll", nullptr},
            {"delta_nll_low", nullptr},
            {"delta_nll_high", nullptr},
            {"retained_percent", nullptr},
            {"kl_mean", nullptr},
            {"kl_p99", nullptr},
            {"same_top", nullptr},
            {"prefill_tokens_per_s", nullptr},
            {"decode_tokens_per_s", nullptr},
            {"memory_bytes", nullptr}};
  if (c.eval.against) {
    const evaluate::Comparison& a = *c.eval.against;
    j["delta_nll"] = a.delta_nll.mean;
    j["delta_nll_low"] = a.delta_nll.low;
    j["delta_nll_high"] = a.delta_nll.high;
    j["retained_percent"] = a.retained;
    if (a.kl) {
      j["kl_mean"] = a.kl->mean.mean;
      j["kl_p99"] = a.kl->p99;
      j["same_top"] = a.kl->same_top;
    }
  }
  if (!c.speeds.empty()) {
    const lab::SpeedRow& s = c.speeds.front();
    j["prefill_tokens_per_s"] = s.prefill_tokens_per_s.median;
    j["decode_tokens_per_s"] = s.decode_tokens_per_s.median;
    j["memory_bytes"] = s.memory.weights_bytes + s.memory.kv_bytes + s.memory.workspace_bytes;
  }
  return j;
}

}  // namespace

json report_json(const lab::StudyResults& s) {
  json j = {{"wring_report", 1},
            {"model",
             {{"name", s.model},
              {"content_hash", s.model_hash},
              {"architecture", s.architecture},
              {"parameters", s.parameters},
              {"already_quantized", s.already_quantized}}},
            {"conditions",
             {{"compute_mode", s.compute_mode},
              {"cpu_level", s.cpu_level},
              {"cpu", s.cpu},
              {"threads", s.threads},
              {"build", s.build},
              {"read_bandwidth_gbps", s.read_bandwidth_gbps},
              {"fp32_gmacs", s.fp32_gmacs},
              {"int8_gmacs", s.int8_gmacs},
              {"context", s.context},
              {"kl_positions", s.kl_positions},
              {"documents_planned", s.documents_planned},
              {"calibration_documents", s.calibration_documents},
              {"calibration_tokens", s.calibration_tokens},
              {"bootstrap_resamples", evaluate::kResamples},
              {"bootstrap_confidence", evaluate::kConfidence},
              {"bootstrap_seed", evaluate::kBootstrapSeed},
              {"speed",
               {{"compute", s.speed_compute_mode},
                {"prompts", s.speed.prompts},
                {"generate", s.speed.generate},
                {"batches", s.speed.batches},
                {"warmups", s.speed.warmups},
                {"runs", s.speed.runs}}},
              {"protocol", s.protocol}}},
            {"ledger", {{"root_hash", s.root_hash}, {"rows", s.rows}}},
            {"table", json::array()},
            {"candidates", json::array()},
            {"pairs", json::array()}};
  for (const lab::CandidateResult& c : s.candidates) {
    j["table"].push_back(table_row(c));
    j["candidates"].push_back(candidate_json(c));
  }
  for (const lab::PairResult& p : s.pairs) {
    j["pairs"].push_back(
        {{"first", p.first},
         {"second", p.second},
         {"delta_nll", {{"mean", p.delta_nll.mean}, {"low", p.delta_nll.low}, {"high", p.delta_nll.high}}}});
  }
  return j;
}

}  // namespace wring::report
