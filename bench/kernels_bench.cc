// How near the kernels come to the fp32 multiply-add peak of one core. Each timing is taken beside a run of
// the FMA loop, several times, and the best ratio is printed, because other work on the machine disturbs both
// alike. Usage: kernels_bench [matmul|packed|attention|decode]
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "kernels/kernel_table.h"

namespace {

using namespace wring::kernels;

// Processor time of this thread: what others take of the core in between does not count.
double seconds(const std::function<void()>& f) {
  const auto now = [] {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double begin = now();
  f();
  return now() - begin;
}

// Aligned to cache lines, as the engine's buffers are: a load across two lines costs twice.
template <class T>
struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <class U>
  explicit LineAllocator(const LineAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{64})); }
  void deallocate(T* p, std::size_t) { ::operator delete (p, std::align_val_t{64}); }
  bool operator==(const LineAllocator&) const { return true; }
};
using Floats = std::vector<float, LineAllocator<float>>;

Floats values(std::size_t n) {
  std::mt19937 generator(7);
  std::normal_distribution<float> normal;
  Floats result(n);
  for (float& value : result) value = normal(generator);
  return result;
}

// Multiply-adds a second that the FMA loop reaches, in a run of about a millisecond.
double peak(const KernelTable& table) {
  float sink = 0;
  std::size_t done = 0;
  const double time = seconds([&] { done = table.fma_loop(400'000, &sink); });
  return static_cast<double>(done) / time;
}

// Share of the peak at which f does `work` multiply-adds: the best of several, each against the faster of two
// loops around it.
double share(const KernelTable& table, double work, const std::function<void()>& f) {
  const auto repeats = static_cast<int>(std::max(1.0, 4e7 / work));
  double best = 0;
  double top = 0;
  f();
  for (int i = 0; i < 12; ++i) {
    const double before = peak(table);
    const double time = seconds([&] {
      for (int j = 0; j < repeats; ++j) f();
    });
    top = std::max({top, before, peak(table)});
    best = std::max(best, work * repeats / time);
  }
  return best / top;
}

void bench_matmul(const KernelTable& table, std::size_t rows, std::size_t tokens, std::size_t k) {
  const auto w = values(rows * k);
  const auto x = values(tokens * k);
  Floats tiled_w(tiled_floats(rows, table.tile_height, k)),
      tiled_x(tiled_floats(tokens, table.tile_width, k));
  table.tile_rows(w.data(), k, rows, k, tiled_w.data());
  table.tile_tokens(x.data(), k, tokens, k, tiled_x.data());
  Floats y(rows * tokens);
  const double work = static_cast<double>(rows) * static_cast<double>(tokens) * static_cast<double>(k);
  const double s = share(
      table, work, [&] { table.matmul(tiled_w.data(), rows, tiled_x.data(), tokens, k, y.data(), rows); });
  std::printf("matmul     rows %4zu tokens %4zu k %5zu   %5.1f %% of the FMA peak\n", rows, tokens, k,
              100 * s);
}

/// Packed products of a piece that the second-level cache holds: in multiply-adds of the FMA peak, so more
/// than 100 % is what integers are for.
void bench_packed(const KernelTable& table, wring::formats::QuantType type, const char* name,
                  std::size_t tokens) {
  constexpr std::size_t kRows = 128, kColumns = 768;
  std::vector<std::byte, LineAllocator<std::byte>> w(kRows / kGroupRows * packed_group_bytes(type, kColumns),
                                                     std::byte{0x21});
  const auto x = values(tokens * kColumns);
  std::vector<ActivationChunk, LineAllocator<ActivationChunk>> chunks(tokens * chunks_of(kColumns));
  const QuantizedRows rows = {chunks.data(), tokens, kColumns};
  for (std::size_t t = 0; t < tokens; ++t) table.quantize_row(x.data() + t * kColumns, rows, t);
  Floats y(kRows * tokens);
  const double s = share(table, static_cast<double>(kRows * kColumns * tokens),
                         [&] { table.packed_matmul(type, w.data(), kRows, rows, tokens, y.data(), kRows); });
  std::printf("packed     %s tokens %4zu   %5.1f %% of the FMA peak\n", name, tokens, 100 * s);
}

void bench_decode(const KernelTable& table, std::size_t rows, std::size_t k) {
  const auto w = values(rows * k);
  const auto x = values(k);
  Floats y(rows);
  double best = 1e9;
  for (int i = 0; i < 20; ++i) {
    best = std::min(best, seconds([&] {
                      table.matvec(wring::formats::QuantType::kF32, w.data(), k * sizeof(float), rows,
                                   x.data(), k, y.data());
                    }));
  }
  std::printf("one token  rows %4zu k %5zu   %5.1f GB/s\n", rows, k,
              static_cast<double>(rows * k) * 4e-9 / best);
}

void bench_attention(const KernelTable& table, int context, int queries, int group, int dim) {
  const auto pages = static_cast<std::size_t>((context + kPageTokens - 1) / kPageTokens);
  const auto keys = values(pages * kPageTokens * static_cast<std::size_t>(dim));
  std::vector<const void*> pointers;
  for (std::size_t i = 0; i < pages; ++i)
    pointers.push_back(keys.data() + i * kPageTokens * static_cast<std::size_t>(dim));
  const std::size_t width = static_cast<std::size_t>(group) * static_cast<std::size_t>(dim);
  const auto q = values(static_cast<std::size_t>(queries) * width);
  Floats out(q.size());
  Floats scratch(attention_scratch_floats(queries, group, dim, dim));
  AttentionArgs args = {};
  args.q = q.data();
  args.q_stride = args.out_stride = width;
  args.queries = queries;
  args.group = group;
  args.head_dim = args.value_dim = dim;
  args.first_position = context - queries;
  args.k_pages = args.v_pages = pointers.data();
  args.scale = 0.125F;
  args.out = out.data();
  args.scratch = scratch.data();
  double work = 0;  // only what is seen
  for (int i = 0; i < queries; ++i) work += 2.0 * group * dim * (context - queries + i + 1);
  const double s = share(table, work, [&] { table.attention(args); });
  std::printf("attention  context %5d queries %4d group %d dim %4d   %5.1f %% of the FMA peak\n", context,
              queries, group, dim, 100 * s);
}

void bench_dequantize(const KernelTable& table, wring::formats::QuantType type, const char* name,
                      std::size_t bytes_a_block, std::size_t block) {
  constexpr std::size_t kWeights = 64 * 768;
  std::vector<unsigned char> stored(kWeights / block * bytes_a_block, 0x33);
  Floats out(kWeights);
  double best = 1e9;
  for (int i = 0; i < 50; ++i)
    best = std::min(best, seconds([&] { table.dequantize(type, stored.data(), out.data(), kWeights); }));
  std::printf("dequantize %-5s   %5.2f weights/ns\n", name, static_cast<double>(kWeights) * 1e-9 / best);
}

}  // namespace

int main(int argc, char** argv) {
  const auto wanted = [&](const char* what) { return argc < 2 || std::strcmp(argv[1], what) == 0; };
  const KernelTable& table = kernels();
  std::printf("level %s, %.1f G multiply-adds/s\n", std::string(wring::isa_name(table.isa)).c_str(),
              peak(table) * 1e-9);
  if (wanted("matmul")) {
    for (const std::size_t k : {576, 768, 1536, 2048}) {
      for (const std::size_t rows : {16, 32, 64}) {
        for (const std::size_t tokens : {64, 256, 512}) bench_matmul(table, rows, tokens, k);
      }
    }
    bench_matmul(table, 32, 4, 1536);
  }
  if (wanted("packed")) {
    using wring::formats::QuantType;
    for (const std::size_t tokens : {1, 2, 3, 6, 8, 12, 96}) {
      bench_packed(table, QuantType::kQ4_K, "Q4_K", tokens);
      bench_packed(table, QuantType::kQ6_K, "Q6_K", tokens);
      bench_packed(table, QuantType::kQ8_0, "Q8_0", tokens);
    }
  }
  if (wanted("decode")) {
    for (const std::size_t k : {576, 1536}) bench_decode(table, 64, k);
    bench_decode(table, 16384, 1536);
    using wring::formats::QuantType;
    bench_dequantize(table, QuantType::kBF16, "BF16", 2, 1);
    bench_dequantize(table, QuantType::kF16, "F16", 2, 1);
    bench_dequantize(table, QuantType::kQ8_0, "Q8_0", 34, 32);
    bench_dequantize(table, QuantType::kQ4_K, "Q4_K", 144, 256);
    bench_dequantize(table, QuantType::kQ6_K, "Q6_K", 210, 256);
  }
  if (wanted("attention")) {
    for (const int context : {256, 1024, 4096}) bench_attention(table, context, 256, 3, 64);
    bench_attention(table, 1024, 256, 4, 128);
    bench_attention(table, 1024, 1, 3, 64);
  }
  return 0;
}
