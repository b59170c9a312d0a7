// A fixed team of threads for short parallel sections. The caller is worker 0. Between sections the others
// spin for a short while and then park, so that back-to-back kernels of one step start without a system call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <thread>
#include <type_traits>
#include <vector>

namespace wring {

class ThreadPool {
 public:
  /// `threads` workers in all (≥ 1), the caller included.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  /// Calls f(worker) once on each worker, worker = 0 … threads−1, and returns when all have returned. If any
  /// throws, the exception of the lowest worker is rethrown here. Not reentrant; one caller at a time.
  template <class F>
  void run(F&& f) {
    using Function = std::remove_reference_t<F>;
    run_erased([](void* context, int worker) { (*static_cast<Function*>(context))(worker); },
               const_cast<void*>(static_cast<const void*>(&f)));
  }

  /// Calls f(begin, end, worker) over [0, n) in pieces of `grain` (≥ 1), handed out in rising order to
  /// whichever worker is free. Results must not depend on who does which piece.
  template <class F>
  void for_pieces(std::size_t n, std::size_t grain, F&& f) {
    if (n == 0) return;
    if (threads_ == 1 || n <= grain) {
      for (std::size_t at = 0; at < n; at += grain) f(at, at + grain < n ? at + grain : n, 0);
      return;
    }
    std::atomic<std::size_t> next{0};
    run([&](int worker) {
      for (;;) {
        const std::size_t begin = next.fetch_add(grain, std::memory_order_relaxed);
        if (begin >= n) return;
        f(begin, begin + grain < n ? begin + grain : n, worker);
      }
    });
  }

  /// Calls f(begin, end, worker) over [0, n) in stretches handed out in rising order, each half of an even
  /// share of what is left: long at first, so that memory is read on and on, and short at the end, so that
  /// all are done together. Results must not depend on who does which stretch, nor on where one ends.
  template <class F>
  void for_stretches(std::size_t n, F&& f) {
    if (n == 0) return;
    if (threads_ == 1 || n == 1) return f(std::size_t{0}, n, 0);
    const auto shares = 2 * static_cast<std::size_t>(threads_);
    std::atomic<std::size_t> next{0};
    run([&](int worker) {
      for (std::size_t begin = next.load(std::memory_order_relaxed); begin < n;) {
        const std::size_t end = begin + (n - begin + shares - 1) / shares;
        if (!next.compare_exchange_weak(begin, end, std::memory_order_relaxed)) continue;
        f(begin, end, worker);
        begin = next.load(std::memory_order_relaxed);
      }
    });
  }

 private:
  using Invoke = void (*)(void*, int);

  void run_erased(Invoke invoke, void* context);
  void work(int worker);
  void call(int worker) noexcept;

  int threads_;
  Invoke invoke_ = nullptr;
  void* context_ = nullptr;
  std::vector<std::exception_ptr> failures_;  // one a worker
  std::atomic<std::uint32_t> generation_{0};  // counts sections; workers wait for the next
  std::atomic<int> running_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace wring
