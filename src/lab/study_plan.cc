#include "lab/study_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "formats/json.h"
#include "lab/study.h"
#include "quantize/gguf_metadata.h"
#include "quantize/recipe.h"

namespace wring::lab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json describe(const std::vector<evaluate::Document>& documents) {
  json list = json::array();
  for (const evaluate::Document& d : documents) {
    list.push_back({{"id", d.id}, {"domain", d.domain}, {"sha256", d.sha256}, {"tokens", d.ids.size()}});
  }
  return list;
}

void refuse_overlap(const evaluate::TextSet& texts, const evaluate::TextSet& calibration) {
  std::unordered_map<std::string_view, std::string_view> seen;
  for (const evaluate::TextDocument& d : calibration.documents) seen.emplace(d.sha256, d.source);
  for (const evaluate::TextDocument& d : texts.documents) {
    const auto found = seen.find(d.sha256);
    if (found == seen.end()) continue;
    throw Error(ErrorCode::kBadInput, "the same text is used for calibration and for evaluation",
                fmt::format("{} and {}", found->second, d.source),
                "make disjoint files, for example with wring corpus");
  }
}

// A study writes under names of its own. None of them may be an input's, or one that stands there without a
// study; and a model's folder is not a place for results.
void refuse_onto_files(const StudyOptions& options) {
  std::error_code ignored;
  const StudyPaths paths(options.folder);
  const std::vector<fs::path> own = paths.all();
  std::vector<fs::path> inputs = {options.model};
  inputs.insert(inputs.end(), options.texts.begin(), options.texts.end());
  inputs.insert(inputs.end(), options.calibration.begin(), options.calibration.end());
  for (const fs::path& input : inputs) {
    const bool in_the_way = std::ranges::any_of(own, [&](const fs::path& p) { return is_within(input, p); });
    if (!in_the_way && !(fs::is_directory(input, ignored) && is_within(options.folder, input))) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("the study would write among its inputs: {} is one", printable(input.string())),
                options.folder.string(), "choose a folder of its own for the study");
  }
  if (fs::exists(paths.manifest(), ignored)) return;
  for (const fs::path& path : own) {
    if (!fs::exists(path, ignored)) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("the folder holds {}, which is not of a study begun here",
                            printable(path.filename().string())),
                options.folder.string(), "choose another folder for the study");
  }
}

// What a study must not find out halfway, its manifest written and hours spent.
void check_options(const StudyOptions& options, const model::ModelConfig& config) {
  refuse_onto_files(options);
  with_context(options.model.string(), [&] { quantize::refuse_another_computation(config); });
  std::set<std::string> seen;
  for (const std::string& recipe : options.recipes) {
    const quantize::Recipe parsed = quantize::parse_recipe(recipe);
    if (parsed.codes) {
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("recipe {} writes a folder, which studies do not hold yet", recipe),
                  "--recipes");
    }
    if ((parsed.importance || parsed.feedback) && options.calibration.empty()) {
      throw Error(ErrorCode::kUsage, fmt::format("recipe {} needs calibration texts", recipe),
                  "--calibration", "name a file, or leave the recipe out of --recipes");
    }
    if (!seen.insert(recipe).second)
      throw Error(ErrorCode::kUsage, fmt::format("recipe {} stands twice", recipe), "--recipes");
  }
  evaluate::check_context(options.context, config.max_position_embeddings);
  check_speed_protocol(options.speed, config.max_position_embeddings);
}

}  // namespace

void apply_preset(StudyOptions& o, const std::string& preset) {
  if (preset == "quick") {
    o.documents = 12;
    o.calibration_documents = 16;
    o.context = 512;
    o.speed = {.prompts = {128}, .generate = 16, .batches = {1}, .warmups = 1, .runs = 3};
  } else if (preset == "standard" || preset == "full") {
    o.documents = 128;
    o.calibration_documents = 128;
    o.context = 1024;
    o.speed = {.prompts = {512, 4096}, .generate = 256, .batches = {1}, .warmups = 2, .runs = 5};
    if (preset == "standard") o.speed.prompts = {512};
  } else {
    throw Error(ErrorCode::kUsage, fmt::format("preset {} is not known", preset), "--preset",
                "use quick, standard or full");
  }
}

