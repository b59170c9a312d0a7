// The ledger keeps what it acknowledged, refuses what was altered, and says where.
#include "lab/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <limits>
#include <thread>

#include "base/error.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "lab/ledger_line.h"

namespace wring::lab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class LedgerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("wring-ledger-" + std::to_string(::getpid()) + "-" +
                                           ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path shard(const std::string& writer = "a") const { return folder_ / ("rows-" + writer + ".jsonl"); }
  std::string text(const std::string& writer = "a") const { return read_text_file(shard(writer), 1 << 30); }
  void put(const std::string& content, const std::string& writer = "a") const {
    fs::create_directories(folder_);
    std::ofstream(shard(writer), std::ios::binary) << content;
  }
  std::string error() const {
    try {
      Ledger::read(folder_);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kBadInput);
      return e.what();
    }
    return "no error";
  }

  fs::path folder_;
  LedgerHeader header_{"plan-1", "sha-model", "0.1.0 gcc 12", "avx2", "exact"};
};

TEST_F(LedgerTest, WhatWasAppendedIsReadBack) {
  {
    LedgerWriter writer(folder_, "a", header_);
    writer.append("eval/bf16/ko-1", "document",
                  {{"nll_sum", 1.0 / 3}, {"tokens", 1023}, {"note", "한국어\n"}});
    writer.append("eval/bf16/ko-2", "document", {{"kl", {0.0, 1e-300, 5e-324}}, {"missing", nullptr}});
    writer.flush();
    EXPECT_EQ(writer.acknowledged(), 2U);
  }
  const Ledger ledger = Ledger::read(folder_);
  ASSERT_EQ(ledger.rows().size(), 2U);
  EXPECT_EQ(ledger.find("eval/bf16/ko-1")->value.at("nll_sum").get<double>(), 1.0 / 3);
  EXPECT_EQ(ledger.find("eval/bf16/ko-1")->value.at("note"), "한국어\n");
  EXPECT_EQ(ledger.find("eval/bf16/ko-2")->value.at("kl").at(2).get<double>(), 5e-324);
  EXPECT_EQ(ledger.find("eval/bf16/ko-2")->line, 3);
  EXPECT_EQ(ledger.find("nothing"), nullptr);
  ASSERT_EQ(ledger.headers().size(), 1U);
  EXPECT_EQ(ledger.headers()[0], header_);
  EXPECT_EQ(ledger.torn_lines(), 0);
}

