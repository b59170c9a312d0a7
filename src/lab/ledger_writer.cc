// Appending to a shard. append() hands whole lines to the operating system; a thread groups the fsyncs, so
// that thousands of short rows do not each wait for the disk.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "lab/ledger.h"
#include "lab/ledger_line.h"

namespace wring::lab {
namespace {

namespace fs = std::filesystem;

constexpr auto kGroup = std::chrono::milliseconds(100);

[[noreturn]] void cannot(const char* doing, int errno_value, const fs::path& path) {
  throw Error(ErrorCode::kIo,
              fmt::format("cannot {} the ledger: {}", doing, std::generic_category().message(errno_value)),
              path.string(), "check the folder, its permissions and the free space");
}

fs::path shard_path(const fs::path& folder, const std::string& writer) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  if (writer.empty() || !std::all_of(writer.begin(), writer.end(), allowed)) {
    throw Error(ErrorCode::kUsage,
                fmt::format("ledger writer id \"{}\": letters, digits, - and _ are allowed", writer));
  }
  return folder / fmt::format("rows-{}.jsonl", writer);
}

}  // namespace

struct LedgerWriter::State {
  fs::path path;
  int fd = -1;
  mutable std::mutex mutex;
  std::mutex sync_mutex;  // one fsync at a time, outside of `mutex`
  std::condition_variable changed;
  std::uint64_t appended = 0, acknowledged = 0;  // rows
  std::uint64_t bytes = 0;                       // of whole lines
  int sync_errno = 0;
  bool stop = false;
  std::thread syncer;

  ~State() {
    if (syncer.joinable()) {
      {
        const std::lock_guard lock(mutex);
        stop = true;
      }
      changed.notify_all();
      syncer.join();
    }
    if (fd >= 0) ::close(fd);  // also gives up the lock
  }

  void open_file(const fs::path& folder) {
    std::error_code fault;
    fs::create_directories(folder, fault);
    if (fault) cannot("make", fault.value(), folder);
    fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) cannot("open", errno, path);
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) cannot("lock", errno, path);
      throw Error(ErrorCode::kUsage, "another process is writing this ledger", path.string(),
                  "wait for it to end, or choose another folder");
    }
    // The new name must survive a power cut too.
    const int dir = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0) {
      ::fsync(dir);
      ::close(dir);
    }
  }

  // Writes all of `text` or leaves the file as it was.
  void write_whole(std::string_view text) {
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        const int why = errno;
        if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0) cannot("repair", errno, path);
        cannot("write", why, path);
      }
      done += static_cast<std::size_t>(n);
    }
    bytes += text.size();
  }

  void sync() {
    const std::lock_guard one(sync_mutex);
    std::uint64_t upto = 0;
    {
      const std::lock_guard lock(mutex);
      upto = appended;
    }
    const int fault = ::fsync(fd) == 0 ? 0 : errno;
    const std::lock_guard lock(mutex);
    if (fault != 0) {
      sync_errno = fault;
    } else if (sync_errno == 0) {
      acknowledged = std::max(acknowledged, upto);
    }
  }

  void sync_in_groups() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return stop || appended > acknowledged; });
      if (!stop) changed.wait_for(lock, kGroup, [&] { return stop; });
      const bool last = stop;
      if (appended > acknowledged && sync_errno == 0) {
        lock.unlock();
        sync();
        lock.lock();
      }
      if (last) return;
      // A failed fsync is final (the kernel may have dropped the pages): wait to be stopped.
      if (sync_errno != 0) changed.wait(lock, [&] { return stop; });
    }
  }
};

LedgerWriter::LedgerWriter(const fs::path& folder, const std::string& writer, const LedgerHeader& header)
    : state_(std::make_unique<State>()) {
  state_->path = shard_path(folder, writer);
  Ledger::read(folder).require(header);
  state_->open_file(folder);
  const ShardContent content = read_shard(state_->path);
  state_->bytes = content.whole_bytes;
  if (content.torn && ::ftruncate(state_->fd, static_cast<off_t>(content.whole_bytes)) != 0) {
    cannot("repair", errno, state_->path);
  }
  if (!content.rows.empty() && !content.ends_with_newline) state_->write_whole("\n");

  const std::string line = compose_line("header", kHeaderKind, header_value(header)) + "\n";
  const bool known = std::any_of(content.rows.begin(), content.rows.end(), [&](const LedgerRow& row) {
    return row.kind == kHeaderKind && header_of(row) == header;
  });
  // A resumed shard whose build or CPU level changed says so in its middle.
  if (!known) state_->write_whole(line);
  state_->sync();
  state_->syncer = std::thread([state = state_.get()] { state->sync_in_groups(); });
}

LedgerWriter::~LedgerWriter() = default;

void LedgerWriter::append(std::string_view id, std::string_view kind, const nlohmann::json& value) {
  if (id.empty() || kind.empty() || kind == kHeaderKind) {
    throw Error(ErrorCode::kInternal,
                fmt::format("a ledger row cannot have id \"{}\", kind \"{}\"", id, kind));
  }
  const std::string line = compose_line(id, kind, value) + "\n";
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->sync_errno != 0) cannot("write", state_->sync_errno, state_->path);
    state_->write_whole(line);
    ++state_->appended;
  }
  state_->changed.notify_all();
}

void LedgerWriter::flush() {
  state_->sync();
  const std::lock_guard lock(state_->mutex);
  if (state_->sync_errno != 0) cannot("write", state_->sync_errno, state_->path);
}

std::uint64_t LedgerWriter::acknowledged() const {
  const std::lock_guard lock(state_->mutex);
  return state_->acknowledged;
}

const fs::path& LedgerWriter::path() const {
  return state_->path;
}

}  // namespace wring::lab
