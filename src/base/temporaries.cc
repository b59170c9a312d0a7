#include "base/temporaries.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>

namespace wring {
namespace {

// Fixed storage and atomics: what a signal handler may read.
struct Entry {
  std::atomic<bool> taken{false};  // by a thread that writes or has written the path
  std::atomic<bool> ready{false};  // the path is whole
  std::array<char, 4096> path{};
};
std::array<Entry, 64> g_entries;

}  // namespace

RegisteredTemporary::RegisteredTemporary(const std::filesystem::path& path) {
  const std::string& name = path.native();
  for (std::size_t i = 0; i < g_entries.size(); ++i) {
    Entry& entry = g_entries[i];
    if (name.size() >= entry.path.size() || entry.taken.exchange(true)) continue;
    std::memcpy(entry.path.data(), name.c_str(), name.size() + 1);
    entry.ready.store(true);
    slot_ = static_cast<int>(i);
    return;
  }
}

void RegisteredTemporary::release() {
  if (slot_ < 0) return;
  Entry& entry = g_entries[static_cast<std::size_t>(slot_)];
  entry.ready.store(false);
  entry.taken.store(false);
  slot_ = -1;
}

void remove_registered_temporaries() noexcept {
  for (const Entry& entry : g_entries) {
    if (entry.ready.load()) ::unlink(entry.path.data());
  }
  for (const Entry& entry : g_entries) {
    if (entry.ready.load()) ::rmdir(entry.path.data());
  }
}

}  // namespace wring
