#include "lab/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/cpu.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "evaluate/engine_scorer.h"
#include "evaluate/nll.h"
#include "evaluate/reference.h"
#include "lab/machine.h"
#include "lab/speed.h"
#include "quantize/importance.h"
#include "quantize/plan.h"
#include "quantize/recipe.h"
#include "quantize/write_gguf.h"

namespace wring::lab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string file_hash(const fs::path& path) {
  const MappedFile file(path);
  return xxh3_128_hex({reinterpret_cast<const char*>(file.bytes().data()), file.size()});
}

void make_folder(const fs::path& path) {
  std::error_code fault;
  fs::create_directories(path, fault);
  if (fault) throw_errno(fault.value(), "making the study's folder", path.string());
}

class StudyRun {
 public:
  StudyRun(const StudyPlan& plan, const engine::ModelFiles& files, ProgressSink& progress,
           const std::function<void(std::string_view)>& say)
      : plan_(plan), files_(files), paths_(plan.options.folder), progress_(progress), say_(say) {}

  void run() {
    make_folder(paths_.folder);
    freeze(plan_);
    make_folder(paths_.models());
    make_folder(paths_.cache());
    const LedgerHeader header = {plan_.protocol(), plan_.model_hash, plan_.options.build,
                                 std::string(isa_name(choose_isa())), "exact"};
    ledger_ = Ledger::read(paths_.rows());
    ledger_.require(header);
    writer_ = std::make_unique<LedgerWriter>(paths_.rows(), "main", header);
    record_source();
    make_importance();
    for (const std::string& recipe : plan_.options.recipes) make_file(recipe);
    evaluate_all();
    measure_speeds();
    writer_->flush();
  }

 private:
  bool has(const std::string& id) const { return ledger_.find(id) != nullptr; }

  /// True if `path` holds exactly the file that row `id` records.
  bool is_done(const std::string& id, const fs::path& path) const {
    const LedgerRow* row = ledger_.find(id);
    return row != nullptr && fs::exists(path) && file_hash(path) == row->value.at("xxh3").get<std::string>();
  }

  /// Records a file that was made. If the ledger knows it already, it must have come out the same.
  void record_file(const std::string& id, const std::string& kind, const fs::path& path, json value) {
    const std::string hash = file_hash(path);
    if (const LedgerRow* row = ledger_.find(id)) {
      if (row->value.at("xxh3") == hash) return;
      throw Error(ErrorCode::kBadInput,
                  "the file came out differently from the one that this study has measured",
                  fmt::format("{}: {} now, {} recorded", path.string(), hash,
                              row->value.at("xxh3").get<std::string>()),
                  "start the study over in another folder");
    }
    value["xxh3"] = hash;
    value["file_bytes"] = fs::file_size(path);
    writer_->append(id, kind, value);
    writer_->flush();
  }

  void record_source() {
    if (has("source")) return;
    const model::Model& m = files_.model;
    std::map<std::string, std::uint64_t> types;
    std::uint64_t bytes = 0, weights = 0;
    for (const model::LinearUse& use : model::block_linears(m.spec())) {
      if (use.site == model::Site::kKept) continue;
      const model::Weight& w = m.weight(use.linear->name + ".weight");
      types[w.type_name()] += w.elements();
      bytes += w.bytes();
      weights += w.elements();
    }
    const auto main = std::ranges::max_element(types, {}, [](const auto& entry) { return entry.second; });
    writer_->append("source", "source",
                    {{"architecture", m.config().model_type},
                     {"parameters", m.parameters()},
                     {"type", main->first},
                     {"file_bytes", m.file_bytes()},
                     {"already_quantized", m.is_quantized()},
                     {"revision", m.revision()},
                     {"bits_per_weight", 8.0 * static_cast<double>(bytes) / static_cast<double>(weights)},
                     {"file_bits_per_weight",
                      8.0 * static_cast<double>(m.payload_bytes()) / static_cast<double>(m.parameters())}});
  }

  std::vector<std::vector<engine::TokenId>> calibration_ids() const {
    std::vector<std::vector<engine::TokenId>> documents;
    for (const evaluate::Document& d : plan_.calibration_documents) documents.push_back(d.ids);
    return documents;
  }

  void make_importance() {
    const bool wanted = std::ranges::any_of(plan_.options.recipes, [](const std::string& name) {
      const quantize::Recipe recipe = quantize::parse_recipe(name);
      return recipe.importance && !recipe.feedback;  // feedback takes its own
    });
    if (!wanted || is_done("imatrix", paths_.imatrix())) return;
    say_(fmt::format("importance from {} calibration documents", plan_.calibration_documents.size()));
    const std::vector<std::vector<engine::TokenId>> documents = calibration_ids();
    std::size_t tokens = 0;
    for (const auto& d : documents) tokens += d.size();
    engine::Engine engine(files_.model, {.threads = plan_.options.threads});
    const double start = now_seconds();
    formats::write_imatrix(quantize::collect_importance(engine, documents, "calibration", progress_),
                           paths_.imatrix());
    record_file("imatrix", "imatrix", paths_.imatrix(),
                {{"documents", documents.size()}, {"tokens", tokens}, {"seconds", now_seconds() - start}});
  }

