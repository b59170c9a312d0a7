// A group unpacked into a panel that stays in the first-level cache while many tokens pass over it
// (avx2/packed.h says what a source is). 8-bit codes become words, and so do the tokens': vpmaddubsw would
// need two more instructions for their signs.
#pragma once

#include "kernels/avx2/packed_groups.h"

namespace wring::kernels::avx2 {
namespace {

struct alignas(64) Panel4 {
  using Group = Group4;
  static constexpr bool kSuper = true, kMins = true, kReadsWords = false;
  static constexpr int kTokensOfBoth = 3;

  std::uint8_t codes[64][kStepBytes];  // [4 columns][row][column]
  std::int32_t scales[8][16];          // [block][row], as words twice
  float mins[8][16];                   // [block][row]
  float d_of[16], dmin_of[16];

  void unpack(const Group4& group, int /*blocks*/) {
    for (int half = 0; half < 2; ++half) {
      _mm256_store_ps(d_of + 8 * half, group.d(half));
      _mm256_store_ps(dmin_of + 8 * half, group.dmin(half));
      for (int block = 0; block < 8; ++block) {
        store(scales[block] + 8 * half, group.scale(block, half));
        _mm256_store_ps(mins[block] + 8 * half, group.min(block, half));
      }
      for (int i = 0; i < 32; ++i) {
        const I both = load(group.g.qs[i] + 32 * half);
        store(codes[2 * i] + 32 * half, low_halves(both));
        store(codes[2 * i + 1] + 32 * half, high_halves(both));
      }
    }
  }

  F d(int half) const { return _mm256_load_ps(d_of + 8 * half); }
  F dmin(int half) const { return _mm256_load_ps(dmin_of + 8 * half); }
  F min(int block, int half) const { return _mm256_load_ps(mins[block] + 8 * half); }
  template <int H>
  void fetch(int /*block*/, int /*first*/) const {}

  template <int T, int H>
  void dot(int block, int first, const ActivationChunk* x, I (&sums)[T][H]) const {
    I words[T][H];
#pragma GCC unroll 8
    for (int step = 0; step < 8; ++step) {
      I w[H];
#pragma GCC unroll 2
      for (int h = 0; h < H; ++h) w[h] = load(codes[8 * block + step] + 32 * (first + h));
#pragma GCC unroll 6
      for (int t = 0; t < T; ++t) {
        const I token = broadcast_step(x[t].codes + 32 * block + 4 * step);
#pragma GCC unroll 2
        for (int h = 0; h < H; ++h) {
          const I sum = _mm256_maddubs_epi16(w[h], token);
          if (step == 0) {
            words[t][h] = sum;
          } else {
            add_words(words[t][h], sum);
          }
        }
      }
    }
#pragma GCC unroll 2
    for (int h = 0; h < H; ++h) {
      const I factor = load(scales[block] + 8 * (first + h));
#pragma GCC unroll 6
      for (int t = 0; t < T; ++t) sums[t][h] = _mm256_madd_epi16(words[t][h], factor);
    }
  }
};

struct alignas(64) Panel6 {
  using Group = Group6;
  static constexpr bool kSuper = true, kMins = false, kReadsWords = false;
  static constexpr int kTokensOfBoth = 3;

  std::uint8_t codes[64][kStepBytes];  // [4 columns][row][column], 0 … 63
  std::int32_t scales[16][16];         // [16 columns][row], as words twice
  std::int32_t offsets[8][16];         // [block][row], two words: −32 times the block's scales
  float d_of[16];

  void unpack(const Group6& group, int /*blocks*/) {
    for (int half = 0; half < 2; ++half) {
      _mm256_store_ps(d_of + 8 * half, group.d(half));
      for (int block = 0; block < 8; ++block) store(offsets[block] + 8 * half, group.offset(block, half));
      for (int sixteen = 0; sixteen < 16; ++sixteen) {
        store(scales[sixteen] + 8 * half, group.scale(sixteen, half));
        for (int pair = 0; pair < 2; ++pair) {
          I steps[2];
          group.codes(sixteen, half, pair, steps);
          store(codes[4 * sixteen + 2 * pair] + 32 * half, steps[0]);
          store(codes[4 * sixteen + 2 * pair + 1] + 32 * half, steps[1]);
        }
      }
    }
  }

