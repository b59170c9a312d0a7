// A study, stage by stage: importance, quantized files, evaluation of each against the source, speed. Every
// stage first looks at what the ledger already holds and does only the rest, so a study that was interrupted
// (or killed) goes on where it stood, and one that is complete is only read. Every number lands in the ledger
// before anyone sees it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "engine/model_files.h"
#include "lab/ledger.h"
#include "lab/study_plan.h"

namespace wring::lab {

/// Where things lie in a study's folder.
struct StudyPaths {
  explicit StudyPaths(std::filesystem::path study_folder) : folder(std::move(study_folder)) {}
  std::filesystem::path folder;

  std::filesystem::path manifest() const { return folder / "manifest.json"; }
  std::filesystem::path rows() const { return folder / "rows"; }
  std::filesystem::path cache() const { return folder / "cache"; }         // deletable
  std::filesystem::path index() const { return folder / "index.sqlite"; }  // deletable
  std::filesystem::path imatrix() const { return folder / "imatrix.gguf"; }
  std::filesystem::path models() const { return folder / "models"; }
  /// models/q4_k-imatrix.gguf
  std::filesystem::path model(std::string_view recipe) const;
  /// Every name that a study and its report write in the folder, the manifest included.
  std::vector<std::filesystem::path> all() const;
};

/// What a recipe's file will be, before anything is computed.
struct StudyForecast {
  std::string recipe;
  std::uint64_t bytes = 0;
  double bits_per_weight = 0;  // over the quantized matrices
};
std::vector<StudyForecast> forecast(const StudyPlan& plan, const engine::ModelFiles& files);

/// Multiply-adds that the study's evaluation and calibration will take, attention left out.
double study_macs(const StudyPlan& plan, const engine::ModelFiles& files);

/// Runs what is missing. `say` gets one line of text at the start of each stage. Errors: those of the stages;
/// the ledger keeps what was done.
void run_study(const StudyPlan& plan, const engine::ModelFiles& files, ProgressSink& progress,
               const std::function<void(std::string_view)>& say);

}  // namespace wring::lab
