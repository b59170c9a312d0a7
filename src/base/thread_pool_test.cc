#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace wring {
namespace {

TEST(ThreadPool, RunsEachWorkerOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 200; ++round) {
      std::vector<int> calls(threads, 0);
      pool.run([&](int worker) { ++calls[worker]; });
      EXPECT_EQ(calls, std::vector<int>(threads, 1));
    }
  }
}

TEST(ThreadPool, PiecesCoverTheRangeOnce) {
  ThreadPool pool(3);
  for (std::size_t n : {0U, 1U, 7U, 64U, 1000U}) {
    std::vector<int> seen(n, 0);
    pool.for_pieces(n, 7, [&](std::size_t begin, std::size_t end, int) {
      for (std::size_t i = begin; i < end; ++i) ++seen[i];
    });
    EXPECT_EQ(seen, std::vector<int>(n, 1));
  }
}

TEST(ThreadPool, StretchesCoverTheRangeOnceAndNeverGrow) {
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    for (const std::size_t n : {0U, 1U, 2U, 7U, 64U, 1000U}) {
      std::vector<std::size_t> length(n, 0);  // of the stretch that an index lies in
      std::vector<int> seen(n, 0);
      pool.for_stretches(n, [&](std::size_t begin, std::size_t end, int worker) {
        EXPECT_LT(begin, end);
        EXPECT_LT(worker, threads);
        for (std::size_t i = begin; i < end; ++i) {
          ++seen[i];
          length[i] = end - begin;
        }
      });
      EXPECT_EQ(seen, std::vector<int>(n, 1)) << n;
      EXPECT_TRUE(std::is_sorted(length.rbegin(), length.rend())) << n;
      if (threads > 1 && n > 1) {
        EXPECT_EQ(length.back(), 1U) << n;
      }
    }
  }
}

TEST(ThreadPool, TheFirstWorkersExceptionReachesTheCallerAndThePoolLivesOn) {
  ThreadPool pool(4);
  const auto fail = [](int worker) {
    if (worker >= 1) throw std::runtime_error(std::to_string(worker));
  };
  try {
    pool.run(fail);
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "1");
  }
  int calls = 0;
  pool.run([&](int worker) {
    if (worker == 0) ++calls;
  });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace wring
