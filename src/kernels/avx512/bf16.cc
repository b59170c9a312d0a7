// BF16 matrices on AVX-512 with BF16: exact mode's product over lanes that hold two values each. vdpbf16ps
// multiplies both and adds them to the lane's float, so the templates are the same and k counts pairs.
#include "kernels/avx512/vec.h"
#include "kernels/levels.h"
#include "kernels/vector/matmul.h"

namespace wring::kernels::avx512 {
namespace {

/// What is multiplied are pairs of BF16, what is added are floats.
struct Pairs : Vec {
  static F fma(F a, F b, F sum) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
  static void accumulate(F& sum, F a, F b) { sum = fma(a, b, sum); }
  /// −0 twice.
  static F padding() { return _mm512_castsi512_ps(_mm512_set1_epi16(-0x8000)); }
};
using Product = vector::Matmul<Pairs>;

void store_rounded(Pairs::F x, std::uint16_t* to) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
}

void round(const float* x, std::size_t n, std::uint16_t* bf16) {
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) store_rounded(Pairs::load(x + i), bf16 + i);
  if (i == n) return;
  std::uint16_t rest[16];
  store_rounded(Pairs::load_first(x + i, static_cast<int>(n - i)), rest);
  for (std::size_t j = 0; i + j < n; ++j) bf16[i + j] = rest[j];
}

void tile_rows(const void* w, std::size_t row_bytes, std::size_t rows, std::size_t k, float* tiled) {
  Product::tile_rows(static_cast<const float*>(w), row_bytes / sizeof(float), rows, k / 2, tiled);
}

void tile_tokens(const void* x, std::size_t row_bytes, std::size_t tokens, std::size_t k, float* tiled) {
  Product::tile_tokens(static_cast<const float*>(x), row_bytes / sizeof(float), tokens, k / 2, tiled);
}

void matmul(const float* tiled_w, std::size_t rows, const float* tiled_x, std::size_t tokens, std::size_t k,
            float* y, std::size_t y_stride) {
  Product::run(tiled_w, rows, tiled_x, tokens, k / 2, y, y_stride);
}

void matvec(const void* w, std::size_t row_bytes, std::size_t rows, const std::uint16_t* x, std::size_t k,
            float* y) {
  Product::matvec_of<vector::StoredF32>(static_cast<const unsigned char*>(w), row_bytes, rows,
                                        reinterpret_cast<const float*>(x), k / 2, y);
}

std::size_t peak_loop(std::size_t rounds, float* sink) {
  constexpr int kChains = 12;
  Pairs::F sums[kChains];
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i)
    sums[i] = Pairs::set(static_cast<float>(i));  // else one chain would do for all
  const Pairs::F ones = _mm512_castsi512_ps(_mm512_set1_epi16(0x3F80));
  for (std::size_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (Pairs::F& sum : sums) Pairs::accumulate(sum, ones, ones);
  }
  Pairs::F total = sums[0];
#pragma GCC unroll 12
  for (int i = 1; i < kChains; ++i) total = Pairs::add(total, sums[i]);
  *sink = Pairs::max_of(total);
  return rounds * kChains * 2 * Pairs::kLanes;
}

}  // namespace

const Bf16Dots& bf16_dots() {
  static constexpr Bf16Dots kDots = {.round = round,
                                     .tile_height = Product::kRows,
                                     .tile_width = Product::kTokens,
                                     .tile_rows = tile_rows,
                                     .tile_tokens = tile_tokens,
                                     .matmul = matmul,
                                     .matvec = matvec,
                                     .peak_loop = peak_loop};
  return kDots;
}

}  // namespace wring::kernels::avx512
