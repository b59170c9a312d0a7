#include "base/atomic_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/mapped_file.h"

namespace wring {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("wring_atomic_" + std::to_string(::getpid()));
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::size_t entries() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }
  fs::path folder_;
};

TEST_F(AtomicFileTest, AppearsOnlyAtCommit) {
  AtomicFile file(folder_ / "a");
  file.write("hello");
  file.pad_to(8);
  EXPECT_EQ(file.position(), 8U);
  EXPECT_FALSE(fs::exists(folder_ / "a"));
  file.commit();
  EXPECT_EQ(read_text_file(folder_ / "a", 100), std::string("hello\0\0\0", 8));
  EXPECT_EQ(entries(), 1U);
}

TEST_F(AtomicFileTest, LeavesNothingWithoutCommit) {
  {
    AtomicFile file(folder_ / "a");
    file.write(std::string(3 << 20, 'x'));
  }
  EXPECT_EQ(entries(), 0U);
}

TEST_F(AtomicFileTest, RemovesLeftoversOfDeadProcessesOnly) {
  std::ofstream(folder_ / ".a.999999999.wring-tmp") << "dead";
  std::ofstream(folder_ / ".a.1.wring-tmp") << "alive";
  std::ofstream(folder_ / ".b.999999999.wring-tmp") << "another target's";
  write_file_atomically(folder_ / "a", "x");
  EXPECT_FALSE(fs::exists(folder_ / ".a.999999999.wring-tmp"));
  EXPECT_TRUE(fs::exists(folder_ / ".a.1.wring-tmp"));
  EXPECT_TRUE(fs::exists(folder_ / ".b.999999999.wring-tmp"));
}

TEST_F(AtomicFileTest, MissingFolderIsAnError) {
  EXPECT_THROW(AtomicFile(folder_ / "no" / "a"), Error);
}

TEST_F(AtomicFileTest, DirectoryAppearsWholeAndIsNotOverwritten) {
  {
    AtomicDirectory dir(folder_ / "d/");
    write_file_atomically(dir.path() / "f", "1");
    dir.commit();
  }
  EXPECT_TRUE(fs::exists(folder_ / "d" / "f"));
  EXPECT_THROW(AtomicDirectory(folder_ / "d"), Error);
  { AtomicDirectory dir(folder_ / "e"); }
  EXPECT_EQ(entries(), 1U);
}

TEST_F(AtomicFileTest, WithinMeansTheFolderOrBelowIt) {
  fs::create_directories(folder_ / "d" / "e");
  fs::create_directory_symlink(folder_ / "d", folder_ / "link");
  EXPECT_TRUE(is_within(folder_ / "d", folder_ / "d"));
  EXPECT_TRUE(is_within(folder_ / "d" / "new" / "f", folder_ / "d"));
  EXPECT_TRUE(is_within(folder_ / "link" / "e", folder_ / "d" / "e"));
  EXPECT_TRUE(is_within(folder_ / "x" / ".." / "d", folder_ / "d"));
  EXPECT_FALSE(is_within(folder_ / "dd", folder_ / "d"));
  EXPECT_FALSE(is_within(folder_, folder_ / "d"));
}

// The end of a process at which no destructor runs: the mapped input is cut while two outputs are
// half-written.
TEST_F(AtomicFileTest, AFileCutUnderItsMappingLeavesNoTemporary) {
  std::ofstream(folder_ / "input") << std::string(1 << 20, 'x');
  const auto read_what_was_cut = [&] {
    const MappedFile input(folder_ / "input");
    AtomicFile file(folder_ / "a");
    file.write("half");
    file.flush();
    AtomicDirectory dir(folder_ / "d");
    AtomicFile inner(dir.path() / "f");
    write_file_atomically(folder_ / "committed", "whole");
    fs::resize_file(folder_ / "input", 0);
    std::_Exit(static_cast<int>(*(input.bytes().data() + (1 << 19))) == 0 ? 0 : 1);
  };
  EXPECT_EXIT(read_what_was_cut(), testing::ExitedWithCode(5), "error: a file was cut");
  EXPECT_EQ(entries(), 2U);  // the input and what was committed
  EXPECT_TRUE(fs::exists(folder_ / "committed"));
}

}  // namespace
}  // namespace wring
