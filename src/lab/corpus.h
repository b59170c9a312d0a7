// From the files a user has to the texts a study is made with: a calibration, a validation and a final set of
// documents that share no text, each balanced over the domains, the same on every machine for the same files
// and seed. What was left out, and why, is counted and written beside them.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "text/tokenizer.h"

namespace wring::lab {

inline constexpr std::array<const char*, 3> kSplits = {"calibration", "validation", "final"};

struct CorpusInput {
  std::string domain;
  std::filesystem::path path;  // a file, or a folder that is walked
};

/// "ko=help/ko" gives domain ko; a path alone is named after the folder, or the file without its extension.
/// Errors: kUsage for a name with other characters than letters, digits, '.', '-' and '_'.
CorpusInput parse_corpus_input(const std::string& text);

struct CorpusOptions {
  std::array<std::int64_t, 3> documents = {128, 32, 128};  // of each split, all domains together
  std::int64_t tokens = 1024;                              // that each document holds at least
  const text::Tokenizer* tokenizer = nullptr;              // null: four bytes count as a token
  std::uint64_t seed = 0;
};

struct CorpusFile {
  std::string domain;
  std::string name;  // path below the input, with '/'
  std::uint64_t bytes = 0;
  std::string sha256;
  std::int64_t documents = 0;  // of it in the corpus
  std::string dropped;         // why nothing of it was used; empty if it was, or was not needed
};

struct CorpusDocument {
  std::string id;  // "ko-0001", unique over the splits
  std::string domain;
  std::string text;
  std::string sha256;
  std::size_t file = 0;     // index into Corpus::files
  std::int64_t tokens = 0;  // in the whole text, estimated without a tokenizer
};

struct Dropped {
  std::string reason;
  std::string unit;  // "files" or "documents"
  std::int64_t count = 0;
};

struct Corpus {
  CorpusOptions options;
  std::array<std::vector<CorpusDocument>, 3> splits;  // domains in turn, so that a prefix is balanced too
  std::vector<CorpusFile> files;                      // by domain, then name
  std::vector<Dropped> dropped;                       // by reason
  /// Domains with so few files that documents of one file had to go into several splits.
  std::vector<std::string> domains_with_shared_files;
};

/// Reads the inputs and chooses the documents.
///
/// A folder gives its .txt, .md, .rst, .py, .html and .htm files, sorted by path; HTML becomes the text that
/// a reader sees (html_text.h). A byte order mark goes and \r\n becomes \n. Files are taken in an order drawn
/// from the seed and their SHA-256, until there are enough; their documents go into one split only where a
/// domain has enough files, as few from each file as will do. Dropped: files that repeat another, are not
/// UTF-8, hold NUL bytes, or are too short; documents that repeat another, exactly or nearly
/// (near_duplicates.h); what exceeds 64 MiB of a file.
///
/// Errors: kUsage without inputs or for options out of range; kBadInput for a named file that cannot be used,
/// a folder without any text, and a shortage, naming how many documents each domain gave.
Corpus make_corpus(std::span<const CorpusInput> inputs, const CorpusOptions& options, ProgressSink& progress);

/// {"calibration": {"en": 43, …}, …}
nlohmann::ordered_json corpus_counts(const Corpus& corpus);
/// [{"reason","unit","count"}, …]
nlohmann::ordered_json corpus_dropped(const Corpus& corpus);

/// Writes calibration.jsonl, validation.jsonl, final.jsonl (lines {"id","domain","text"}; an empty split has
/// no file) and manifest.json into `folder`, which must not exist or be empty, all or nothing.
void write_corpus(const Corpus& corpus, const std::filesystem::path& folder);

}  // namespace wring::lab
