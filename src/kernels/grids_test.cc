// The lattices' lists as a whole, since the golden blocks use a few patterns only: digests of the tables in
// the package gguf 0.19.0, as scripts/make_grid_members.py prints them.
#include "kernels/scalar/grids.h"

#include <gtest/gtest.h>

#include <string>

#include "base/hash.h"

namespace wring::kernels::scalar {
namespace {

/// SHA-256 of the places of all levels, a byte each, pattern by pattern.
template <std::size_t kPatterns>
std::string digest(const Grid<kPatterns>& grid, int weights, int bits) {
  std::string places;
  for (const unsigned pattern : grid) {
    for (int i = 0; i < weights; ++i) places += static_cast<char>(pattern >> (bits * i) & ((1U << bits) - 1));
  }
  return sha256_hex(places);
}

TEST(Grids, AreTheFormats) {
  EXPECT_EQ(digest(kIq1Grid, 8, 2), "bf92c60e2ed15644d2d948b652a55624cc35699ef5c8e0337258e332f8c47b48");
  EXPECT_EQ(digest(kIq2XxsGrid, 8, 2), "886814bc08b031008eb1086cdbc5c3fae78eecc764a4a6742f8eb839b9f37ef6");
  EXPECT_EQ(digest(kIq2XsGrid, 8, 2), "e9567eb15257b717a029c8c1e574ffd87af0c95090552eff83eb6e09b1211046");
  EXPECT_EQ(digest(kIq2SGrid, 8, 2), "1d4ca1e2fbd2be073bef55f6582ad20109dc746ebd39b5c0780d57ebacc73024");
  EXPECT_EQ(digest(kIq3XxsGrid, 4, 3), "e86540e4e7b2d3375c137ffe84467dc402396c6da24273f9007b5db112172f4c");
  EXPECT_EQ(digest(kIq3SGrid, 4, 3), "acb8a458f699e571cf55c9270a4bc15facd6653b40450ce1f449f345c95e4407");
}

}  // namespace
}  // namespace wring::kernels::scalar