  void make_file(const std::string& name) {
    const fs::path path = paths_.model(name);
    const std::string id = "quantize/" + name;
    if (is_done(id, path)) return;
    say_(fmt::format("quantizing {}", name));
    ThreadPool pool(threads_or_default(plan_.options.threads));
    quantize::QuantPlan plan =
        quantize::make_plan(files_.model.spec(), quantize::parse_recipe(name), {.threads = pool.threads()});
    quantize::settle_plan(plan, quantize::largest_magnitudes(files_.model, plan, pool, progress_));
    std::optional<formats::Imatrix> imatrix;
    if (plan.importance && !plan.feedback) imatrix = formats::read_imatrix(paths_.imatrix());
    std::optional<quantize::BlockFeedback> feedback;
    const std::vector<std::vector<engine::TokenId>> documents = calibration_ids();
    if (plan.feedback)
      feedback.emplace(files_.model, plan, documents, quantize::FeedbackOptions{}, pool.threads());
    const quantize::QuantizeReport report = quantize::write_gguf(
        files_.model, plan, {imatrix ? &*imatrix : nullptr, feedback ? &*feedback : nullptr}, path, pool,
        progress_);
    for (const std::string& w : report.warnings) say_(fmt::format("warning: {}", w));
    json substituted = json::array();
    for (const quantize::PlannedTensor& t : plan.tensors) {
      if (t.substituted())
        substituted.push_back({{"name", t.name}, {"used", formats::name_of(t.used)}, {"reason", t.reason}});
    }
    json value = {{"payload_bytes", plan.payload_bytes()},
                  {"bits_per_weight", plan.block_matrix_bits()},
                  {"file_bits_per_weight", plan.file_bits()},
                  {"relative_error", report.relative_error},
                  {"seconds", report.seconds},
                  {"substituted", substituted}};
    if (report.weighted_error) value["weighted_error"] = *report.weighted_error;
    record_file(id, "quantize", path, std::move(value));
  }

  std::string row_id(const std::string& candidate, const evaluate::Document& d) const {
    return fmt::format("document/{}/{}", candidate, d.id);
  }

  std::vector<std::size_t> missing(const std::string& candidate) const {
    std::vector<std::size_t> which;
    for (std::size_t i = 0; i < plan_.documents.size(); ++i) {
      if (!has(row_id(candidate, plan_.documents[i]))) which.push_back(i);
    }
    return which;
  }

  void evaluate_all() {
    std::vector<std::pair<std::string, std::vector<std::size_t>>> todo;
    for (const std::string& name : plan_.options.recipes) {
      if (std::vector<std::size_t> which = missing(name); !which.empty())
        todo.emplace_back(name, std::move(which));
    }
    const std::vector<std::size_t> source_missing = missing(kReferenceName);
    if (todo.empty() && source_missing.empty()) return;
    const evaluate::Reference reference = open_reference();
    if (!source_missing.empty()) {
      const std::vector<evaluate::DocumentResult> results =
          evaluate::reference_results(reference, plan_.documents);
      for (const std::size_t i : source_missing) record(kReferenceName, i, results[i]);
    }
    for (const auto& [name, which] : todo) evaluate_one(name, which, reference);
  }

  evaluate::Reference open_reference() {
    const evaluate::ReferenceKey key = {plan_.model_hash, evaluate::tokenized_hash(plan_.documents), "exact",
                                        plan_.options.positions};
    try {
      std::optional<evaluate::Reference> found = evaluate::Reference::open(paths_.cache(), key);
      if (found) {
        found->check_rows();
        return std::move(*found);
      }
    } catch (const Error& e) {
      if (e.code() != ErrorCode::kBadInput) throw;
      say_(fmt::format("warning: {} — {} — the source is evaluated again", e.message(), e.where()));
    }
    say_(fmt::format("evaluating the source on {} documents", plan_.documents.size()));
    engine::Engine engine(files_.model, {.threads = plan_.options.threads});
    evaluate::EngineScorer scorer(engine);
    return evaluate::record_reference(scorer, plan_.documents, key, paths_.cache(), progress_);
  }

  void evaluate_one(const std::string& name, const std::vector<std::size_t>& which,
                    const evaluate::Reference& reference) {
    say_(fmt::format("evaluating {} on {} documents", name, which.size()));
    const model::Model model = model::Model::open(paths_.model(name));
    engine::Engine engine(model, {.threads = plan_.options.threads});
    evaluate::EngineScorer scorer(engine);
    evaluate::DocumentRun run;
    run.documents = plan_.documents;
    run.which = which;
    run.reference = &reference;
    run.positions = plan_.options.positions;
    run.tokenizer = &files_.require_tokenizer();
    run.pool = &engine.pool();
    evaluate::run_documents(scorer, run, progress_, name,
                            [&](std::size_t i, const evaluate::DocumentResult& r) { record(name, i, r); });
    writer_->flush();
  }