TEST_F(LedgerTest, RowsAreAcknowledgedWithinAFewGroupsWithoutFlush) {
  LedgerWriter writer(folder_, "a", header_);
  for (int i = 0; i < 50; ++i) writer.append("r" + std::to_string(i), "x", i);
  for (int i = 0; i < 100 && writer.acknowledged() < 50; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(writer.acknowledged(), 50U);
}

TEST_F(LedgerTest, AMissingFolderIsAnEmptyLedger) {
  const Ledger ledger = Ledger::read(folder_);
  EXPECT_TRUE(ledger.rows().empty());
  EXPECT_TRUE(ledger.headers().empty());
}

TEST_F(LedgerTest, AWholeLastLineWithoutNewlineIsKeptAndNothingIsGluedToIt) {
  { LedgerWriter(folder_, "a", header_).append("r1", "x", 1); }
  std::string content = text();
  ASSERT_EQ(content.back(), '\n');
  content.pop_back();
  put(content);
  EXPECT_EQ(Ledger::read(folder_).rows().size(), 1U);
  EXPECT_EQ(Ledger::read(folder_).torn_lines(), 0);
  { LedgerWriter(folder_, "a", header_).append("r2", "x", 2); }
  const Ledger ledger = Ledger::read(folder_);
  ASSERT_EQ(ledger.rows().size(), 2U);
  EXPECT_EQ(ledger.find("r1")->value, 1);
  EXPECT_EQ(ledger.find("r2")->value, 2);
}

TEST_F(LedgerTest, ATornLastLineIsDroppedCountedAndCutOffBeforeAppending) {
  {
    LedgerWriter writer(folder_, "a", header_);
    writer.append("r1", "x", 1);
    writer.append("r2", "x", 2);
  }
  const std::string whole = text();
  const std::size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  for (std::size_t cut = last + 1; cut + 1 < whole.size(); ++cut) {
    put(whole.substr(0, cut));
    const Ledger ledger = Ledger::read(folder_);
    ASSERT_EQ(ledger.rows().size(), 1U) << cut;
    ASSERT_EQ(ledger.torn_lines(), 1) << cut;
  }
  { LedgerWriter(folder_, "a", header_).append("r3", "x", 3); }
  const Ledger ledger = Ledger::read(folder_);
  EXPECT_EQ(ledger.rows().size(), 2U);
  EXPECT_NE(ledger.find("r3"), nullptr);
  EXPECT_EQ(ledger.torn_lines(), 0);
}

TEST_F(LedgerTest, ZerosThatAPowerCutLeavesAtTheEndAreATornLine) {
  { LedgerWriter(folder_, "a", header_).append("r1", "x", 1); }
  put(text() + std::string(100, '\0'));
  EXPECT_EQ(Ledger::read(folder_).torn_lines(), 1);
  EXPECT_EQ(Ledger::read(folder_).rows().size(), 1U);
}

TEST_F(LedgerTest, EveryFlippedByteIsFound) {
  {
    LedgerWriter writer(folder_, "a", header_);
    writer.append("r1", "x", {{"v", 1.5}});
    writer.append("r2", "x", {{"v", 2.5}});
  }
  const std::string whole = text();
  const std::size_t end_of_second = whole.rfind('\n', whole.size() - 2);
  for (std::size_t at = 0; at < end_of_second; ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    put(damaged);
    EXPECT_THROW(Ledger::read(folder_), Error) << at;
  }
}

TEST_F(LedgerTest, DamageInTheMiddleNamesFileLineAndId) {
  {
    LedgerWriter writer(folder_, "a", header_);
    for (int i = 0; i < 8; ++i) writer.append("item" + std::to_string(i), "x", {{"nll", 1.5}});
  }
  std::string content = text();
  const std::size_t at = content.find("1.5", content.find("item5"));
  content[at] = '7';
  put(content);
  EXPECT_THAT(error(), AllOf(HasSubstr("rows-a.jsonl line 7"), HasSubstr("item5"), HasSubstr("checksum")));
  content.replace(content.find("{\"xxh3\"", content.find("item4")), 5, "@@@@@");
  put(content);
  EXPECT_THAT(error(), AllOf(HasSubstr("line 7"), HasSubstr("not a ledger line")));
}

TEST_F(LedgerTest, NotANumberIsRefusedInBothDirections) {
  {
    LedgerWriter writer(folder_, "a", header_);
    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      try {
        writer.append("i5", "document", {{"a", {{"nll", {1.0, bad}}}}});
        FAIL() << "accepted " << bad;
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::kBadInput);
        EXPECT_THAT(e.what(), AllOf(HasSubstr("i5"), HasSubstr("nll")));
      }
    }
  }
  const std::string row = R"({"id":"i6","kind":"document","value":{"nll":NaN}})";
  char sum[17];
  std::snprintf(sum, sizeof sum, "%016llx", static_cast<unsigned long long>(xxh3_64(row)));
  put(text() + R"({"xxh3":")" + sum + R"(","row":)" + row + "}\n");
  EXPECT_THAT(error(), AllOf(HasSubstr("i6"), HasSubstr("line 2")));
}

TEST_F(LedgerTest, TextThatIsNotUtf8IsRefusedWithItsId) {
  LedgerWriter writer(folder_, "a", header_);
  try {
    writer.append("i7", "document", {{"text", "\xff"}});
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("i7"));
  }
}

TEST_F(LedgerTest, IdenticalDuplicatesAreFineAndDifferentOnesAreNamed) {
  {
    LedgerWriter(folder_, "a", header_).append("i3", "x", {{"v", 1}});
    LedgerWriter(folder_, "b", header_).append("i3", "x", {{"v", 1}});
  }
  const Ledger same = Ledger::read(folder_);
  EXPECT_EQ(same.rows().size(), 1U);
  { LedgerWriter(folder_, "b", header_).append("i4", "x", {{"v", 1}}); }
  { LedgerWriter(folder_, "a", header_).append("i4", "x", {{"v", 2}}); }
  EXPECT_THAT(error(), AllOf(HasSubstr("i4"), HasSubstr("duplicate"), HasSubstr("rows-a.jsonl line 3"),
                             HasSubstr("rows-b.jsonl line 3")));
}

