// Which documents of which files go into which split.
#include "lab/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "lab/corpus_files.h"
#include "lab/document_cutter.h"
#include "lab/near_duplicates.h"

namespace wring::lab {
namespace {

namespace fs = std::filesystem;
using Quotas = std::array<std::int64_t, 3>;

constexpr std::int64_t kMostDocuments = 1'000'000;
constexpr std::int64_t kMostTokens = 1'000'000;

// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): one well-mixed number for (seed, hash), equal on
// every machine.
std::uint64_t mix(std::uint64_t seed, const std::string& sha256) {
  std::uint64_t z = 0;
  std::from_chars(sha256.data(), sha256.data() + 16, z, 16);
  z += (seed + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

struct Candidate {
  std::string text;
  std::string sha256;
  std::size_t file;
  std::int64_t tokens;
};

// The candidates of one file, in the order in which they would be taken.
using FileCandidates = std::vector<Candidate>;

std::int64_t sum(const Quotas& q) {
  return std::accumulate(q.begin(), q.end(), std::int64_t{0});
}

// The split furthest from what it needs, by share; -1 if none needs anything.
int neediest(const Quotas& need, const Quotas& quota) {
  int best = -1;
  for (int s = 0; s < 3; ++s) {
    const auto i = static_cast<std::size_t>(s);
    if (need[i] <= 0) continue;
    const auto b = static_cast<std::size_t>(best);
    // need/quota compared as fractions, so that no rounding decides.
    if (best < 0 || need[i] * quota[b] > need[b] * quota[i]) best = s;
  }
  return best;
}

// Whole files into splits, at most `cap` documents of each; the splits' documents, or nothing where that
// fails.
bool assign_files(std::vector<FileCandidates>& files, const Quotas& quota, std::int64_t cap,
                  std::array<std::vector<Candidate*>, 3>& chosen) {
  chosen = {};
  Quotas need = quota;
  for (FileCandidates& file : files) {
    const int split = neediest(need, quota);
    if (split < 0) break;
    const auto s = static_cast<std::size_t>(split);
    const std::int64_t take = std::min({cap, need[s], static_cast<std::int64_t>(file.size())});
    for (std::int64_t i = 0; i < take; ++i) chosen[s].push_back(&file[static_cast<std::size_t>(i)]);
    need[s] -= take;
  }
  return sum(need) == 0;
}

// Documents into splits without regard to files: the last resort where a domain has too few of them.
void assign_documents(std::vector<FileCandidates>& files, const Quotas& quota,
                      std::array<std::vector<Candidate*>, 3>& chosen) {
  chosen = {};
  Quotas need = quota;
  for (FileCandidates& file : files) {
    for (Candidate& c : file) {
      const int split = neediest(need, quota);
      if (split < 0) return;
      chosen[static_cast<std::size_t>(split)].push_back(&c);
      --need[static_cast<std::size_t>(split)];
    }
  }
}

class Maker {
 public:
  Maker(const CorpusOptions& options, ProgressSink& progress) : options_(options), progress_(progress) {}

  Corpus run(std::span<const CorpusInput> inputs) {
    found_ = find_files(inputs, progress_);
    std::map<std::string, std::vector<std::size_t>> domains;
    for (std::size_t i = 0; i < found_.size(); ++i) {
      if (found_[i].record.dropped.empty()) {
        domains[found_[i].record.domain].push_back(i);
      } else {
        domains[found_[i].record.domain];
        count_dropped(found_[i].record.dropped, "files", 1);
      }
    }
    std::size_t number = 0;
    std::vector<std::string> short_domains;
    bool is_short = false;
    for (auto& [domain, files] : domains) {
      const Quotas quota = quotas(number++, domains.size());
      const std::int64_t got = take_domain(domain, files, quota);
      is_short |= got < sum(quota);
      short_domains.push_back(fmt::format("{} gave {} of {}", domain, std::min(got, sum(quota)), sum(quota)));
    }
    if (is_short) {
      throw Error(
          ErrorCode::kBadInput,
          fmt::format("too few documents of {} tokens: {}", options_.tokens, fmt::join(short_domains, ", ")),
          "corpus", "give more text, or ask for fewer with --documents or --tokens");
    }
    return finish();
  }

 private:
  Quotas quotas(std::size_t domain, std::size_t domains) const {
    Quotas q{};
    for (std::size_t s = 0; s < 3; ++s) {
      const auto n = static_cast<std::int64_t>(domains);
      q[s] =
          options_.documents[s] / n + (static_cast<std::int64_t>(domain) < options_.documents[s] % n ? 1 : 0);
    }
    return q;
  }

  void count_dropped(const std::string& reason, const std::string& unit, std::int64_t n) {
    dropped_[{reason, unit}] += n;
  }

  // Reads files until there is one for each document, or none is left. Returns the documents found.
  std::int64_t take_domain(const std::string& domain, std::vector<std::size_t>& files, const Quotas& quota) {
    std::sort(files.begin(), files.end(), [this](std::size_t a, std::size_t b) {
      return mix(options_.seed, found_[a].record.sha256) < mix(options_.seed, found_[b].record.sha256);
    });
    std::vector<FileCandidates> usable;
    std::int64_t documents = 0;
    for (const std::size_t f : files) {
      if (static_cast<std::int64_t>(usable.size()) >= sum(quota)) break;
      progress_.throw_if_cancelled();
      progress_.update("cutting " + domain, usable.size(), static_cast<std::uint64_t>(sum(quota)), "files");
      FileCandidates candidates = cut_file(f);
      documents += static_cast<std::int64_t>(candidates.size());
      if (!candidates.empty()) usable.push_back(std::move(candidates));
    }
    if (documents < sum(quota)) return documents;
    choose(domain, usable, quota);
    return documents;
  }

  FileCandidates cut_file(std::size_t f) {
    FoundFile& file = found_[f];
    std::uint64_t cut_bytes = 0;
    const std::string text = read_corpus_text(file, cut_bytes);
    if (!file.record.dropped.empty()) {
      count_dropped(file.record.dropped, "files", 1);
      return {};
    }
    if (cut_bytes > 0) count_dropped("longer than 64 MiB: the rest was left out", "files", 1);
    CutText cut;
    try {
      cut = cut_documents(text, options_.tokens, counter());
      if (cut.documents.empty()) file.record.dropped = "shorter than a document";
    } catch (const Error& e) {
      if (e.code() != ErrorCode::kBadInput) throw;
      file.record.dropped = e.message();  // a byte that the model's vocabulary lacks
    }
    if (!file.record.dropped.empty()) count_dropped(file.record.dropped, "files", 1);
    FileCandidates candidates;
    for (const std::string_view document : cut.documents) {
      Candidate c{std::string(document), sha256_hex(document), f, 0};
      if (!exact_.insert(c.sha256).second) {
        count_dropped("repeats another document", "documents", 1);
      } else if (near_.keep_unless_repeated(document)) {
        count_dropped("nearly repeats another document", "documents", 1);
      } else {
        candidates.push_back(std::move(c));
      }
    }
    std::sort(candidates.begin(), candidates.end(), [this](const Candidate& a, const Candidate& b) {
      return mix(options_.seed, a.sha256) < mix(options_.seed, b.sha256);
    });
    return candidates;
  }

  TokenCounter counter() const {
    if (options_.tokenizer == nullptr) return estimated_tokens;
    return [tokenizer = options_.tokenizer](std::string_view s) {
      return static_cast<std::int64_t>(tokenizer->encode(s, text::Specials::kPlain).size());
    };
  }

  void choose(const std::string& domain, std::vector<FileCandidates>& usable, const Quotas& quota) {
    std::size_t most = 1;
    for (const FileCandidates& file : usable) most = std::max(most, file.size());
    std::array<std::vector<Candidate*>, 3> chosen;
    bool done = false;
    for (std::size_t cap = 1; !done; cap = std::min(2 * cap, most)) {
      done = assign_files(usable, quota, static_cast<std::int64_t>(cap), chosen);
      if (cap == most) break;
    }
    if (!done) {
      assign_documents(usable, quota, chosen);
      shared_.push_back(domain);
    }
    std::int64_t number = 0;
    const TokenCounter count = counter();
    for (std::size_t s = 0; s < 3; ++s) {
      auto& documents = by_domain_[s].emplace_back();
      for (Candidate* c : chosen[s]) {
        c->tokens = count(c->text);
        ++found_[c->file].record.documents;
        documents.push_back({fmt::format("{}-{:04}", domain, ++number), domain, std::move(c->text),
                             std::move(c->sha256), c->file, c->tokens});
      }
    }
  }

  Corpus finish() {
    Corpus corpus;
    corpus.options = options_;
    for (FoundFile& f : found_) corpus.files.push_back(std::move(f.record));
    for (const auto& [key, n] : dropped_) corpus.dropped.push_back({key.first, key.second, n});
    corpus.domains_with_shared_files = shared_;
    for (std::size_t s = 0; s < 3; ++s) {
      std::size_t longest = 0;
      for (const auto& documents : by_domain_[s]) longest = std::max(longest, documents.size());
      for (std::size_t i = 0; i < longest; ++i) {
        for (auto& documents : by_domain_[s]) {
          if (i < documents.size()) corpus.splits[s].push_back(std::move(documents[i]));
        }
      }
    }
    return corpus;
  }

  const CorpusOptions& options_;
  ProgressSink& progress_;
  std::vector<FoundFile> found_;
  std::map<std::pair<std::string, std::string>, std::int64_t> dropped_;
  std::set<std::string> exact_;
  NearDuplicates near_;
  std::array<std::vector<std::vector<CorpusDocument>>, 3> by_domain_;
  std::vector<std::string> shared_;
};

}  // namespace

CorpusInput parse_corpus_input(const std::string& text) {
  std::error_code ignored;
  const std::size_t equals = text.find('=');
  const bool named = equals != std::string::npos && text.find('/') > equals && !fs::exists(text, ignored);
  CorpusInput input;
  input.path = named ? text.substr(equals + 1) : text;
  if (input.path.empty())
    throw Error(ErrorCode::kUsage, "a text's path is empty", "", "name a file or folder");
  fs::path clean = fs::absolute(input.path).lexically_normal();
  if (!clean.has_filename()) clean = clean.parent_path();
  const bool folder = fs::is_directory(input.path, ignored);
  input.domain = named ? text.substr(0, equals) : (folder ? clean.filename() : clean.stem()).string();
  const auto allowed = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  };
  if (input.domain.empty() || !std::all_of(input.domain.begin(), input.domain.end(), allowed)) {
    throw Error(
        ErrorCode::kUsage,
        fmt::format("domain name \"{}\" may hold letters, digits, '.', '-' and '_' only", input.domain), text,
        "name the domain: NAME=PATH");
  }
  return input;
}

Corpus make_corpus(std::span<const CorpusInput> inputs, const CorpusOptions& options,
                   ProgressSink& progress) {
  if (inputs.empty()) throw Error(ErrorCode::kUsage, "no text file was given", "corpus");
  for (const std::int64_t n : options.documents) {
    if (n < 0 || n > kMostDocuments) {
      throw Error(ErrorCode::kUsage, fmt::format("{} documents are outside 0 to {}", n, kMostDocuments),
                  "--documents");
    }
  }
  if (sum(options.documents) == 0) throw Error(ErrorCode::kUsage, "no document is asked for", "--documents");
  if (options.tokens < 2 || options.tokens > kMostTokens) {
    throw Error(ErrorCode::kUsage, fmt::format("{} tokens are outside 2 to {}", options.tokens, kMostTokens),
                "--tokens");
  }
  return Maker(options, progress).run(inputs);
}

}  // namespace wring::lab
