// Read-only mapping of a whole file: weights stay in the page cache and are never copied. A file that is cut
// while it is mapped ends the process with an error line and exit code 5 (a SIGBUS handler names the file),
// not with a crash.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace wring {

class MappedFile {
 public:
  /// Maps `path`. Errors: kBadInput for a missing file, a folder or a link loop; kIo where the system
  /// refuses.
  explicit MappedFile(std::filesystem::path path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::size_t size() const { return size_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  void release();

  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  int slot_ = -1;  // in the SIGBUS handler's table
};

/// Lets the system forget the pages that lie wholly within `bytes`, which must be a MappedFile's (other
/// memory would be lost): they were read for the last time, or nearly, and are read from the file again if
/// not.
void release_mapped_pages(std::span<const std::byte> bytes);

/// The whole file as a string, at most `limit_bytes` (kBadInput above it). For configurations and texts.
std::string read_text_file(const std::filesystem::path& path, std::size_t limit_bytes);

}  // namespace wring
