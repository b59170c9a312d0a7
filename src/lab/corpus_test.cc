// The promises of a corpus: disjoint by text and by file, balanced, the same for a seed, honest about the
// rest.
#include "lab/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/mapped_file.h"

namespace wring::lab {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class CorpusTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("wring-corpus-" + std::to_string(::getpid()) + "-" +
                                         ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void put(const std::string& name, const std::string& content) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << content;
  }

  // `n` paragraphs of 240 bytes or so, all words distinct: two of them are a document of 100 "tokens".
  std::string prose(const std::string& tag, int n) {
    std::string text;
    for (int i = 0; i < n; ++i) {
      for (int w = 0; w < 24; ++w) text += tag + std::to_string(i) + "x" + std::to_string(w) + " and ";
      text += "\n\n";
    }
    return text;
  }

  Corpus make(const std::vector<std::string>& inputs, CorpusOptions options) {
    std::vector<CorpusInput> parsed;
    for (const std::string& i : inputs) parsed.push_back(parse_corpus_input(i));
    return make_corpus(parsed, options, silent_progress());
  }
  std::string error(const std::vector<std::string>& inputs, const CorpusOptions& options, ErrorCode code) {
    try {
      make(inputs, options);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code) << e.what();
      return e.what();
    }
    return "no error";
  }
  std::string at(const std::string& name) const { return (root_ / name).string(); }

  static CorpusOptions options(std::int64_t c, std::int64_t v, std::int64_t f, std::uint64_t seed = 0) {
    CorpusOptions o;
    o.documents = {c, v, f};
    o.tokens = 100;
    o.seed = seed;
    return o;
  }

  fs::path root_;
};

std::map<std::string, std::int64_t> domains_of(const std::vector<CorpusDocument>& documents) {
  std::map<std::string, std::int64_t> n;
  for (const CorpusDocument& d : documents) ++n[d.domain];
  return n;
}

TEST_F(CorpusTest, SplitsAreBalancedDisjointAndLongEnough) {
  for (int i = 0; i < 12; ++i) {
    put("a/" + std::to_string(i) + ".txt", prose("a" + std::to_string(i) + "q", 9));
    put("b/deep/" + std::to_string(i) + ".py", prose("b" + std::to_string(i) + "q", 9));
  }
  const Corpus corpus = make({at("a"), "code=" + at("b")}, options(8, 4, 6));
  EXPECT_EQ(domains_of(corpus.splits[0]), (std::map<std::string, std::int64_t>{{"a", 4}, {"code", 4}}));
  EXPECT_EQ(domains_of(corpus.splits[1]), (std::map<std::string, std::int64_t>{{"a", 2}, {"code", 2}}));
  EXPECT_EQ(domains_of(corpus.splits[2]), (std::map<std::string, std::int64_t>{{"a", 3}, {"code", 3}}));
  EXPECT_TRUE(corpus.domains_with_shared_files.empty());
  std::set<std::string> ids, hashes;
  std::map<std::size_t, std::size_t> split_of_file;
  for (std::size_t s = 0; s < 3; ++s) {
    for (const CorpusDocument& d : corpus.splits[s]) {
      EXPECT_TRUE(ids.insert(d.id).second) << d.id;
      EXPECT_TRUE(hashes.insert(d.sha256).second);
      EXPECT_EQ(d.sha256, sha256_hex(d.text));
      EXPECT_GE(d.text.size() / 4, 100U);
      EXPECT_EQ(split_of_file.emplace(d.file, s).first->second, s) << corpus.files[d.file].name;
      EXPECT_EQ(corpus.files[d.file].domain, d.domain);
    }
    // Any prefix is balanced to one document.
    std::map<std::string, int> seen;
    for (const CorpusDocument& d : corpus.splits[s]) {
      ++seen[d.domain];
      EXPECT_LE(std::abs(seen["a"] - seen["code"]), 1);
    }
  }
}

TEST_F(CorpusTest, FewFilesGiveSeveralDocumentsEachButStayApart) {
  for (int i = 0; i < 3; ++i)
    put("a/" + std::to_string(i) + ".txt", prose("a" + std::to_string(i) + "q", 20));
  const Corpus corpus = make({at("a")}, options(5, 5, 5));
  EXPECT_TRUE(corpus.domains_with_shared_files.empty());
  for (const auto& split : corpus.splits) {
    std::set<std::size_t> files;
    for (const CorpusDocument& d : split) files.insert(d.file);
    EXPECT_EQ(files.size(), 1U);
  }
}

TEST_F(CorpusTest, OneFileIsSharedAndSaidSo) {
  put("a.txt", prose("a", 20));
  const Corpus corpus = make({at("a.txt")}, options(2, 1, 2));
  EXPECT_THAT(corpus.domains_with_shared_files, ::testing::ElementsAre("a"));
  EXPECT_EQ(corpus.splits[0].size() + corpus.splits[1].size() + corpus.splits[2].size(), 5U);
}

