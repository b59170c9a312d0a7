// The index answers as the shards would and mends itself.
#include "lab/index.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"

namespace wring::lab {
namespace {

namespace fs = std::filesystem;

class IndexTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("wring-index-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    LedgerWriter writer(folder_, "a", {"p", "m", "b", "c", "exact"});
    writer.append("eval/q4_k/2", "document", {{"nll", 2.5}});
    writer.append("eval/q4_k/1", "document", {{"nll", 1.25}, {"name", "é"}});
    writer.append("eval/q4%/1", "document", {{"nll", 9.0}});
    writer.append("speed/q4_k/1", "speed", {{"tps", 30}});
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(IndexTest, AnswersFromTheLedgersRows) {
  const Ledger ledger = Ledger::read(folder_);
  const LedgerIndex index(folder_ / "index.sqlite", ledger);
  EXPECT_TRUE(index.was_rebuilt());
  const auto rows = index.rows("document", "eval/q4_k/");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].id, "eval/q4_k/1");
  EXPECT_EQ(rows[0].value, ledger.find("eval/q4_k/1")->value);
  EXPECT_EQ(rows[0].checksum, ledger.find("eval/q4_k/1")->checksum);
  EXPECT_EQ(rows[0].line, 3);
  EXPECT_EQ(index.rows("document").size(), 3U);
  EXPECT_EQ(index.rows("document", "eval/q4%").size(), 1U);
  EXPECT_EQ(index.find("speed/q4_k/1")->value.at("tps"), 30);
  EXPECT_FALSE(index.find("none").has_value());
}

TEST_F(IndexTest, IsRebuiltOnlyWhenRowsChangedOrTheFileIsDamaged) {
  const fs::path path = folder_ / "index.sqlite";
  { LedgerIndex first(path, Ledger::read(folder_)); }
  EXPECT_FALSE(LedgerIndex(path, Ledger::read(folder_)).was_rebuilt());
  LedgerWriter(folder_, "b", {"p", "m", "b", "c", "exact"}).append("eval/q4_k/3", "document", 1);
  EXPECT_TRUE(LedgerIndex(path, Ledger::read(folder_)).was_rebuilt());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << "not a database at all";
  const LedgerIndex mended(path, Ledger::read(folder_));
  EXPECT_TRUE(mended.was_rebuilt());
  EXPECT_TRUE(mended.find("eval/q4_k/3").has_value());
}

TEST_F(IndexTest, AFolderThatCannotBeWrittenIsAnIoError) {
  EXPECT_THROW(LedgerIndex(folder_ / "no" / "index.sqlite", Ledger::read(folder_)), Error);
}

}  // namespace
}  // namespace wring::lab
