// Progress on the terminal: one line on stderr, redrawn at most ten times a second, gone when the work is
// done. The first Ctrl-C asks the work to stop where nothing is left half-done; the second ends the process.
#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>

#include "base/temporaries.h"
#include "cli/command.h"

namespace wring::cli {
namespace {

std::atomic<int> g_signals{0};

void on_signal(int) {
  if (g_signals.fetch_add(1) == 0) return;
  remove_registered_temporaries();
  ::_exit(130);
}

using Clock = std::chrono::steady_clock;

class TerminalProgress final : public ProgressSink {
 public:
  TerminalProgress() : terminal_(::isatty(STDERR_FILENO) != 0) {
    struct sigaction action = {};
    action.sa_handler = on_signal;
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
    ::sigaction(SIGHUP, &action, nullptr);
  }

  void update(std::string_view task, std::uint64_t done, std::uint64_t total,
              std::string_view unit) override {
    if (!terminal_) return;
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    if (task != task_ || done < done_) {
      task_ = task;
      start_ = now;
    } else if (done < total && now - drawn_ < std::chrono::milliseconds(100)) {
      return;
    }
    done_ = done;
    drawn_ = now;
    draw(done, total, unit, std::chrono::duration<double>(now - start_).count());
  }

  bool cancelled() const override { return g_signals.load() > 0; }

  void clear() {
    const std::lock_guard lock(mutex_);
    if (!shown_) return;
    note("\r\033[K");
    shown_ = false;
  }

 private:
  void draw(std::uint64_t done, std::uint64_t total, std::string_view unit, double seconds) {
    constexpr int kBar = 24;
    const double share =
        total == 0 ? 0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
    const int full = static_cast<int>(share * kBar);
    std::string line = fmt::format("{} [{}{}] {}/{} {}", task_, std::string(full, '#'),
                                   std::string(kBar - full, '.'), done, total, unit);
    if (share > 0.02 && share < 1) line += fmt::format(", {:.0f} s left", seconds / share * (1 - share));
    winsize size = {};
    const std::size_t width =
        ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1U : 79U;
    note(fmt::format("\r\033[K{}", std::string_view(line).substr(0, width)));
    std::fflush(stderr);
    shown_ = true;
  }

  const bool terminal_;
  std::mutex mutex_;
  std::string task_;
  std::uint64_t done_ = 0;
  Clock::time_point start_, drawn_;
  bool shown_ = false;
};

TerminalProgress& instance() {
  static TerminalProgress progress;
  return progress;
}

}  // namespace

ProgressSink& terminal_progress() {
  return instance();
}
void clear_progress() {
  instance().clear();
}

}  // namespace wring::cli
