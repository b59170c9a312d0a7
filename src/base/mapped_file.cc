#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/temporaries.h"

namespace wring {
namespace {

// What the SIGBUS handler may read: fixed storage, atomics only.
struct Mapping {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};
  std::array<char, 512> path{};
};
constexpr int kMaxMappings = 4096;  // a 405 B model has some 200 shards
std::array<Mapping, kMaxMappings> g_mappings;
std::mutex g_mappings_mutex;

void put(const char* text) {
  // Nothing is left to do about a failed write on the way out.
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

void on_sigbus(int signal_number, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (const Mapping& m : g_mappings) {
    if (address >= m.begin.load() && address < m.end.load()) {
      put("error: a file was cut or became unreadable while it was in use — ");
      put(m.path.data());
      put(" — leave model files unchanged while they are loaded\n");
      remove_registered_temporaries();
      ::_exit(5);
    }
  }
  ::signal(signal_number, SIG_DFL);
  ::raise(signal_number);
}

int register_mapping(const std::filesystem::path& path, const void* data, std::size_t size) {
  const std::lock_guard lock(g_mappings_mutex);
  static const bool installed = [] {
    struct sigaction action = {};
    action.sa_sigaction = on_sigbus;
    action.sa_flags = SA_SIGINFO;
    return ::sigaction(SIGBUS, &action, nullptr) == 0;
  }();
  (void)installed;
  for (int i = 0; i < kMaxMappings; ++i) {
    Mapping& m = g_mappings[i];
    if (m.end.load() != 0) continue;
    std::strncpy(m.path.data(), path.c_str(), m.path.size() - 1);
    m.begin.store(reinterpret_cast<std::uintptr_t>(data));
    m.end.store(reinterpret_cast<std::uintptr_t>(data) + size);
    return i;
  }
  return -1;
}

void unregister_mapping(int slot) {
  if (slot < 0) return;
  const std::lock_guard lock(g_mappings_mutex);
  g_mappings[slot].begin.store(0);
  g_mappings[slot].end.store(0);
}

struct Descriptor {
  explicit Descriptor(const std::filesystem::path& path) : fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd < 0) throw_errno(errno, "cannot open file", path.native());
  }
  ~Descriptor() { ::close(fd); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int fd;
};

std::size_t regular_size(const Descriptor& file, const std::filesystem::path& path) {
  struct stat info = {};
  if (::fstat(file.fd, &info) != 0) throw_errno(errno, "cannot read file size", path.native());
  if (S_ISDIR(info.st_mode))
    throw Error(ErrorCode::kBadInput, "is a directory, a file is needed", path.string());
  if (!S_ISREG(info.st_mode)) throw Error(ErrorCode::kBadInput, "is not a regular file", path.string());
  return static_cast<std::size_t>(info.st_size);
}

}  // namespace

MappedFile::MappedFile(std::filesystem::path path) : path_(std::move(path)) {
  const Descriptor file(path_);
  size_ = regular_size(file, path_);
  if (size_ == 0) return;  // an empty mapping is not allowed; an empty span says it all
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) throw_errno(errno, "cannot map file", path_.native());
  data_ = static_cast<const std::byte*>(data);
  slot_ = register_mapping(path_, data, size_);
}

MappedFile::~MappedFile() {
  release();
}

MappedFile::MappedFile(MappedFile&& other) noexcept {
  *this = std::move(other);
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    release();
    path_ = std::move(other.path_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    slot_ = std::exchange(other.slot_, -1);
  }
  return *this;
}

void MappedFile::release() {
  unregister_mapping(slot_);
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  data_ = nullptr;
  slot_ = -1;
}

void release_mapped_pages(std::span<const std::byte> bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = (reinterpret_cast<std::uintptr_t>(bytes.data()) + page - 1) / page * page;
  const auto last = (reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size()) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);  // a wish
}

std::string read_text_file(const std::filesystem::path& path, std::size_t limit_bytes) {
  const Descriptor file(path);
  const std::size_t size = regular_size(file, path);
  if (size > limit_bytes) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("file is too large: {} bytes, at most {}", size, limit_bytes), path.string());
  }
  std::string text(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t n = ::read(file.fd, text.data() + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno(errno, "cannot read file", path.native());
    if (n == 0) break;  // cut while reading: what is there is the file
    done += static_cast<std::size_t>(n);
  }
  text.resize(done);
  return text;
}

}  // namespace wring
