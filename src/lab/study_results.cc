#include "lab/study_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/json.h"
#include "lab/index.h"
#include "lab/ledger.h"
#include "lab/study.h"
#include "quantize/recipe.h"

namespace wring::lab {
namespace {

using nlohmann::json;

[[noreturn]] void refuse_incomplete(const std::string& id) {
  throw Error(ErrorCode::kBadInput,
              fmt::format("the study is not complete: row {} is missing", printable(id)), "",
              "run wring study on the folder again");
}

LedgerRow require(const LedgerIndex& index, const std::string& id) {
  if (std::optional<LedgerRow> row = index.find(id)) return std::move(*row);
  refuse_incomplete(id);
}

Spread spread_from(const json& j) {
  return {j.at("median"), j.at("min"), j.at("max")};
}

std::vector<SpeedRow> speeds_of(const LedgerIndex& index, const SpeedProtocol& protocol, int attempt,
                                const std::string& name) {
  std::vector<SpeedRow> rows;
  for (const int prompt : protocol.prompts) {
    for (const int batch : protocol.batches) {
      const json v = require(index, fmt::format("speed/{}/{}/{}x{}", attempt, name, prompt, batch)).value;
      rows.push_back({prompt,
                      batch,
                      spread_from(v.at("ttft_ms")),
                      spread_from(v.at("prefill_tokens_per_s")),
                      spread_from(v.at("decode_tokens_per_s")),
                      {.weights_bytes = v.at("weights_bytes"),
                       .kv_bytes = v.at("kv_bytes"),
                       .workspace_bytes = v.at("workspace_bytes")}});
    }
  }
  return rows;
}

std::vector<evaluate::DocumentResult> documents_of(const LedgerIndex& index, const json& manifest,
                                                   const std::string& name) {
  const std::string prefix = fmt::format("document/{}/", name);
  std::unordered_map<std::string, LedgerRow> rows;
  for (LedgerRow& row : index.rows("document", prefix)) rows.emplace(row.id, std::move(row));
  std::vector<evaluate::DocumentResult> results;
  for (const json& d : manifest.at("documents")) {
    const std::string id = prefix + d.at("id").get<std::string>();
    const auto found = rows.find(id);
    if (found == rows.end()) refuse_incomplete(id);
    const LedgerRow& row = found->second;
    results.push_back(
        evaluate::document_result_from_json(row.value, fmt::format("{}, row {}", row.shard, row.id)));
  }
  return results;
}

CandidateResult source_result(const json& v) {
  CandidateResult c;
  c.name = kReferenceName;
  c.type = v.at("type");
  c.file_bytes = v.at("file_bytes");
  c.bits_per_weight = v.at("bits_per_weight");
  c.file_bits_per_weight = v.at("file_bits_per_weight");
  return c;
}

CandidateResult recipe_result(const LedgerIndex& index, const std::string& name) {
  const json v = require(index, "quantize/" + name).value;
  CandidateResult c;
  c.name = name;
  const quantize::Recipe recipe = quantize::parse_recipe(name);
  c.type = std::string(formats::name_of(recipe.type)) + (recipe.mixed ? "_M" : "");
  c.file_bytes = v.at("file_bytes");
  c.bits_per_weight = v.at("bits_per_weight");
  c.file_bits_per_weight = v.at("file_bits_per_weight");
  c.quantize_seconds = v.at("seconds").get<double>();
  c.relative_error = v.at("relative_error").get<double>();
  if (v.contains("weighted_error")) c.weighted_error = v.at("weighted_error").get<double>();
  c.file_hash = v.at("xxh3");
  return c;
}

// The distinct values of a field, in the order met: a study may be resumed with another build or CPU.
std::string all_of(const std::vector<LedgerHeader>& headers, std::string LedgerHeader::*field) {
  std::vector<std::string> values;
  for (const LedgerHeader& h : headers) {
    if (std::ranges::find(values, h.*field) == values.end()) values.push_back(h.*field);
  }
  return fmt::format("{}", fmt::join(values, ", "));
}

// The rows say under which manifest they were measured.
void refuse_changed(const json& manifest, const Ledger& ledger) {
  if (ledger.headers().empty() || protocol_of(manifest) == ledger.headers().front().protocol) return;
  throw Error(ErrorCode::kBadInput, "the manifest is not the one under which the rows were measured",
              fmt::format("manifest.json has id {}, the rows {}", protocol_of(manifest),
                          ledger.headers().front().protocol),
              "restore the file: it must not be changed after the study began");
}

// Manifest and rows are files that a user may have touched: a field that is gone must not look like a bug of
// ours.
StudyResults collect(const std::filesystem::path& folder) {
  const StudyPaths paths(folder);
  const json manifest = formats::read_json_file(paths.manifest());
  const Ledger ledger = Ledger::read(paths.rows());
  refuse_changed(manifest, ledger);
  const LedgerIndex index(paths.index(), ledger);
  const json source = require(index, "source").value;
  const json sitting = require(index, "sitting/0").value;
  const int attempt = sitting.at("attempt");

  StudyResults r;
  r.model = manifest.at("model").at("name");
  r.model_hash = manifest.at("model").at("content_sha256");
  r.architecture = source.at("architecture");
  r.parameters = source.at("parameters");
  r.already_quantized = source.at("already_quantized");
  r.speed.prompts = manifest.at("speed").at("prompts").get<std::vector<int>>();
  r.speed.batches = manifest.at("speed").at("batches").get<std::vector<int>>();
  r.speed.generate = manifest.at("speed").at("generate");
  r.speed.warmups = manifest.at("speed").at("warmups");
  r.speed.runs = manifest.at("speed").at("runs");

  const std::vector<evaluate::DocumentResult> reference = documents_of(index, manifest, kReferenceName);
  r.candidates.push_back(source_result(source));
  r.candidates.back().eval = evaluate::summarize(reference, {});
  std::vector<std::vector<evaluate::DocumentResult>> documents;
  for (const json& recipe : manifest.at("recipes")) {
    const std::string name = recipe;
    documents.push_back(documents_of(index, manifest, name));
    r.candidates.push_back(recipe_result(index, name));
    r.candidates.back().eval = evaluate::summarize(documents.back(), reference);
    for (std::size_t i = 0; i + 1 < documents.size(); ++i) {
      r.pairs.push_back(
          {r.candidates[i + 1].name, name, evaluate::delta_nll(documents[i], documents.back())});
    }
  }
  std::vector<evaluate::EvalSummary*> compared;
  for (CandidateResult& c : r.candidates) {
    c.speeds = speeds_of(index, r.speed, attempt, c.name);
    if (c.eval.against) compared.push_back(&c.eval);
  }
  evaluate::adjust_for_candidates(compared);

  const LedgerHeader& header = ledger.headers().front();
  r.compute_mode = header.compute_mode;
  r.cpu_level = all_of(ledger.headers(), &LedgerHeader::cpu_level);
  r.build = all_of(ledger.headers(), &LedgerHeader::build);
  r.protocol = header.protocol;
  r.cpu = sitting.at("cpu");
  r.threads = sitting.at("threads");
  r.read_bandwidth_gbps = sitting.at("read_bandwidth_gbps");
  r.speed_compute_mode = sitting.at("compute");
  r.fp32_gmacs = sitting.at("fp32_gmacs");
  r.int8_gmacs = sitting.at("int8_gmacs");
  r.context = manifest.at("context");
  r.kl_positions = manifest.at("kl_positions");
  r.documents_planned = manifest.at("documents").size();
  r.calibration_documents = manifest.at("calibration").size();
  for (const json& d : manifest.at("calibration")) r.calibration_tokens += d.at("tokens").get<std::int64_t>();
  r.root_hash = ledger.root_hash();
  r.rows = ledger.rows().size();
  return r;
}

}  // namespace

StudyResults collect_results(const std::filesystem::path& folder) {
  try {
    return collect(folder);
  } catch (const json::exception& e) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("the study's manifest or rows lack something: {}", e.what()), folder.string());
  } catch (Error& e) {
    e.add_context(folder.string());
    throw;
  }
}

}  // namespace wring::lab