TEST_F(CorpusTest, TheSeedDecidesAndThePlaceDoesNot) {
  for (int i = 0; i < 9; ++i) {
    put("a/" + std::to_string(i) + ".txt", prose("a" + std::to_string(i) + "q", 9));
    put("moved/x/a/" + std::to_string(i) + ".txt", prose("a" + std::to_string(i) + "q", 9));
  }
  const auto hashes = [](const Corpus& c) {
    std::vector<std::string> h;
    for (const auto& split : c.splits) {
      for (const CorpusDocument& d : split) h.push_back(d.id + d.sha256);
    }
    return h;
  };
  const auto first = hashes(make({at("a")}, options(2, 1, 2, 7)));
  EXPECT_EQ(first, hashes(make({at("a")}, options(2, 1, 2, 7))));
  EXPECT_EQ(first, hashes(make({at("moved/x/a")}, options(2, 1, 2, 7))));
  EXPECT_NE(first, hashes(make({at("a")}, options(2, 1, 2, 8))));
}

TEST_F(CorpusTest, TheDrawIsTheSameOnEveryMachine) {
  for (int i = 0; i < 9; ++i) put("a/" + std::to_string(i) + ".txt", prose("a" + std::to_string(i) + "q", 9));
  std::string names;
  for (const auto& split : make({at("a")}, options(2, 1, 2, 7)).splits) {
    for (const CorpusDocument& d : split) names += std::string(d.text, 0, 4) + " ";
  }
  EXPECT_EQ(names, "a7q6 a8q6 a1q4 a3q4 a0q2 ");
}

TEST_F(CorpusTest, AFileThatTheTokenizerCannotWriteIsDroppedNotTheCorpus) {
  const fs::path data = fs::path(WRING_SOURCE_DIR) / "tests/data/tokenizer/tok_llama/tokenizer.json";
  auto definition = nlohmann::json::parse(read_text_file(data, 1 << 20));
  auto& vocab = definition["model"]["vocab"];
  vocab["unused"] = vocab.at("Ą");  // the character of byte 4
  vocab.erase("Ą");
  put("tokenizer.json", definition.dump());
  const text::Tokenizer tokenizer = text::Tokenizer::from_hf(root_);
  put("a/1.txt", prose("a", 8));
  put("a/2.txt", prose("b", 4) + "\x04" + prose("c", 4));
  CorpusOptions o = options(2, 0, 0);
  o.tokenizer = &tokenizer;
  const Corpus corpus = make({at("a")}, o);
  ASSERT_EQ(corpus.dropped.size(), 1U);
  EXPECT_THAT(corpus.dropped[0].reason, HasSubstr("0x04"));
  EXPECT_EQ(corpus.dropped[0].unit, "files");
  EXPECT_EQ(corpus.splits[0].size(), 2U);
}

TEST_F(CorpusTest, RepetitionsAreDroppedAndCounted) {
  put("a/1.txt", prose("a", 8));
  put("a/2.txt", prose("a", 8));                  // the same file
  put("a/3.txt", prose("a", 2) + prose("b", 6));  // one document of it is in 1.txt
  put("a/4.txt", prose("c", 8));
  put("a/5.txt", prose("d", 1));  // too short
  put("a/6.txt", std::string("x\0y", 3));
  put("a/7.txt", "caf\xE9\n");
  put("a/8.html", "<html><head><title>t</title></head><body><p>" + prose("e", 4) + "</p></body></html>");
  put("a/9.bin", "not a text name");
  CorpusOptions o = options(7, 0, 4);
  const Corpus corpus = make({at("a")}, o);
  std::map<std::string, std::int64_t> dropped;
  for (const Dropped& d : corpus.dropped) dropped[d.unit + ": " + d.reason] = d.count;
  EXPECT_EQ(dropped["files: repeats another file"], 1);
  EXPECT_EQ(dropped["documents: repeats another document"], 1);
  EXPECT_EQ(dropped["files: shorter than a document"], 1);
  EXPECT_EQ(dropped["files: binary file"], 1);
  EXPECT_EQ(dropped["files: not UTF-8"], 1);
  EXPECT_EQ(corpus.files.size(), 8U);
  for (const auto& split : corpus.splits) {
    for (const CorpusDocument& d : split) EXPECT_EQ(d.text.find('<'), std::string::npos);
  }
}