evaluate::TextSet pick_documents(const evaluate::TextSet& texts, std::int64_t count) {
  if (count == 0 || count >= static_cast<std::int64_t>(texts.documents.size())) return texts;
  std::vector<std::vector<const evaluate::TextDocument*>> domains;
  std::map<std::string, std::size_t> index;
  for (const evaluate::TextDocument& d : texts.documents) {
    const auto [at, added] = index.emplace(d.domain, domains.size());
    if (added) domains.emplace_back();
    domains[at->second].push_back(&d);
  }
  evaluate::TextSet picked;
  picked.notes = texts.notes;
  for (std::size_t round = 0; static_cast<std::int64_t>(picked.documents.size()) < count; ++round) {
    for (const auto& domain : domains) {
      if (round < domain.size() && static_cast<std::int64_t>(picked.documents.size()) < count)
        picked.documents.push_back(*domain[round]);
    }
  }
  return picked;
}

json StudyPlan::manifest() const {
  json m;
  m["model"] = {{"content_sha256", model_hash},
                {"name", replace_invalid_utf8(fs::weakly_canonical(options.model).filename().string())}};
  m["recipes"] = options.recipes;
  m["context"] = options.context;
  m["kl_positions"] = evaluate::kl_positions_name(options.positions);
  m["documents"] = describe(documents);
  m["calibration"] = describe(calibration_documents);
  m["speed"] = {
      {"prompts", options.speed.prompts}, {"generate", options.speed.generate},
      {"batches", options.speed.batches}, {"warmups", options.speed.warmups},
      {"runs", options.speed.runs},       {"compute", compute_mode_name(engine::ComputeMode::kPacked)}};
  m["compute"] = "exact";
  return m;
}

std::string StudyPlan::protocol() const {
  return protocol_of(manifest());
}

std::string protocol_of(const json& manifest) {
  return xxh3_128_hex(manifest.dump());
}

StudyPlan make_study_plan(const StudyOptions& options, const engine::ModelFiles& files,
                          ProgressSink& progress) {
  StudyPlan plan;
  plan.options = options;
  const std::int64_t limit = files.model.config().max_position_embeddings;
  check_options(options, files.model.config());
  plan.texts = pick_documents(evaluate::read_texts(options.texts), options.documents);
  plan.documents = evaluate::tokenize(plan.texts, files.require_tokenizer(), options.context, limit);
  if (!options.calibration.empty()) {
    plan.calibration =
        pick_documents(evaluate::read_texts(options.calibration), options.calibration_documents);
    refuse_overlap(plan.texts, plan.calibration);
    plan.calibration_documents =
        evaluate::tokenize(plan.calibration, files.require_tokenizer(), options.context, limit);
  }
  progress.update("hashing the model", 0, 1, "models");
  plan.model_hash = files.model.content_hash();
  progress.update("hashing the model", 1, 1, "models");
  return plan;
}

void freeze(const StudyPlan& plan) {
  const fs::path path = StudyPaths(plan.options.folder).manifest();
  const json wanted = plan.manifest();
  if (!fs::exists(path)) {
    write_file_atomically(path, wanted.dump(1) + "\n");
    return;
  }
  const json found = formats::read_json_file(path);
  for (const auto& [key, value] : wanted.items()) {
    const auto other = found.find(key);
    if (other != found.end() && *other == value) continue;
    const auto brief = [](const json& j) { return j.dump().substr(0, 120); };
    throw Error(ErrorCode::kBadInput,
                fmt::format("this folder holds another study: {} was {} and is now {}", key,
                            other == found.end() ? "absent" : brief(*other), brief(value)),
                path.string(), "choose another folder for the new study");
  }
  if (found != wanted)
    throw Error(ErrorCode::kBadInput, "the manifest holds fields that no study writes", path.string(),
                "restore the file, or choose another folder for the study");
}

}  // namespace wring::lab
