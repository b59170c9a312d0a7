#include "lab/study_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "quantize/plan.h"
#include "quantize/recipe.h"

namespace wring::lab {
namespace {

using nlohmann::json;

const LedgerRow& require(const Ledger& ledger, const std::string& id) {
  if (const LedgerRow* row = ledger.find(id)) return *row;
  throw Error(ErrorCode::kBadInput, fmt::format("the study is not complete: row {} is missing", id), "",
              "run wring study on the folder again");
}

Spread spread_from(const json& j) {
  return {j.at("median"), j.at("min"), j.at("max")};
}

std::vector<SpeedRow> speeds_of(const Ledger& ledger, const StudyPlan& plan, int attempt,
                                const std::string& name) {
  std::vector<SpeedRow> rows;
  for (const int prompt : plan.options.speed.prompts) {
    for (const int batch : plan.options.speed.batches) {
      const json& v = require(ledger, fmt::format("speed/{}/{}/{}x{}", attempt, name, prompt, batch)).value;
      rows.push_back({prompt,
                      batch,
                      spread_from(v.at("ttft_ms")),
                      spread_from(v.at("prefill_tokens_per_s")),
                      spread_from(v.at("decode_tokens_per_s")),
                      {v.at("weights_bytes"), v.at("kv_bytes"), v.at("workspace_bytes")}});
    }
  }
  return rows;
}

std::vector<evaluate::DocumentResult> documents_of(const Ledger& ledger, const StudyPlan& plan,
                                                   const std::string& name) {
  std::vector<evaluate::DocumentResult> results;
  for (const evaluate::Document& d : plan.documents) {
    const LedgerRow& row = require(ledger, fmt::format("document/{}/{}", name, d.id));
    results.push_back(
        evaluate::document_result_from_json(row.value, fmt::format("{}, row {}", row.shard, row.id)));
  }
  return results;
}

// The type that most of the blocks' weights have.
std::string main_type(const model::Model& model) {
  std::map<formats::QuantType, std::uint64_t> weights;
  for (const model::LinearUse& use : model::block_linears(model.spec())) {
    weights[model.weight(use.linear->name + ".weight").type()] +=
        static_cast<std::uint64_t>(use.linear->rows * use.linear->columns);
  }
  const auto most = std::ranges::max_element(weights, {}, [](const auto& entry) { return entry.second; });
  return std::string(formats::name_of(most->first));
}

CandidateResult source_result(const engine::ModelFiles& files) {
  const model::Model& m = files.model;
  CandidateResult c;
  c.name = kReferenceName;
  c.type = main_type(m);
  c.file_bytes = m.file_bytes();
  std::uint64_t bytes = 0, weights = 0;
  for (const model::LinearUse& use : model::block_linears(m.spec())) {
    const model::Weight& w = m.weight(use.linear->name + ".weight");
    bytes += w.tensor->data.size();
    weights += w.tensor->elements();
  }
  c.bits_per_weight = 8.0 * static_cast<double>(bytes) / static_cast<double>(weights);
  c.file_bits_per_weight = 8.0 * static_cast<double>(m.payload_bytes()) / static_cast<double>(m.parameters());
  return c;
}

CandidateResult recipe_result(const Ledger& ledger, const std::string& name) {
  const json& v = require(ledger, "quantize/" + name).value;
  CandidateResult c;
  c.name = name;
  c.type = std::string(formats::name_of(quantize::parse_recipe(name).type));
  c.file_bytes = v.at("file_bytes");
  c.bits_per_weight = v.at("bits_per_weight");
  c.file_bits_per_weight = v.at("file_bits_per_weight");
  c.quantize_seconds = v.at("seconds").get<double>();
  c.relative_error = v.at("relative_error").get<double>();
  c.file_hash = v.at("xxh3");
  return c;
}

}  // namespace

StudyResults collect_results(const StudyPlan& plan, const engine::ModelFiles& files) {
  const Ledger ledger = Ledger::read(StudyPaths(plan.options.folder).rows());
  StudyResults r;
  r.model = std::filesystem::weakly_canonical(plan.options.model).filename().string();
  r.model_hash = plan.model_hash;
  r.architecture = files.model.config().model_type;
  r.parameters = files.model.parameters();
  r.already_quantized = files.model.is_quantized();

  const std::vector<evaluate::DocumentResult> reference = documents_of(ledger, plan, kReferenceName);
  const json& sitting = require(ledger, "sitting/0").value;
  const int attempt = sitting.at("attempt");
  r.candidates.push_back(source_result(files));
  r.candidates.back().eval = evaluate::summarize(reference, {});
  for (const std::string& name : plan.options.recipes) {
    r.candidates.push_back(recipe_result(ledger, name));
    r.candidates.back().eval = evaluate::summarize(documents_of(ledger, plan, name), reference);
  }
  std::vector<evaluate::EvalSummary*> compared;
  for (CandidateResult& c : r.candidates) {
    c.speeds = speeds_of(ledger, plan, attempt, c.name);
    if (c.eval.against) compared.push_back(&c.eval);
  }
  evaluate::adjust_for_candidates(compared);

  const LedgerHeader& header = ledger.headers().front();
  r.compute_mode = header.compute_mode;
  r.cpu_level = header.cpu_level;
  r.build = header.build;
  r.cpu = sitting.at("cpu");
  r.threads = sitting.at("threads");
  r.read_bandwidth_gbps = sitting.at("read_bandwidth_gbps");
  r.fp32_gmacs = sitting.at("fp32_gmacs");
  r.context = plan.options.context;
  r.kl_positions = evaluate::kl_positions_name(plan.options.positions);
  r.documents_planned = plan.documents.size();
  r.calibration_documents = plan.calibration_documents.size();
  for (const evaluate::Document& d : plan.calibration_documents)
    r.calibration_tokens += static_cast<std::int64_t>(d.ids.size());
  r.speed = plan.options.speed;
  r.protocol = plan.protocol();
  r.root_hash = ledger.root_hash();
  r.rows = ledger.rows().size();
  return r;
}

}  // namespace wring::lab
