// The JSON form of a summary: stable keys that scripts rely on.
#include <nlohmann/json.hpp>

#include "evaluate/summary.h"

namespace wring::evaluate {
namespace {

using nlohmann::json;

json interval_json(const Interval& i) {
  return {{"mean", i.mean}, {"low", i.low}, {"high", i.high}, {"p_value", i.p_value}};
}

json kl_json(const KlSummary& kl) {
  return {{"mean", kl.mean.mean}, {"low", kl.mean.low}, {"high", kl.mean.high},
          {"p50", kl.p50},        {"p95", kl.p95},      {"p99", kl.p99},
          {"p999", kl.p999},      {"max", kl.max},      {"positions", kl.positions}};
}

}  // namespace

json to_json(const EvalSummary& s) {
  json j = {{"nll", s.nll},
            {"ppl", s.ppl},
            {"tokens", s.tokens},
            {"documents", s.documents},
            {"bytes", s.bytes},
            {"bits_per_byte", s.bits_per_byte},
            {"domains", json::object()},
            {"worst", json::array()}};
  for (const DomainSummary& d : s.domains) {
    json& domain = j["domains"][d.domain];
    domain = {
        {"documents", d.documents}, {"tokens", d.tokens}, {"nll", d.nll}, {"bits_per_byte", d.bits_per_byte}};
    if (d.delta_nll) domain["delta_nll"] = interval_json(*d.delta_nll);
    if (d.kl_mean) domain["kl"] = {{"mean", *d.kl_mean}};
  }
  if (!s.against) return j;
  const Comparison& c = *s.against;
  j["delta_nll"] = interval_json(c.delta_nll);
  j["retained_percent"] = c.retained;
  if (c.kl) {
    j["kl"] = kl_json(*c.kl);
    j["same_top"] = c.kl->same_top;
    j["rms_delta_p"] = c.kl->rms_delta_p;
  } else {
    j["kl"] = j["same_top"] = j["rms_delta_p"] = nullptr;
  }
  const Tails& t = c.document_delta;
  j["document_delta_nll"] = {{"p50", t.p50}, {"p95", t.p95}, {"p99", t.p99}, {"max", t.max}};
  for (const WorstDocument& d : c.worst_documents) {
    j["worst"].push_back({{"id", d.id},
                          {"domain", d.domain},
                          {"tokens", d.tokens},
                          {"nll", d.nll},
                          {"delta_nll", d.delta_nll}});
  }
  j["worst_tokens"] = json::array();
  for (const WorstToken& token : c.worst_tokens) j["worst_tokens"].push_back(to_json(token));
  return j;
}

}  // namespace wring::evaluate
