// Files and folders that appear whole or not at all: written beside the target under a temporary name,
// fsynced, renamed. Whatever goes wrong before commit() leaves the target as it was and removes the
// temporary, a signal that ends the process included (base/temporaries.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/temporaries.h"

namespace wring {

class AtomicFile {
 public:
  /// Opens a temporary in the target's folder. Errors: kIo. Leftovers of dead processes for the same target
  /// are removed.
  explicit AtomicFile(const std::filesystem::path& target);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends; buffered. Errors: kIo (disk full), naming the target.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);

  /// Overwrites or extends the file from `offset` on, whatever was appended; position() stays.
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);

  /// Appends zeros up to the next multiple of `alignment` bytes.
  void pad_to(std::uint64_t alignment);

  /// Bytes written so far.
  std::uint64_t position() const { return position_; }

  /// Writes out the buffer, so that the temporary may be re-read before it takes the target's name.
  void flush();
  const std::filesystem::path& temporary_path() const { return temporary_; }

  /// fsync, rename onto the target, fsync of the folder. Call once, last.
  void commit();

 private:
  void write_out(const char* data, std::size_t size);

  std::filesystem::path target_, temporary_;
  RegisteredTemporary registered_;
  std::string buffer_;
  std::uint64_t position_ = 0;
  int fd_ = -1;
};

class AtomicDirectory {
 public:
  /// Makes a temporary folder beside `target`, which must not exist or be an empty folder (kUsage otherwise).
  explicit AtomicDirectory(const std::filesystem::path& target);
  ~AtomicDirectory();
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;

  /// Where to write the files meanwhile.
  const std::filesystem::path& path() const { return temporary_; }

  /// fsyncs the folder and renames it onto the target.
  void commit();

 private:
  std::filesystem::path target_, temporary_;
  std::optional<RegisteredTemporary> registered_;
};

/// Whether `path`, which need not exist, is `folder` or lies below it, symbolic links followed.
bool is_within(const std::filesystem::path& path, const std::filesystem::path& folder);

/// Writes `text` to `target` atomically.
void write_file_atomically(const std::filesystem::path& target, std::string_view text);

}  // namespace wring