TEST_F(CorpusTest, LineEndsAndByteOrderMarksGo) {
  std::string text = prose("a", 4);
  std::string dos = "\xEF\xBB\xBF";
  for (const char c : text) dos += c == '\n' ? std::string("\r\n") : std::string(1, c);
  put("dos.txt", dos);
  const Corpus corpus = make({at("dos.txt")}, options(0, 0, 1));
  EXPECT_TRUE(corpus.splits[2][0].text.starts_with("a"));
  EXPECT_EQ(corpus.splits[2][0].text.find('\r'), std::string::npos);
}

TEST_F(CorpusTest, AShortageNamesWhatEachDomainGave) {
  put("a/1.txt", prose("a", 8));
  put("b/1.txt", prose("b", 40));
  EXPECT_THAT(error({at("a"), at("b")}, options(8, 0, 8), ErrorCode::kBadInput),
              AllOf(HasSubstr("a gave 4 of 8"), HasSubstr("b gave 8 of 8"), HasSubstr("100 tokens")));
}

TEST_F(CorpusTest, BadInputIsNamed) {
  put("empty.txt", "");
  put("nul.txt", std::string("ab\0", 3));
  put("latin.txt", "caf\xE9 noir\n");
  put("folder/x.bin", "x");
  const CorpusOptions o = options(1, 0, 0);
  EXPECT_THAT(error({at("empty.txt")}, o, ErrorCode::kBadInput),
              AllOf(HasSubstr("empty"), HasSubstr("empty.txt")));
  EXPECT_THAT(error({at("nul.txt")}, o, ErrorCode::kBadInput), HasSubstr("NUL byte at offset 2"));
  EXPECT_THAT(error({at("latin.txt")}, o, ErrorCode::kBadInput), HasSubstr("0xE9 at offset 3"));
  EXPECT_THAT(error({at("folder")}, o, ErrorCode::kBadInput), HasSubstr("no text file in the folder"));
  EXPECT_THAT(error({at("missing.txt")}, o, ErrorCode::kBadInput), HasSubstr("missing.txt"));
  EXPECT_THAT(error({}, o, ErrorCode::kUsage), HasSubstr("no text file"));
  EXPECT_THAT(error({at("empty.txt")}, options(0, 0, 0), ErrorCode::kUsage), HasSubstr("--documents"));
  CorpusOptions tiny = o;
  tiny.tokens = 1;
  EXPECT_THAT(error({at("empty.txt")}, tiny, ErrorCode::kUsage), HasSubstr("--tokens"));
}

TEST_F(CorpusTest, InputNames) {
  put("books/en.txt", "x");
  EXPECT_EQ(parse_corpus_input(at("books")).domain, "books");
  EXPECT_EQ(parse_corpus_input(at("books/")).domain, "books");
  EXPECT_EQ(parse_corpus_input(at("books/en.txt")).domain, "en");
  EXPECT_EQ(parse_corpus_input("ko=" + at("books")).domain, "ko");
  EXPECT_EQ(parse_corpus_input("ko=" + at("books")).path, at("books"));
  EXPECT_THROW(parse_corpus_input("k o=" + at("books")), Error);
  EXPECT_THROW(parse_corpus_input("=" + at("books")), Error);
}

TEST_F(CorpusTest, WhatIsWrittenCanBeCheckedByItsManifest) {
  for (int i = 0; i < 6; ++i)
    put("a/" + std::to_string(i) + ".txt", prose("한a" + std::to_string(i) + "q", 9));
  const Corpus corpus = make({at("a")}, options(2, 0, 3, 5));
  write_corpus(corpus, root_ / "out");
  EXPECT_FALSE(fs::exists(root_ / "out/validation.jsonl"));
  const auto manifest = nlohmann::json::parse(read_text_file(root_ / "out/manifest.json", 1 << 20));
  EXPECT_EQ(manifest["seed"], 5);
  EXPECT_EQ(manifest["counts"]["final"]["a"], 3);
  EXPECT_TRUE(manifest["tokenizer"].is_null());
  std::map<std::string, std::string> hash_of;
  for (const auto& d : manifest["documents"]) hash_of[d["id"]] = d["sha256"];
  std::size_t lines = 0;
  for (const std::string name : {"calibration.jsonl", "final.jsonl"}) {
    EXPECT_EQ(manifest["sha256"][name], sha256_hex(read_text_file(root_ / "out" / name, 1 << 20)));
    std::ifstream in(root_ / "out" / name);
    for (std::string line; std::getline(in, line); ++lines) {
      const auto document = nlohmann::json::parse(line);
      EXPECT_EQ(document["domain"], "a");
      EXPECT_EQ(hash_of.at(document["id"]), sha256_hex(document["text"].get<std::string>()));
    }
  }
  EXPECT_EQ(lines, 5U);
  EXPECT_EQ(manifest["files"].size(), 6U);
  EXPECT_THROW(write_corpus(corpus, root_ / "out"), Error);
}

}  // namespace
}  // namespace wring::lab
