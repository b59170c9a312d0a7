// Text as it streams out: characters are never cut, stop strings never shown.
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "base/utf8.h"
#include "text/nfc.h"
#include "text/stop_strings.h"
#include "text/tokenizer_test_data.h"

namespace wring::text {
namespace {

TEST(StreamingDetokenizer, PiecesAreWholeCharactersAndJoinToTheWhole) {
  const Tokenizer t = Tokenizer::from_hf(testing::data("tok_llama"));
  std::mt19937 random(9);
  for (int i = 0; i < 1000; ++i) {
    std::vector<TokenId> ids;
    for (std::size_t n = random() % 30; n > 0; --n) {
      ids.push_back(static_cast<TokenId>(random() % 330) - 5);  // some outside the vocabulary
    }
    if (i % 2 == 0) ids = t.encode("한국어 😀 é <|im_end|> \xE3\x80 \xF0\x9F\x98 x", Specials::kParse);
    if (i % 4 == 0) std::shuffle(ids.begin(), ids.end(), random);
    for (const bool skip : {true, false}) {
      StreamingDetokenizer stream(t, skip);
      std::string joined;
      for (const TokenId id : ids) {
        const std::string piece = stream.push(id);
        ASSERT_TRUE(is_valid_utf8(piece));
        joined += piece;
      }
      joined += stream.finish();
      ASSERT_EQ(joined, replace_invalid_utf8(t.decode(ids, skip)));
    }
  }
}

TEST(StreamingDetokenizer, ShowsACharacterWithTheTokenThatCompletesIt) {
  const Tokenizer t = Tokenizer::from_hf(testing::data("tok_llama"));
  const std::vector<TokenId> ids = t.encode("😀", Specials::kPlain);
  ASSERT_GT(ids.size(), 1u);
  StreamingDetokenizer stream(t);
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) EXPECT_EQ(stream.push(ids[i]), "");
  EXPECT_EQ(stream.push(ids.back()), "😀");
  stream.push(ids[0]);
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(StopStrings, HoldsBackWhatMayBecomeOne) {
  StopStrings stops({"END", "\n\n"});
  EXPECT_EQ(stops.push("abc\n"), "abc");
  EXPECT_EQ(stops.push("E"), "\n");
  EXPECT_EQ(stops.push("N"), "");
  EXPECT_EQ(stops.push("X"), "ENX");
  EXPECT_FALSE(stops.stopped());
  EXPECT_EQ(stops.push("yENEND and more"), "yEN");
  EXPECT_TRUE(stops.stopped());
  EXPECT_EQ(stops.found(), "END");
  EXPECT_EQ(stops.push("x"), "");
  EXPECT_EQ(stops.finish(), "");
}

TEST(StopStrings, GivesBackWhatWasHeldAtTheEnd) {
  StopStrings stops({"stop"});
  EXPECT_EQ(stops.push("a sto"), "a ");
  EXPECT_EQ(stops.finish(), "sto");
  StopStrings none({});
  EXPECT_EQ(none.push("anything"), "anything");
  EXPECT_THROW(StopStrings({"a", ""}), Error);
}

TEST(StopStrings, DoesNotDependOnThePieces) {
  std::mt19937 random(2);
  for (int i = 0; i < 5000; ++i) {
    const auto word = [&](std::size_t most) {
      std::string s;
      for (std::size_t n = 1 + random() % most; n > 0; --n) s += static_cast<char>('a' + random() % 2);
      return s;
    };
    const std::vector<std::string> list = {word(4), word(5), word(6)};
    const std::string text = word(25);
    // The definition: the first end at which a stop string ends, and the longest of those that do.
    std::string expected = text, found;
    for (std::size_t end = 1; end <= text.size() && found.empty(); ++end) {
      for (const std::string& stop : list) {
        if (text.substr(0, end).ends_with(stop) && stop.size() > found.size()) {
          found = stop;
          expected = text.substr(0, end - stop.size());
        }
      }
    }
    StopStrings stops(list);
    std::string shown;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t n = 1 + random() % 4;
      shown += stops.push(text.substr(at, n));
      ASSERT_TRUE(expected.starts_with(shown));
      at += n;
    }
    shown += stops.finish();
    ASSERT_EQ(shown, expected) << text;
    ASSERT_EQ(stops.found(), found);
  }
}

TEST(Normalizer, ComposesAndOrdersMarks) {
  EXPECT_EQ(to_nfc("plain ASCII\n"), "plain ASCII\n");
  EXPECT_EQ(to_nfc("e\u0301"), "é");
  EXPECT_EQ(to_nfc("x e\u0301\u0323 y"), "x ẹ\u0301 y");  // the lower mark composes first
  EXPECT_EQ(to_nfc("\u1112\u1161\u11ab\u1100\u1173\u11af"), "한글");
  EXPECT_EQ(to_nfc("\u212B\u0343"), "\u00C5\u0313");  // singletons
  EXPECT_EQ(to_nfc("e\xFF\u0301"), "e\xFF\u0301");    // a bad byte separates
  EXPECT_EQ(to_nfc("e\u0301\xC3"), "é\xC3");
}

TEST(Normalizer, ManyMarksInARowTakeNoQuadraticTime) {
  std::string text = "e", sorted = "e";
  for (int i = 0; i < 200'000; ++i) text += "\u0301\u0323";
  const std::string out = to_nfc(text);
  EXPECT_EQ(out.substr(0, 3), "ẹ");  // the first dot below joined the e, the other marks follow in order
  EXPECT_EQ(out.size(), 3 + 2 * (400'000u - 1));
  EXPECT_EQ(to_nfc(out), out);
}

}  // namespace
}  // namespace wring::text