  F d(int half) const { return _mm256_load_ps(d_of + 8 * half); }
  template <int H>
  void fetch(int /*block*/, int /*first*/) const {}

  template <int T, int H>
  void dot(int block, int first, const ActivationChunk* x, I (&sums)[T][H]) const {
#pragma GCC unroll 2
    for (int h = 0; h < H; ++h) {
      const I less = load(offsets[block] + 8 * (first + h));
#pragma GCC unroll 6
      for (int t = 0; t < T; ++t)
        sums[t][h] = _mm256_madd_epi16(less, broadcast_step(x[t].code_sums + 2 * block));
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 2
      for (int h = 0; h < H; ++h) {
        const I factor = load(scales[2 * block + i / 2] + 8 * (first + h));
        const I w0 = load(codes[8 * block + 2 * i] + 32 * (first + h));
        const I w1 = load(codes[8 * block + 2 * i + 1] + 32 * (first + h));
#pragma GCC unroll 6
        for (int t = 0; t < T; ++t) {
          const std::int8_t* at = x[t].codes + 32 * block + 8 * i;
          I words = _mm256_maddubs_epi16(w0, broadcast_step(at));
          add_words(words, _mm256_maddubs_epi16(w1, broadcast_step(at + 4)));
          add_integers(sums[t][h], _mm256_madd_epi16(words, factor));
        }
      }
    }
  }
};

/// Codes of tokens as words, [token][column].
using Words = std::int16_t[kChunkColumns];

struct alignas(64) Panel8 {
  using Group = Group8;
  static constexpr bool kSuper = false, kMins = false, kReadsWords = true;
  static constexpr int kTokensOfBoth = 3;

  std::int16_t codes[128][2 * kGroupRows];  // [2 columns][row][column]
  float scales[8][16];                      // [block][row]
  const Words* words;                       // of the tokens that are multiplied

  void unpack(const Group8& group, int blocks) {
    // Each byte into the upper half of a word, columns 0 and 1 of each row or 2 and 3, then shifted down.
    const I first =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(-1, 0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13));
    const I second = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(-1, 2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15));
    for (int block = 0; block < blocks; ++block) {
      for (int half = 0; half < 2; ++half) {
        _mm256_store_ps(scales[block] + 8 * half, group.scale(block, half));
        for (int step = 0; step < 8; ++step) {
          const I four = load(group.g[block].qs[step] + 32 * half);
          std::int16_t* to = codes[16 * block + 2 * step] + 16 * half;
          store(to, _mm256_srai_epi16(_mm256_shuffle_epi8(four, first), 8));
          store(to + 2 * kGroupRows, _mm256_srai_epi16(_mm256_shuffle_epi8(four, second), 8));
        }
      }
    }
  }

  F scale(int block, int half) const { return _mm256_load_ps(scales[block] + 8 * half); }
  template <int H>
  void fetch(int /*block*/, int /*first*/) const {}

  template <int T, int H>
  void dot(int block, int first, const ActivationChunk* /*x*/, I (&sums)[T][H]) const {
#pragma GCC unroll 16
    for (int step = 0; step < 16; ++step) {
      I w[H];
#pragma GCC unroll 2
      for (int h = 0; h < H; ++h) w[h] = load(codes[16 * block + step] + 16 * (first + h));
#pragma GCC unroll 6
      for (int t = 0; t < T; ++t) {
        const I token = broadcast_step(words[t] + 32 * block + 2 * step);
#pragma GCC unroll 2
        for (int h = 0; h < H; ++h) {
          const I sum = _mm256_madd_epi16(w[h], token);
          if (step == 0) {
            sums[t][h] = sum;
          } else {
            add_integers(sums[t][h], sum);
          }
        }
      }
    }
  }
};

}  // namespace
}  // namespace wring::kernels::avx2
