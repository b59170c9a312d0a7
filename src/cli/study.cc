// wring study: what several smaller files of a model cost, measured and reported in one go. The work is
// lab/'s.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/cpu.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/open.h"
#include "cli/show_report.h"
#include "cli/version.h"
#include "lab/machine.h"
#include "lab/study.h"
#include "lab/study_results.h"

namespace wring::cli {
namespace {

using nlohmann::ordered_json;

struct StudyOptions {
  Common common;
  std::string preset = "quick";
  std::vector<std::string> recipes = {"q8_0", "q4_k", "q4_k+imatrix"}, texts, calibration;
  std::string model, folder;
  bool dry_run = false;
};

lab::StudyOptions study_options(const StudyOptions& o) {
  lab::StudyOptions s;
  lab::apply_preset(s, o.preset);
  s.model = o.model;
  s.folder = o.folder;
  s.recipes = o.recipes;
  s.texts.assign(o.texts.begin(), o.texts.end());
  s.calibration.assign(o.calibration.begin(), o.calibration.end());
  s.threads = o.common.threads;
  s.build = build_id();
  return s;
}

// Half the measured peak is what evaluation reaches with attention and all else counted in.
constexpr double kShareOfPeak = 0.5;

void dry_run(const StudyOptions& o, const lab::StudyPlan& plan, const engine::ModelFiles& files) {
  ThreadPool pool(threads_or_default(o.common.threads));
  const double seconds =
      lab::study_macs(plan, files) / (lab::measure_peaks(pool).fp32_gmacs * 1e9 * kShareOfPeak);
  ordered_json out = {{"dir", o.folder},
                      {"documents", plan.documents.size()},
                      {"calibration_documents", plan.calibration_documents.size()}};
  std::string text =
      fmt::format("{} documents, {} for calibration, {} tokens each at most\n", plan.documents.size(),
                  plan.calibration_documents.size(), plan.options.context);
  std::uint64_t bytes = 0;
  for (const lab::StudyForecast& f : lab::forecast(plan, files)) {
    bytes += f.bytes;
    out["files"].push_back(
        {{"recipe", f.recipe}, {"bytes", f.bytes}, {"bits_per_weight", f.bits_per_weight}});
    text += fmt::format("  {:16} {:>12}, {:.3f} bits a weight\n", f.recipe,
                        human_bytes(static_cast<double>(f.bytes)), f.bits_per_weight);
  }
  out["disk_bytes"] = bytes;
  out["evaluation_seconds"] = seconds;
  text += fmt::format(
      "{} of files; evaluation and calibration take about {:.1f} minutes here, quantizing and timing come on "
      "top\n",
      human_bytes(static_cast<double>(bytes)), seconds / 60);
  if (o.common.json) {
    print_json(out);
  } else {
    print(text);
  }
}

void run(const StudyOptions& o) {
  const lab::StudyOptions options = study_options(o);
  const engine::ModelFiles files = open_model_files(o.model);
  const lab::StudyPlan plan = lab::make_study_plan(options, files, terminal_progress());
  for (const std::string& note : plan.texts.notes) warn(note);
  if (o.dry_run) return dry_run(o, plan, files);
  lab::run_study(plan, files, terminal_progress(), [](std::string_view line) {
    clear_progress();
    note(fmt::format("{}\n", line));
  });
  const lab::StudyResults results = lab::collect_results(o.folder);
  show_report(results, o.folder, o.common.json);
}

}  // namespace

void add_study(CLI::App& app) {
  auto o = std::make_shared<StudyOptions>();
  CLI::App* c = add_command(
      app, "study", "quantizes a model several ways, measures what each file costs, writes a report",
      "wring study sample/hf -o study --text final.jsonl --calibration calibration.jsonl", o->common,
      [o] { run(*o); });
  c->add_option("MODEL", o->model, "Hugging Face folder or .gguf file")->required();
  c->add_option("-o,--output", o->folder, "the study's folder; one that is unfinished is taken up again")
      ->required();
  c->add_option("--preset", o->preset, "quick: 12 documents; standard, full: 128 documents of 1,024 tokens")
      ->check(CLI::IsMember({"quick", "standard", "full"}))
      ->capture_default_str();
  c->add_option("--recipes", o->recipes, "what to compare with the source, as q8_0,q4_k")
      ->delimiter(',')
      ->capture_default_str();
  c->add_option("--text", o->texts, "texts to evaluate on: .txt or JSONL")->required();
  c->add_option("--calibration", o->calibration, "texts for the importance matrix; no text may be in both");
  c->add_flag("--dry-run", o->dry_run, "tell time and disk only");
}

}  // namespace wring::cli
