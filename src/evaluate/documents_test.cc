// Texts are read as they are, and what cannot be used is refused by name.
#include "evaluate/documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "evaluate/testing.h"

namespace wring::evaluate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DocumentsTest : public ::testing::Test {
 protected:
  TextSet read(const std::string& name, const std::string& content) {
    const std::vector<std::filesystem::path> files = {scratch_.put(name, content)};
    return read_texts(files);
  }
  std::string error(const std::string& name, const std::string& content) {
    try {
      read(name, content);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kBadInput);
      return e.what();
    }
    return "no error";
  }

  testing::Scratch scratch_;
  text::Tokenizer tokenizer_ =
      text::Tokenizer::from_hf(std::string(WRING_SOURCE_DIR) + "/tests/data/tokenizer/tok_llama");
};

TEST_F(DocumentsTest, ATextFileIsOneDocumentNamedAfterIt) {
  const TextSet set = read("novel.txt", "Once upon\r\na time\n");
  ASSERT_EQ(set.documents.size(), 1U);
  EXPECT_EQ(set.documents[0].id, "novel");
  EXPECT_EQ(set.documents[0].domain, "novel");
  EXPECT_EQ(set.documents[0].text, "Once upon\r\na time\n");  // line ends are kept
  EXPECT_EQ(set.documents[0].sha256, sha256_hex("Once upon\r\na time\n"));
  EXPECT_TRUE(set.notes.empty());
}

TEST_F(DocumentsTest, OnlyJsonlFilesAreReadAsLines) {
  EXPECT_EQ(read("wiki.test.raw", " = Title = \n").documents[0].id, "wiki.test");
  EXPECT_EQ(read("code.py", "{\"id\":1}\n").documents[0].text, "{\"id\":1}\n");
}

TEST_F(DocumentsTest, NothingIsCutAtANul) {
  const std::string text("one\0two", 7);
  EXPECT_EQ(read("nul.txt", text).documents[0].text, text);
}

TEST_F(DocumentsTest, JsonLinesSkipBlanksAndNeedNoFinalNewline) {
  const TextSet set = read("d.jsonl",
                           "{\"id\":\"a\",\"domain\":\"ko\",\"text\":\"한국어 문장\"}\n\n  \r\n"
                           "{\"id\":\"b\",\"domain\":\"code\",\"text\":\"x\\u0000y\",\"extra\":1}");
  ASSERT_EQ(set.documents.size(), 2U);
  EXPECT_EQ(set.documents[0].domain, "ko");
  EXPECT_EQ(set.documents[1].text, std::string("x\0y", 3));
}

TEST_F(DocumentsTest, OddLinesAreNamedByNumberAndField) {
  const std::string good = R"({"id":"a","domain":"d","text":"t"})"
                           "\n";
  EXPECT_THAT(error("d.jsonl", good + R"({"id":"b","domain":"d"})"),
              AllOf(HasSubstr("line 2"), HasSubstr("\"text\"")));
  EXPECT_THAT(error("d.jsonl", good + R"({"id":3,"domain":"d","text":"t"})"),
              AllOf(HasSubstr("line 2"), HasSubstr("\"id\""), HasSubstr("number")));
  EXPECT_THAT(error("d.jsonl", good + "\n" + R"({"id":"","domain":"d","text":"t"})"),
              AllOf(HasSubstr("line 3"), HasSubstr("empty")));
  EXPECT_THAT(error("d.jsonl", good + "[1]"), AllOf(HasSubstr("line 2"), HasSubstr("object")));
  EXPECT_THAT(error("d.jsonl", good + "{\"id\":"), HasSubstr("line 2"));
  EXPECT_THAT(error("d.jsonl", good + good),
              AllOf(HasSubstr("line 1"), HasSubstr("line 2"), HasSubstr("twice")));
  EXPECT_THAT(error("d.jsonl", "\n\n"), HasSubstr("empty"));
  EXPECT_THAT(error("d.jsonl", good + R"({"id":"b","domain":"d","text":"  \n"})"),
              AllOf(HasSubstr("line 2"), HasSubstr("blank")));
}

