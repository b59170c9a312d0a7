// What a study will do, settled and frozen before its first result: model, recipes, texts, protocol. The
// manifest in the study's folder records it with hashes; a later run over the same folder must agree with it
// or is refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/model_files.h"
#include "evaluate/documents.h"
#include "evaluate/kl.h"
#include "lab/speed.h"

namespace wring::lab {

/// The reference of every study: the source as it is.
inline constexpr const char* kReferenceName = "source";

struct StudyOptions {
  std::filesystem::path model;
  std::filesystem::path folder;
  std::vector<std::string> recipes;                // in the order of the table
  std::vector<std::filesystem::path> texts;        // evaluated on
  std::vector<std::filesystem::path> calibration;  // importance is taken from
  std::int64_t documents = 0;                      // evaluated; 0: all
  std::int64_t calibration_documents = 0;          // 0: all
  std::int64_t context = 1024;                     // tokens of a document
  evaluate::KlPositions positions = evaluate::KlPositions::kThirtyTwo;
  SpeedProtocol speed;
  int threads = 0;
  std::string build;  // for the record
};

/// Sets what the preset names: "quick" (12 documents, 16 calibration documents, 3 short speed runs),
/// "standard" or "full" (128 documents of 1,024 tokens, speed at 512 and 4,096). Errors: kUsage for another
/// name.
void apply_preset(StudyOptions& options, const std::string& preset);

/// Takes `count` documents, going round the domains in the order in which they appear; all where count is 0
/// or there are fewer.
evaluate::TextSet pick_documents(const evaluate::TextSet& texts, std::int64_t count);

/// A study ready to run.
struct StudyPlan {
  StudyOptions options;
  std::string model_hash;
  evaluate::TextSet texts, calibration;
  std::vector<evaluate::Document> documents;  // tokenized for the model
  std::vector<evaluate::Document> calibration_documents;

  /// What the manifest records; its hash is the ledger's protocol id.
  nlohmann::json manifest() const;
  std::string protocol() const;
};

/// The protocol id of a manifest.
std::string protocol_of(const nlohmann::json& manifest);

/// Reads and hashes everything that the study rests on. Errors: those of the readers and of parse_recipe;
/// kUsage for a recipe named twice, one with importance and no calibration texts, or a folder in which the
/// study would write among its inputs or over files that are not a study's; kBadInput if the model's
/// context is too short for `context` or the speed protocol, or if a text occurs both in evaluation and
/// calibration, naming both documents.
StudyPlan make_study_plan(const StudyOptions& options, const engine::ModelFiles& files,
                          ProgressSink& progress);

/// Writes the manifest, or checks that the folder's own agrees. Errors: kBadInput naming the field that
/// differs.
void freeze(const StudyPlan& plan);

}  // namespace wring::lab
