// A study from plan to results on the tiny llama of tests/data: what is refused before anything is written,
// and that a second run over the folder measures nothing again.
#include "lab/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "lab/ledger.h"
#include "lab/study_results.h"

namespace wring::lab {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Study : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("wring-study-" + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_ / "model");
    const fs::path data = fs::path(WRING_SOURCE_DIR) / "tests" / "data";
    for (const char* file :
         {"arch/llama/config.json", "arch/llama/model.safetensors", "tokenizer/tok_llama/tokenizer.json",
          "tokenizer/tok_llama/tokenizer_config.json"})
      fs::copy_file(data / file, root_ / "model" / fs::path(file).filename());
    put("final.jsonl", {"a", "b", "c"});
    put("calibration.jsonl", {"x", "y"});
  }
  void TearDown() override { fs::remove_all(root_); }

  void put(const std::string& name, const std::vector<std::string>& ids) {
    std::ofstream out(root_ / name);
    for (const std::string& id : ids) {
      const std::string text =
          "The document " + id + " says that " + id + " is the name of document " + id + ".";
      out << nlohmann::json{{"id", id}, {"domain", id == "c" ? "rare" : "common"}, {"text", text}} << "\n";
    }
  }

  StudyOptions options() const {
    StudyOptions o;
    o.model = root_ / "model";
    o.folder = root_ / "study";
    o.recipes = {"q8_0", "q4_0+imatrix"};
    o.texts = {root_ / "final.jsonl"};
    o.calibration = {root_ / "calibration.jsonl"};
    o.context = 32;
    o.speed = {.prompts = {8}, .generate = 2, .batches = {1}, .warmups = 0, .runs = 1};
    o.threads = 2;
    o.build = "test";
    return o;
  }

  StudyPlan plan(const StudyOptions& o) const { return make_study_plan(o, files(), silent_progress()); }
  engine::ModelFiles files() const { return engine::ModelFiles::open(root_ / "model"); }

  std::string refusal(const StudyOptions& o) const {
    try {
      plan(o);
    } catch (const Error& e) {
      return e.what();
    }
    return "accepted";
  }

  fs::path root_;
};

TEST_F(Study, RefusesWhatCannotEndWellBeforeAnyWork) {
  StudyOptions o = options();
  o.recipes = {"q4_k+nothing"};
  EXPECT_THAT(refusal(o), HasSubstr("q4_k+nothing"));
  o = options();
  o.calibration.clear();
  EXPECT_THAT(refusal(o), HasSubstr("q4_0+imatrix needs calibration texts"));
  o = options();
  o.recipes = {"q8_0", "q8_0"};
  EXPECT_THAT(refusal(o), HasSubstr("stands twice"));
  o = options();
  o.speed.prompts = {8, 1 << 20};
  EXPECT_THAT(refusal(o), HasSubstr("1048576 tokens in"));
  o = options();
  o.calibration = o.texts;
  EXPECT_THAT(refusal(o), HasSubstr("the same text is used"));
  EXPECT_FALSE(fs::exists(options().folder));
}

TEST_F(Study, IsNotWrittenAmongItsInputsOrOverOtherFiles) {
  StudyOptions o = options();
  for (const char* folder : {"model", "model/study", "elsewhere/../model"}) {
    o.folder = root_ / folder;
    EXPECT_THAT(refusal(o), HasSubstr("among its inputs")) << folder;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(root_ / "model"), {}), 4);
  fs::create_directories(root_ / "study");
  fs::rename(root_ / "final.jsonl", root_ / "study" / "report.json");
  o.folder = root_ / "study";
  o.texts = {root_ / "study" / "report.json"};
  EXPECT_THAT(refusal(o), HasSubstr("report.json is one"));
  fs::copy(root_ / "study" / "report.json", root_ / "final.jsonl");
  o.texts = {root_ / "final.jsonl"};
  EXPECT_THAT(refusal(o), HasSubstr("holds report.json"));
  fs::rename(root_ / "study" / "report.json", root_ / "study" / "notes.txt");
  EXPECT_EQ(refusal(o), "accepted");
}

