// Documents are long enough, lose nothing between them but blank lines, and end where a reader would pause.
#include "lab/document_cutter.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/utf8.h"

namespace wring::lab {
namespace {

std::int64_t count_words(std::string_view s) {
  std::int64_t n = 0;
  bool inside = false;
  for (const char c : s) {
    const bool blank = c == ' ' || c == '\n';
    n += !blank && !inside;
    inside = !blank;
  }
  return n;
}

std::string repeat(std::string_view s, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += s;
  return out;
}

TEST(DocumentCutter, EndsAtTheFirstParagraphEndAfterEnoughTokens) {
  const std::string text = repeat("a b c\nd e f\n\n", 5);  // paragraphs of 6 words
  const CutText cut = cut_documents(text, 10, count_words);
  ASSERT_EQ(cut.documents.size(), 2U);
  EXPECT_EQ(cut.documents[0], "a b c\nd e f\n\na b c\nd e f");
  EXPECT_EQ(cut.documents[1], cut.documents[0]);
  EXPECT_EQ(cut.left_over_bytes, 13U);  // the fifth paragraph
}

TEST(DocumentCutter, EndsAtALineWhereTheParagraphIsLong) {
  const std::string text = repeat("a b c\n", 20);
  const CutText cut = cut_documents(text, 8, count_words);
  // 8 words are reached with the third line (9); a quarter more (10) with the fourth (12).
  ASSERT_EQ(cut.documents.size(), 5U);
  EXPECT_EQ(cut.documents[0], "a b c\na b c\na b c\na b c");
}

TEST(DocumentCutter, KeepsIndentationAndDropsBlankEdges) {
  const CutText cut = cut_documents("\n\n  \n    x = 1\n    y = 2\n\n\n", 6, count_words);
  ASSERT_EQ(cut.documents.size(), 1U);
  EXPECT_EQ(cut.documents[0], "    x = 1\n    y = 2");
}

TEST(DocumentCutter, LongLinesAreCutAtBlanksAndNeverInsideACharacter) {
  const std::string words = repeat("word ", 5000);  // one line of 25,000 bytes
  const CutText cut = cut_documents(words, 1000, count_words);
  ASSERT_GE(cut.documents.size(), 3U);
  for (const std::string_view d : cut.documents) {
    EXPECT_TRUE(d.starts_with("word") && d.ends_with("word"));
    EXPECT_GE(count_words(d), 1000);
  }
  const std::string line = repeat("글", 9000);
  const CutText hangul = cut_documents(line, 1500, [](std::string_view s) {
    EXPECT_TRUE(is_valid_utf8(s));
    return static_cast<std::int64_t>(s.size() / 3);
  });
  EXPECT_GE(hangul.documents.size(), 4U);
}

TEST(DocumentCutter, TheWholeDecidesWhereThePartsCountMore) {
  // One token more for every piece, as a tokenizer that merges over line ends would give.
  const auto count = [](std::string_view s) { return 1 + static_cast<std::int64_t>(s.size() / 4); };
  const std::string text = repeat("ab\n\n", 400);
  const CutText cut = cut_documents(text, 100, count);
  ASSERT_FALSE(cut.documents.empty());
  for (const std::string_view d : cut.documents) EXPECT_GE(count(d), 100);
}

TEST(DocumentCutter, NothingToCut) {
  for (const char* text : {"", "\n\n", " ", "too short\n"}) {
    EXPECT_TRUE(cut_documents(text, 10, count_words).documents.empty()) << text;
  }
  EXPECT_EQ(cut_documents("too short\n", 10, count_words).left_over_bytes, 10U);
}

TEST(DocumentCutter, TimeIsLinear) {
  const auto start = std::chrono::steady_clock::now();
  // Each line counts as a token alone; together they are a quarter of that.
  const auto count = [](std::string_view s) { return 1 + static_cast<std::int64_t>(s.size() / 8); };
  cut_documents(repeat("x\n", 500'000), 1'000'000, count);
  cut_documents(repeat("x", 2'000'000), 1000, count);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace wring::lab