TEST_F(DocumentsTest, BlankTextAndFoldersAreRefused) {
  EXPECT_THAT(error("blank.txt", " \n\t\r\n"), AllOf(HasSubstr("blank"), HasSubstr("at least 2")));
  EXPECT_THAT(error("blank.txt", ""), HasSubstr("blank"));
  const std::vector<std::filesystem::path> folder = {scratch_.path()};
  try {
    read_texts(folder);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("director"));
  }
}

TEST_F(DocumentsTest, ACharacterCutAtTheEndIsDroppedAndSaid) {
  const std::string whole = "쓴다 한국어 문장";
  for (std::size_t cut = 1; cut <= 2; ++cut) {
    const TextSet set = read("ko.txt", whole.substr(0, whole.size() - cut));
    EXPECT_EQ(set.documents[0].text, "쓴다 한국어 문");
    ASSERT_EQ(set.notes.size(), 1U);
    EXPECT_THAT(set.notes[0], AllOf(HasSubstr("ko.txt"), HasSubstr("offset 20")));
  }
}

TEST_F(DocumentsTest, OtherInvalidUtf8IsRefusedWithItsOffset) {
  EXPECT_THAT(error("bad.txt",
                    "abc\xff"
                    "def"),
              AllOf(HasSubstr("0xFF"), HasSubstr("offset 3")));
  EXPECT_THAT(error("bad.txt", "abc\xff"), HasSubstr("offset 3"));      // no character begins so
  EXPECT_THAT(error("bad.txt", "abc\xe0\x80"), HasSubstr("offset 3"));  // overlong
  EXPECT_THAT(error("bad.jsonl", "{\"id\":\"a\",\"domain\":\"d\",\"text\":\"\xff\"}"), HasSubstr("line 1"));
}

TEST_F(DocumentsTest, IdsAreCutAtTheContextAndBytesCountTheScoredOnes) {
  const TextSet set = read("t.txt", "The quick brown fox jumps over the lazy dog.");
  const std::vector<Document> whole = tokenize(set, tokenizer_, 512, 1024);
  ASSERT_FALSE(whole[0].cut);
  const bool bos = tokenizer_.adds_bos();
  const std::size_t first_bytes = bos ? 0 : tokenizer_.bytes_of(whole[0].ids[0]).size();
  EXPECT_EQ(whole[0].scored_bytes, static_cast<std::int64_t>(set.documents[0].text.size() - first_bytes));
  const std::vector<Document> cut = tokenize(set, tokenizer_, 4, 1024);
  EXPECT_TRUE(cut[0].cut);
  ASSERT_EQ(cut[0].ids.size(), 4U);
  EXPECT_TRUE(std::equal(cut[0].ids.begin(), cut[0].ids.end(), whole[0].ids.begin()));
}

TEST_F(DocumentsTest, SpecialTokensInTextStayText) {
  const TextSet set = read("s.txt", "a <|eos|> b <|im_start|> c <s> d </s>");
  const std::vector<Document> documents = tokenize(set, tokenizer_, 512, 512);
  for (const TokenId id : documents[0].ids) {
    if (tokenizer_.bos() && id == *tokenizer_.bos()) continue;
    EXPECT_FALSE(tokenizer_.is_special(id)) << id;
  }
}

TEST_F(DocumentsTest, AContextBeyondTheModelsNamesBoth) {
  const TextSet set = read("t.txt", "some text");
  try {
    tokenize(set, tokenizer_, 4096, 2048);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("4096"), HasSubstr("2048"), HasSubstr("max_position_embeddings")));
  }
  EXPECT_THROW(tokenize(set, tokenizer_, 1, 2048), Error);
}

TEST_F(DocumentsTest, AByteWithoutTokenNamesItsDocument) {
  auto definition = nlohmann::json::parse(read_text_file(
      std::string(WRING_SOURCE_DIR) + "/tests/data/tokenizer/tok_llama/tokenizer.json", 1 << 20));
  auto& vocab = definition["model"]["vocab"];
  vocab["unused"] = vocab.at("Ą");  // the character of byte 4
  vocab.erase("Ą");
  scratch_.put("tokenizer.json", definition.dump());
  const TextSet set = read("odd.txt", "a\x04z");
  try {
    tokenize(set, text::Tokenizer::from_hf(scratch_.path()), 16, 2048);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("0x04"), HasSubstr("odd.txt")));
  }
}

}  // namespace
}  // namespace wring::evaluate