TEST_F(LedgerTest, AnotherModelOrProtocolIsRefusedGivingBoth) {
  { LedgerWriter(folder_, "a", header_).append("r1", "x", 1); }
  LedgerHeader other = header_;
  other.model_hash = "sha-other";
  try {
    LedgerWriter(folder_, "b", other);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kBadInput);
    EXPECT_THAT(e.what(), AllOf(HasSubstr("sha-model"), HasSubstr("sha-other"), HasSubstr("model")));
  }
  EXPECT_FALSE(fs::exists(shard("b")));
  other = header_;
  other.protocol = "plan-2";
  EXPECT_THROW(Ledger::read(folder_).require(other), Error);
  other = header_;
  other.compute_mode = "packed";
  EXPECT_THROW(Ledger::read(folder_).require(other), Error);
  other = header_;
  other.build = "another";
  EXPECT_NO_THROW(Ledger::read(folder_).require(other));
}

TEST_F(LedgerTest, AnotherBuildIsRecordedOnce) {
  LedgerHeader newer = header_;
  newer.build = "0.1.1";
  { LedgerWriter(folder_, "a", header_).append("r1", "x", 1); }
  { LedgerWriter(folder_, "a", newer).append("r2", "x", 2); }
  { LedgerWriter(folder_, "a", newer).append("r3", "x", 3); }
  const Ledger ledger = Ledger::read(folder_);
  EXPECT_EQ(ledger.rows().size(), 3U);
  ASSERT_EQ(ledger.headers().size(), 2U);
  EXPECT_EQ(ledger.headers()[1].build, "0.1.1");
}

TEST_F(LedgerTest, RootHashDependsOnRowsOnly) {
  {
    LedgerWriter writer(folder_, "a", header_);
    writer.append("r1", "x", 1);
    writer.append("r2", "x", 2);
  }
  const std::string root = Ledger::read(folder_).root_hash();
  EXPECT_EQ(root.size(), 64U);
  fs::remove_all(folder_);
  {
    LedgerWriter(folder_, "z", header_).append("r2", "x", 2);
    LedgerWriter(folder_, "b", header_).append("r1", "x", 1);
    LedgerWriter(folder_, "c", header_).append("r1", "x", 1);
  }
  EXPECT_EQ(Ledger::read(folder_).root_hash(), root);
  { LedgerWriter(folder_, "b", header_).append("r3", "x", 3); }
  EXPECT_NE(Ledger::read(folder_).root_hash(), root);
}

TEST_F(LedgerTest, OneWriterAShard) {
  LedgerWriter first(folder_, "a", header_);
  EXPECT_THROW(LedgerWriter(folder_, "a", header_), Error);
  EXPECT_NO_THROW(LedgerWriter(folder_, "b", header_));
  EXPECT_THROW(LedgerWriter(folder_, "../a", header_), Error);
  EXPECT_THROW(LedgerWriter(folder_, "", header_), Error);
}

TEST_F(LedgerTest, KilledWritersLoseNothingAcknowledged) {
  // A child appends until it is killed with SIGKILL, telling through a pipe how many rows it flushed.
  for (int round = 0; round < 5; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        LedgerWriter writer(folder_, "a", header_);
        for (int i = 0;; ++i) {
          writer.append("round" + std::to_string(round) + "/" + std::to_string(i), "x",
                        std::string(200, 'v'));
          if (i % 20 != 19) continue;
          writer.flush();
          const int upto = i + 1;
          if (::write(ends[1], &upto, sizeof upto) != sizeof upto) ::_exit(1);
        }
      } catch (...) {
        ::_exit(2);
      }
    }
    ::close(ends[1]);
    int acknowledged = 0;
    ASSERT_EQ(::read(ends[0], &acknowledged, sizeof acknowledged), static_cast<ssize_t>(sizeof acknowledged));
    std::this_thread::sleep_for(std::chrono::milliseconds(10 + 3 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    for (int more = 0; ::read(ends[0], &more, sizeof more) == static_cast<ssize_t>(sizeof more);) {
      acknowledged = more;
    }
    ::close(ends[0]);
    const Ledger ledger = Ledger::read(folder_);
    for (int i = 0; i < acknowledged; ++i) {
      ASSERT_NE(ledger.find("round" + std::to_string(round) + "/" + std::to_string(i)), nullptr) << i;
    }
  }
}

}  // namespace
}  // namespace wring::lab
