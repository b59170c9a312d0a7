// What a corpus looks like on disk: three JSONL files, and a manifest by which anyone can check them.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/hash.h"
#include "lab/corpus.h"

namespace wring::lab {
namespace {

using nlohmann::ordered_json;

std::string as_lines(const std::vector<CorpusDocument>& documents) {
  std::string lines;
  for (const CorpusDocument& d : documents) {
    lines += ordered_json({{"id", d.id}, {"domain", d.domain}, {"text", d.text}}).dump() + "\n";
  }
  return lines;
}

ordered_json describe_files(const Corpus& corpus) {
  ordered_json files = ordered_json::array();
  for (const CorpusFile& f : corpus.files) {
    ordered_json file = {{"domain", f.domain},
                         {"name", f.name},
                         {"bytes", f.bytes},
                         {"sha256", f.sha256},
                         {"documents", f.documents}};
    if (!f.dropped.empty()) file["dropped"] = f.dropped;
    files.push_back(std::move(file));
  }
  return files;
}

ordered_json describe_documents(const Corpus& corpus) {
  ordered_json documents = ordered_json::array();
  for (std::size_t s = 0; s < corpus.splits.size(); ++s) {
    for (const CorpusDocument& d : corpus.splits[s]) {
      documents.push_back({{"id", d.id},
                           {"split", kSplits[s]},
                           {"domain", d.domain},
                           {"sha256", d.sha256},
                           {"bytes", d.text.size()},
                           {"tokens", d.tokens},
                           {"file", corpus.files[d.file].name}});
    }
  }
  return documents;
}

}  // namespace

ordered_json corpus_counts(const Corpus& corpus) {
  ordered_json counts;
  for (std::size_t s = 0; s < corpus.splits.size(); ++s) {
    std::map<std::string, std::int64_t> domains;
    for (const CorpusDocument& d : corpus.splits[s]) ++domains[d.domain];
    counts[kSplits[s]] = domains;
  }
  return counts;
}

ordered_json corpus_dropped(const Corpus& corpus) {
  ordered_json dropped = ordered_json::array();
  for (const Dropped& d : corpus.dropped) {
    dropped.push_back({{"reason", d.reason}, {"unit", d.unit}, {"count", d.count}});
  }
  return dropped;
}

void write_corpus(const Corpus& corpus, const std::filesystem::path& folder) {
  AtomicDirectory directory(folder);
  ordered_json hashes;
  for (std::size_t s = 0; s < corpus.splits.size(); ++s) {
    if (corpus.splits[s].empty()) continue;
    const std::string name = fmt::format("{}.jsonl", kSplits[s]);
    const std::string lines = as_lines(corpus.splits[s]);
    write_file_atomically(directory.path() / name, lines);
    hashes[name] = sha256_hex(lines);
  }
  ordered_json manifest;
  manifest["format"] = "wring corpus 1";
  manifest["seed"] = corpus.options.seed;
  manifest["tokens"] = corpus.options.tokens;
  manifest["tokenizer"] =
      corpus.options.tokenizer ? ordered_json(corpus.options.tokenizer->hash()) : ordered_json();
  manifest["sha256"] = std::move(hashes);
  manifest["counts"] = corpus_counts(corpus);
  manifest["dropped"] = corpus_dropped(corpus);
  manifest["domains_with_shared_files"] = corpus.domains_with_shared_files;
  manifest["documents"] = describe_documents(corpus);
  manifest["files"] = describe_files(corpus);
  write_file_atomically(directory.path() / "manifest.json", manifest.dump(1) + "\n");
  directory.commit();
}

}  // namespace wring::lab
