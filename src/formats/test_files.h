// For tests of this room only: a folder that goes away, and builders of files that no honest writer makes.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace wring::formats::testing_files {

class TempFolder {
 public:
  TempFolder() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string("wring_formats_") + test->test_suite_name() + "_" + test->name();
    for (char& c : name) c = c == '/' ? '_' : c;
    path_ = std::filesystem::path(testing::TempDir()) / (name + "_" + std::to_string(::getpid()));
    std::filesystem::create_directories(path_);
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path file(std::string_view name, std::string_view bytes) const {
    const std::filesystem::path path = path_ / name;
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path;
  }
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path path_;
};

/// A file that never touches a disk: thousands of them a second.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("damaged", MFD_CLOEXEC)) {}
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string with(const std::string& bytes) const {
    const bool written = ::ftruncate(fd_, 0) == 0 &&
                         ::pwrite(fd_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
    EXPECT_TRUE(written);
    return "/proc/self/fd/" + std::to_string(fd_);
  }

 private:
  int fd_;
};

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

inline std::string raw_string(std::string_view text) {
  return raw<std::uint64_t>(text.size()) + std::string(text);
}

/// A GGUF file put together from raw pieces, right or wrong.
class GgufBytes {
 public:
  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::string data;
  std::uint64_t alignment = 32;

  /// `value` holds the kind and what follows it.
  GgufBytes& pair(std::string_view key, const std::string& value) {
    pairs_ += raw_string(key) + value;
    ++pair_count_;
    return *this;
  }
  GgufBytes& u32(std::string_view key, std::uint32_t value) {
    return pair(key, raw<std::uint32_t>(4) + raw(value));
  }
  GgufBytes& text(std::string_view key, std::string_view value) {
    return pair(key, raw<std::uint32_t>(8) + raw_string(value));
  }
  /// `dims` as in the file: innermost first.
  GgufBytes& tensor(std::string_view name, const std::vector<std::uint64_t>& dims, std::uint32_t type,
                    std::uint64_t offset) {
    table_ += raw_string(name) + raw<std::uint32_t>(static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t d : dims) table_ += raw(d);
    table_ += raw(type) + raw(offset);
    ++tensor_count_;
    return *this;
  }
  GgufBytes& counts(std::uint64_t tensors, std::uint64_t pairs) {
    tensor_count_ = tensors;
    pair_count_ = pairs;
    return *this;
  }

  std::string bytes() const {
    std::string out = magic + raw(version) + raw(tensor_count_) + raw(pair_count_) + pairs_ + table_;
    out.append((alignment - out.size() % alignment) % alignment, '\0');
    return out + data;
  }

 private:
  std::string pairs_, table_;
  std::uint64_t pair_count_ = 0, tensor_count_ = 0;
};

inline std::string safetensors_bytes(std::string_view header, std::string_view data) {
  return raw<std::uint64_t>(header.size()) + std::string(header) + std::string(data);
}

/// The message of the wring::Error that `f` throws; "" (and a failure) if it throws none.
inline std::string message_of(const std::function<void()>& f, ErrorCode code = ErrorCode::kBadInput) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(static_cast<int>(e.code()), static_cast<int>(code)) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

}  // namespace wring::formats::testing_files
