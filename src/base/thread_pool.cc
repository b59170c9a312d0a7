#include "base/thread_pool.h"

#include <chrono>

#include "base/error.h"

namespace wring {
namespace {

// Long enough to bridge the serial parts of a decode step, short enough not to burn a core between requests.
constexpr auto kSpin = std::chrono::microseconds(50);

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Returns once value != seen: first by spinning, then by parking on the futex behind atomic::wait.
void wait_while_equal(const std::atomic<std::uint32_t>& value, std::uint32_t seen) {
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 64; ++i) {
      if (value.load(std::memory_order_acquire) != seen) return;
      pause_cpu();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  value.wait(seen, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int threads) : threads_(threads), failures_(threads > 0 ? threads : 0) {
  if (threads < 1) throw Error(ErrorCode::kUsage, "a thread count must be at least 1");
  for (int worker = 1; worker < threads; ++worker) workers_.emplace_back([this, worker] { work(worker); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  generation_.fetch_add(1);
  generation_.notify_all();
  for (std::thread& t : workers_) t.join();
}

void ThreadPool::run_erased(Invoke invoke, void* context) {
  invoke_ = invoke;
  context_ = context;
  running_.store(threads_ - 1, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  call(0);
  for (int left = running_.load(std::memory_order_acquire); left != 0;
       left = running_.load(std::memory_order_acquire)) {
    for (int i = 0; i < 2000 && running_.load(std::memory_order_acquire) != 0; ++i) pause_cpu();
    if (running_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  }
  for (std::exception_ptr& failure : failures_) {
    if (!failure) continue;
    const std::exception_ptr first = failure;
    for (std::exception_ptr& f : failures_) f = nullptr;
    std::rethrow_exception(first);
  }
}

void ThreadPool::work(int worker) {
  for (std::uint32_t seen = 0;; ++seen) {
    wait_while_equal(generation_, seen);
    if (stop_.load()) return;
    call(worker);
    running_.fetch_sub(1, std::memory_order_acq_rel);
  }
}

void ThreadPool::call(int worker) noexcept {
  try {
    invoke_(context_, worker);
  } catch (...) {
    failures_[worker] = std::current_exception();
  }
}

}  // namespace wring