TEST_F(Study, AModelWhoseNameIsNotUtf8HasAManifest) {
  StudyOptions o = options();
  o.model = root_ / "mod\xFF";
  EXPECT_EQ(plan(o).manifest().at("model").at("name"), "mod\uFFFD");
  EXPECT_EQ(plan(o).protocol().size(), 32U);
}

TEST_F(Study, ADamagedCacheIsMadeAgainAndAManifestChangedByHandIsRefused) {
  const engine::ModelFiles model = files();
  std::string said;
  const auto say = [&](std::string_view line) { said += std::string(line) + "\n"; };
  run_study(plan(options()), model, silent_progress(), say);
  const StudyResults whole = collect_results(root_ / "study");
  ASSERT_EQ(std::distance(fs::directory_iterator(root_ / "study" / "cache"), {}), 1);
  const fs::path cache = fs::directory_iterator(root_ / "study" / "cache")->path();
  const auto size = static_cast<std::streamoff>(fs::file_size(cache));
  for (const std::streamoff at : {std::streamoff{3}, size / 2, size - 12}) {  // magic, a row, scores
    std::fstream file(cache, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const int byte = file.get();
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 0x40));
    file.close();
    fs::remove_all(root_ / "study" / "rows");
    said.clear();
    run_study(plan(options()), model, silent_progress(), say);
    EXPECT_THAT(said, HasSubstr("warning: damaged reference cache")) << at;
    const StudyResults again = collect_results(root_ / "study");
    EXPECT_EQ(again.candidates[1].eval.nll, whole.candidates[1].eval.nll);
    EXPECT_EQ(again.candidates[1].eval.against->kl->mean.mean,
              whole.candidates[1].eval.against->kl->mean.mean);
  }
  nlohmann::json manifest = nlohmann::json::parse(std::ifstream(root_ / "study" / "manifest.json"));
  manifest["documents"].erase(0);
  std::ofstream(root_ / "study" / "manifest.json") << manifest;
  try {
    collect_results(root_ / "study");
    FAIL() << "a changed manifest was accepted";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("the manifest is not the one"));
  }
}

TEST_F(Study, PicksDocumentsFromTheDomainsInTurn) {
  StudyOptions o = options();
  o.documents = 2;
  const StudyPlan p = plan(o);
  ASSERT_EQ(p.documents.size(), 2U);
  EXPECT_EQ(p.documents[0].id, "a");
  EXPECT_EQ(p.documents[1].id, "c");
}

TEST_F(Study, ASecondRunMeasuresNothingAgainAndAnotherPlanIsRefused) {
  const engine::ModelFiles model = files();
  std::vector<std::string> stages;
  const auto say = [&](std::string_view line) { stages.emplace_back(line); };
  run_study(plan(options()), model, silent_progress(), say);
  EXPECT_FALSE(stages.empty());
  const StudyResults first = collect_results(root_ / "study");
  ASSERT_EQ(first.candidates.size(), 3U);
  EXPECT_EQ(first.candidates[0].name, "source");
  EXPECT_FALSE(first.candidates[0].eval.against.has_value());
  ASSERT_TRUE(first.candidates[1].eval.against.has_value());
  EXPECT_GT(first.candidates[1].eval.against->kl->mean.mean, 0);
  EXPECT_GT(first.candidates[1].speeds.at(0).decode_tokens_per_s.median, 0);
  EXPECT_EQ(first.pairs.size(), 1U);
  EXPECT_EQ(first.build, "test");
  EXPECT_FALSE(first.candidates[1].weighted_error.has_value());
  ASSERT_TRUE(first.candidates[2].weighted_error.has_value());
  EXPECT_LT(*first.candidates[2].weighted_error, *first.candidates[2].relative_error);
  EXPECT_TRUE(fs::exists(root_ / "study" / "index.sqlite"));

  stages.clear();
  StudyOptions again = options();
  again.build = "test 2";
  run_study(plan(again), model, silent_progress(), say);
  EXPECT_TRUE(stages.empty()) << stages.front();
  const StudyResults second = collect_results(root_ / "study");
  EXPECT_EQ(second.rows, first.rows);
  EXPECT_EQ(second.build, "test, test 2");

  StudyOptions other = options();
  other.context = 16;
  EXPECT_THROW(run_study(plan(other), model, silent_progress(), say), Error);
}

}  // namespace
}  // namespace wring::lab
