#include "base/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <system_error>

#include "base/error.h"

namespace wring {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferBytes = 1 << 20;
constexpr std::string_view kSuffix = ".wring-tmp";

fs::path folder_of(const fs::path& target) {
  return target.has_parent_path() ? target.parent_path() : fs::path(".");
}

fs::path absolute_target(const fs::path& target) {
  if (target.empty())
    throw Error(ErrorCode::kUsage, "the output's name is empty", "", "name a file or folder");
  fs::path clean = fs::absolute(target).lexically_normal();
  return clean.has_filename() ? clean : clean.parent_path();
}

std::string temporary_prefix(const fs::path& target) {
  return fmt::format(".{}.", target.filename().string());
}

// ".<name>.<pid>.wring-tmp" of processes that no longer live: left by kill -9 or a power cut.
void remove_leftovers(const fs::path& target) {
  std::error_code ignored;
  const std::string prefix = temporary_prefix(target);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_of(target), ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || !name.ends_with(kSuffix)) continue;
    int pid = 0;
    const char* end = name.data() + name.size() - kSuffix.size();
    const auto [stop, fault] = std::from_chars(name.data() + prefix.size(), end, pid);
    if (fault != std::errc() || stop != end || pid <= 0) continue;
    if (::kill(pid, 0) != 0 && errno == ESRCH) fs::remove_all(entry.path(), ignored);
  }
}

fs::path temporary_for(const fs::path& target) {
  remove_leftovers(target);
  return folder_of(target) / fmt::format("{}{}{}", temporary_prefix(target), ::getpid(), kSuffix);
}

void sync_folder(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // some file systems do not allow it; the rename itself has happened
  ::fsync(fd);
  ::close(fd);
}

[[noreturn]] void cannot_write(int errno_value, const fs::path& target) {
  throw Error(ErrorCode::kIo, fmt::format("cannot write: {}", std::generic_category().message(errno_value)),
              target.string(), "check the folder, its permissions and the free space");
}

}  // namespace

AtomicFile::AtomicFile(const fs::path& target)
    : target_(absolute_target(target)), temporary_(temporary_for(target_)), registered_(temporary_) {
  std::error_code ignored;
  if (fs::is_directory(target_, ignored))
    throw Error(ErrorCode::kUsage, "output is a directory, a file is needed", target_.string());
  fd_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) cannot_write(errno, target_);
  buffer_.reserve(kBufferBytes);
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void AtomicFile::write(std::string_view text) {
  position_ += text.size();
  if (buffer_.size() + text.size() > kBufferBytes) flush();
  if (text.size() >= kBufferBytes) {
    write_out(text.data(), text.size());
  } else {
    buffer_.append(text);
  }
}

void AtomicFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  flush();
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) cannot_write(errno, target_);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

void AtomicFile::pad_to(std::uint64_t alignment) {
  const std::uint64_t rest = position_ % alignment;
  if (rest != 0) write(std::string(alignment - rest, '\0'));
}

void AtomicFile::flush() {
  write_out(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void AtomicFile::write_out(const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(fd_, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) cannot_write(errno, target_);
    data += n;
    size -= static_cast<std::size_t>(n);
  }
}

void AtomicFile::commit() {
  flush();
  if (::fsync(fd_) != 0) cannot_write(errno, target_);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) cannot_write(errno, target_);
  registered_.release();
  ::close(fd_);
  fd_ = -1;
  sync_folder(folder_of(target_));
}

AtomicDirectory::AtomicDirectory(const fs::path& target) : target_(absolute_target(target)) {
  std::error_code fault;
  if (fs::exists(target_, fault) && !(fs::is_directory(target_, fault) && fs::is_empty(target_, fault))) {
    throw Error(ErrorCode::kUsage, "output exists already", target_.string(),
                "choose another folder or remove it first");
  }
  temporary_ = temporary_for(target_);
  registered_.emplace(temporary_);
  if (!fs::create_directory(temporary_, fault)) cannot_write(fault ? fault.value() : EEXIST, target_);
}

AtomicDirectory::~AtomicDirectory() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void AtomicDirectory::commit() {
  sync_folder(temporary_);
  std::error_code fault;
  fs::rename(temporary_, target_, fault);  // replaces an empty folder
  if (fault) cannot_write(fault.value(), target_);
  registered_.reset();
  temporary_.clear();
  sync_folder(folder_of(target_));
}

bool is_within(const fs::path& path, const fs::path& folder) {
  std::error_code ignored;
  const fs::path relative =
      fs::weakly_canonical(path, ignored).lexically_relative(fs::weakly_canonical(folder, ignored));
  return !relative.empty() && *relative.begin() != "..";
}

void write_file_atomically(const fs::path& target, std::string_view text) {
  AtomicFile file(target);
  file.write(text);
  file.commit();
}

}  // namespace wring