  void record(const std::string& candidate, std::size_t document, const evaluate::DocumentResult& result) {
    writer_->append(row_id(candidate, plan_.documents[document]), "document", evaluate::to_json(result));
  }

  // All candidates are timed in one sitting; a sitting that was interrupted is measured again as a whole.
  void measure_speeds() {
    if (has("sitting/0")) return;
    int attempt = 0;
    for (const LedgerRow& row : ledger_.rows()) {
      if (row.kind == "speed") attempt = std::max(attempt, row.value.at("attempt").get<int>() + 1);
    }
    say_("timing all files, interleaved");
    std::vector<std::string> names = {kReferenceName};
    std::vector<std::unique_ptr<model::Model>> models;
    std::vector<std::unique_ptr<engine::Engine>> engines;
    engines.push_back(std::make_unique<engine::Engine>(files_.model, speed_engine()));
    for (const std::string& name : plan_.options.recipes) {
      names.push_back(name);
      models.push_back(std::make_unique<model::Model>(model::Model::open(paths_.model(name))));
      engines.push_back(std::make_unique<engine::Engine>(*models.back(), speed_engine()));
    }
    std::vector<engine::Engine*> pointers;
    for (const auto& e : engines) pointers.push_back(e.get());
    const MachinePeaks peaks = measure_peaks(engines.front()->pool());
    const auto rows = measure_speed(pointers, plan_.options.speed, progress_);
    for (std::size_t m = 0; m < names.size(); ++m) {
      for (const SpeedRow& r : rows[m]) {
        writer_->append(fmt::format("speed/{}/{}/{}x{}", attempt, names[m], r.prompt, r.batch), "speed",
                        {{"attempt", attempt},
                         {"candidate", names[m]},
                         {"compute", compute_mode_name(engine::ComputeMode::kPacked)},
                         {"prompt", r.prompt},
                         {"batch", r.batch},
                         {"ttft_ms", to_json(r.ttft_ms)},
                         {"prefill_tokens_per_s", to_json(r.prefill_tokens_per_s)},
                         {"decode_tokens_per_s", to_json(r.decode_tokens_per_s)},
                         {"weights_bytes", r.memory.weights_bytes},
                         {"kv_bytes", r.memory.kv_bytes},
                         {"workspace_bytes", r.memory.workspace_bytes}});
      }
    }
    writer_->append("sitting/0", "sitting",
                    {{"attempt", attempt},
                     {"compute", compute_mode_name(engine::ComputeMode::kPacked)},
                     {"threads", pointers.front()->pool().threads()},
                     {"cpu", cpu_info().model},
                     {"read_bandwidth_gbps", peaks.read_bandwidth_gbps},
                     {"fp32_gmacs", peaks.fp32_gmacs},
                     {"int8_gmacs", peaks.int8_gmacs}});
  }

  // What a user gets, whatever the evaluation's mode.
  engine::EngineOptions speed_engine() const {
    return {.compute = engine::ComputeMode::kPacked, .threads = plan_.options.threads};
  }

  static double now_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  const StudyPlan& plan_;
  const engine::ModelFiles& files_;
  StudyPaths paths_;
  ProgressSink& progress_;
  const std::function<void(std::string_view)>& say_;
  Ledger ledger_;
  std::unique_ptr<LedgerWriter> writer_;
};

}  // namespace

fs::path StudyPaths::model(std::string_view recipe) const {
  std::string name(recipe);
  std::ranges::replace(name, '+', '-');
  return models() / (name + ".gguf");
}

std::vector<fs::path> StudyPaths::all() const {
  std::vector<fs::path> paths = {manifest(), rows(), cache(), index(), imatrix(), models()};
  for (const char* name : {"report.html", "report.md", "report.json"}) paths.push_back(folder / name);
  return paths;
}

std::vector<StudyForecast> forecast(const StudyPlan& plan, const engine::ModelFiles& files) {
  std::vector<StudyForecast> out;
  for (const std::string& name : plan.options.recipes) {
    const quantize::QuantPlan p = quantize::make_plan(files.model.spec(), quantize::parse_recipe(name), {});
    out.push_back({name, p.payload_bytes(), p.block_matrix_bits()});
  }
  return out;
}

double study_macs(const StudyPlan& plan, const engine::ModelFiles& files) {
  const model::ModelSpec& spec = files.model.spec();
  const double blocks = model::block_macs(spec);
  const double head = static_cast<double>(spec.head.rows * spec.head.columns);
  double macs = 0;
  for (const evaluate::Document& d : plan.documents) {
    macs += (blocks + head) * static_cast<double>(d.ids.size()) *
            static_cast<double>(plan.options.recipes.size() + 1);
  }
  for (const evaluate::Document& d : plan.calibration_documents)
    macs += blocks * static_cast<double>(d.ids.size());
  return macs;
}

void run_study(const StudyPlan& plan, const engine::ModelFiles& files, ProgressSink& progress,
               const std::function<void(std::string_view)>& say) {
  StudyRun(plan, files, progress, say).run();
}

}  // namespace wring::lab
