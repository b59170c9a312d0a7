// BPE against its definition written out naively, the byte table, and ignore_merges.
#include "text/bpe.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/error.h"
#include "text/byte_level.h"

namespace wring::text {
namespace {

// "Join the neighbours whose merge stands first, the leftmost of equals, until none is left."
std::vector<TokenId> merge_naively(const Vocabulary& vocabulary, const std::vector<Merge>& merges,
                                   const std::string& word) {
  std::map<std::pair<TokenId, TokenId>, std::size_t> rank;
  for (std::size_t i = 0; i < merges.size(); ++i) rank[{merges[i].left, merges[i].right}] = i;
  std::vector<TokenId> ids;
  for (const char b : word) ids.push_back(*vocabulary.find(to_byte_level({&b, 1})));
  while (true) {
    std::size_t best = merges.size(), at = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = rank.find({ids[i], ids[i + 1]});
      if (found != rank.end() && found->second < best) {
        best = found->second;
        at = i;
      }
    }
    if (best == merges.size()) return ids;
    ids[at] = merges[best].result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

struct Definition {
  Vocabulary vocabulary;
  std::vector<Merge> merges;
};

// Byte tokens and random merges of what there is so far.
Definition random_definition(std::mt19937& random, std::size_t letters) {
  Definition d;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < letters; ++i) {
    texts.push_back(std::string(1, static_cast<char>('a' + i)));
    d.vocabulary.add(static_cast<std::int64_t>(i), texts.back(), TokenKind::kNormal, "test");
  }
  for (int tries = 0; tries < 60; ++tries) {
    const std::string left = texts[random() % texts.size()], right = texts[random() % texts.size()];
    std::optional<TokenId> result = d.vocabulary.find(left + right);
    if (!result) {
      result = static_cast<TokenId>(texts.size());
      d.vocabulary.add(*result, left + right, TokenKind::kNormal, "test");
      texts.push_back(left + right);
    }
    const Merge m{*d.vocabulary.find(left), *d.vocabulary.find(right), *result,
                  static_cast<std::uint32_t>(d.merges.size())};
    const auto same = [&](const Merge& o) { return o.left == m.left && o.right == m.right; };
    if (std::none_of(d.merges.begin(), d.merges.end(), same)) d.merges.push_back(m);
  }
  d.vocabulary.finish({.byte_level = true});
  return d;
}

TEST(Bpe, EqualsTheDefinition) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    const Definition d = random_definition(random, 2 + random() % 3);
    const Bpe bpe(d.vocabulary, Alphabet(d.vocabulary, {}), d.merges, false);
    Bpe::Scratch scratch;
    for (int i = 0; i < 40; ++i) {
      std::string word;
      for (std::size_t n = random() % 90; n > 0; --n) word += static_cast<char>('a' + random() % 2);
      for (int twice = 0; twice < 2; ++twice) {  // the second time from the words already seen
        std::vector<TokenId> ids = {-7};
        bpe.encode(word, scratch, ids);
        std::vector<TokenId> expected = merge_naively(d.vocabulary, d.merges, word);
        expected.insert(expected.begin(), -7);
        ASSERT_EQ(ids, expected) << word;
      }
    }
  }
}

TEST(Bpe, AWordThatIsATokenIsTakenWholeIfMergesAreIgnored) {
  Vocabulary v;
  for (const auto& [id, text] :
       std::map<int, const char*>{{0, "a"}, {1, "b"}, {2, "c"}, {3, "ab"}, {4, "abc"}}) {
    v.add(id, text, TokenKind::kNormal, "test");
  }
  v.finish({.byte_level = true});
  const std::vector<Merge> merges = {{0, 1, 3, 0}};  // nothing makes "abc"
  const auto encode = [&](bool ignore, std::string_view word) {
    std::vector<TokenId> ids;
    Bpe::Scratch scratch;
    Bpe(v, Alphabet(v, {}), merges, ignore).encode(word, scratch, ids);
    return ids;
  };
  EXPECT_EQ(encode(false, "abc"), (std::vector<TokenId>{3, 2}));
  EXPECT_EQ(encode(true, "abc"), (std::vector<TokenId>{4}));
  EXPECT_EQ(encode(true, "abca"), (std::vector<TokenId>{3, 2, 0}));
  EXPECT_TRUE(Bpe(v, Alphabet(v, {}), merges, true).ignores_merges());
  EXPECT_FALSE(Bpe(v, Alphabet(v, {}), {{0, 1, 3, 0}, {3, 2, 4, 1}}, true)
                   .ignores_merges());  // merges reach every token: no difference
}

TEST(Bpe, TheWordsSeenAreBounded) {
  std::mt19937 random(3);
  const Definition d = random_definition(random, 4);
  const Bpe bpe(d.vocabulary, Alphabet(d.vocabulary, {}), d.merges, false);
  Bpe::Scratch scratch;
  for (std::size_t i = 0; i < Bpe::Scratch::kMaxCached + 1000; ++i) {
    std::string word;
    for (std::size_t rest = i + 1; rest > 0; rest /= 4) word += static_cast<char>('a' + rest % 4);
    std::vector<TokenId> ids;
    bpe.encode(word, scratch, ids);
    ASSERT_LE(scratch.words(), Bpe::Scratch::kMaxCached);
    std::string joined;
    for (const TokenId id : ids) joined += d.vocabulary.bytes(id);
    ASSERT_EQ(joined, word);
  }
}

TEST(ByteLevel, EveryByteHasItsOwnPrintableCharacter) {
  std::map<std::string, int> seen;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    const std::string text = to_byte_level(bytes);
    EXPECT_TRUE(seen.emplace(text, byte).second);
    EXPECT_EQ(from_byte_level(text), bytes);
  }
  EXPECT_EQ(to_byte_level(" \n~"), "ĠĊ~");
  EXPECT_EQ(byte_level_char(0xFF), U'ÿ');
  EXPECT_EQ(from_byte_level("a b"), std::nullopt);  // a blank stands for no byte
  EXPECT_EQ(from_byte_level("한"), std::nullopt);
}

TEST(Vocabulary, GapsAreAllowedAndDecodeToNothing) {
  Vocabulary v;
  v.add(5, "a", TokenKind::kNormal, "test");
  v.finish({.byte_level = true});
  EXPECT_EQ(v.size(), 6);
  EXPECT_FALSE(v.contains(2));
  EXPECT_EQ(v.bytes(2), "");
  EXPECT_EQ(v.kind(2), TokenKind::kAbsent);
  EXPECT_THROW(v.add(kMaxTokenId + 1, "b", TokenKind::kNormal, "test"), Error);
  EXPECT_NO_THROW(v.add(kMaxTokenId, "b", TokenKind::kNormal, "test"));
}

}  // namespace
}  // namespace wring::text
