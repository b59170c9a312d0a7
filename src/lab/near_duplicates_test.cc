// Half of the smaller text's shingles decide, whichever comes first.
#include "lab/near_duplicates.h"

#include <gtest/gtest.h>

#include <string>

namespace wring::lab {
namespace {

// Words from..to-1, so that overlaps are known exactly: n words are n - 4 shingles.
std::string words(int from, int to) {
  std::string s;
  for (int i = from; i < to; ++i) s += "w" + std::to_string(i) + " ";
  return s;
}

TEST(NearDuplicates, TheSameTextIsFoundWhateverItsBlanks) {
  NearDuplicates near;
  EXPECT_FALSE(near.keep_unless_repeated("one two three four five six"));
  EXPECT_FALSE(near.keep_unless_repeated("six five four three two one"));
  EXPECT_EQ(near.keep_unless_repeated("one  two\nthree four\tfive six\n"), 0U);
}

TEST(NearDuplicates, HalfOfTheSmallerIsTooMuch) {
  NearDuplicates near;
  EXPECT_FALSE(near.keep_unless_repeated(words(0, 104)));        // 100 shingles
  EXPECT_FALSE(near.keep_unless_repeated(words(81, 104 + 43)));  // 62 shingles, 19 shared: under half
  EXPECT_TRUE(near.keep_unless_repeated(words(54, 158)));        // 100 shingles, 50 shared with the first
}

TEST(NearDuplicates, AContainedTextIsFoundInEitherOrder) {
  NearDuplicates near;
  EXPECT_FALSE(near.keep_unless_repeated(words(40, 60)));
  EXPECT_EQ(near.keep_unless_repeated(words(0, 100)), 0U);
}

TEST(NearDuplicates, ARefusedTextDoesNotCountLater) {
  NearDuplicates near;
  EXPECT_FALSE(near.keep_unless_repeated(words(0, 50)));
  EXPECT_TRUE(near.keep_unless_repeated(words(20, 70)));
  EXPECT_FALSE(near.keep_unless_repeated(words(48, 90)));  // shares only with the refused one
}

TEST(NearDuplicates, ShortTextsAreOneShingle) {
  NearDuplicates near;
  EXPECT_FALSE(near.keep_unless_repeated("one two"));
  EXPECT_FALSE(near.keep_unless_repeated("one three"));
  EXPECT_TRUE(near.keep_unless_repeated("one two"));
  EXPECT_FALSE(near.keep_unless_repeated(""));
  EXPECT_TRUE(near.keep_unless_repeated("  \n"));
}

}  // namespace
}  // namespace wring::lab
