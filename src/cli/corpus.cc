// wring corpus: from the files a user has to disjoint texts for calibration, validation and the final
// measurement.
#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/open.h"
#include "engine/model_files.h"
#include "lab/corpus.h"

namespace wring::cli {
namespace {

using nlohmann::ordered_json;

struct CorpusOptions {
  Common common;
  std::vector<std::string> files;
  std::string out, model;
  std::string documents = "128/32/128";
  std::int64_t tokens = 1024;
  std::uint64_t seed = 0;
};

// "128/32/128" → calibration, validation, final.
std::array<std::int64_t, 3> parse_documents(const std::string& text) {
  std::array<std::int64_t, 3> counts{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto [next, fault] = std::from_chars(at, end, counts[i]);
    const bool ends_well = i + 1 < counts.size() ? next != end && *next == '/' : next == end;
    if (fault != std::errc() || !ends_well) {
      throw Error(ErrorCode::kUsage, fmt::format("'{}' is not calibration/validation/final", text),
                  "--documents", "give three counts, as 128/32/128");
    }
    at = next + 1;
  }
  return counts;
}

std::string describe(const lab::Corpus& corpus, const std::string& out) {
  std::string text;
  for (std::size_t s = 0; s < corpus.splits.size(); ++s) {
    std::map<std::string, std::int64_t> domains;
    for (const lab::CorpusDocument& d : corpus.splits[s]) ++domains[d.domain];
    std::string parts;
    for (const auto& [domain, n] : domains)
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", domain, n);
    text += fmt::format("{:12} {:4} documents ({})\n", lab::kSplits[s], corpus.splits[s].size(), parts);
  }
  for (const lab::Dropped& d : corpus.dropped) {
    text += fmt::format("left out     {:4} {}: {}\n", d.count, d.unit, d.reason);
  }
  return text + fmt::format("written to {}\n", out);
}

void run(const CorpusOptions& o) {
  std::vector<lab::CorpusInput> inputs;
  for (const std::string& f : o.files) inputs.push_back(lab::parse_corpus_input(f));
  lab::CorpusOptions options;
  options.documents = parse_documents(o.documents);
  options.tokens = o.tokens;
  options.seed = o.seed;
  std::optional<engine::ModelFiles> model;
  if (!o.model.empty()) {
    model = open_model_files(o.model);
    options.tokenizer = &model->require_tokenizer();
  }
  { const AtomicDirectory refused_before_the_work(o.out); }
  const lab::Corpus corpus = lab::make_corpus(inputs, options, terminal_progress());
  lab::write_corpus(corpus, o.out);
  for (const std::string& domain : corpus.domains_with_shared_files) {
    warn(fmt::format(
        "{} has too few files to keep the splits' files apart: their documents differ, but some come "
        "from the same file",
        domain));
  }
  if (o.common.json) {
    ordered_json out = {{"dir", o.out},
                        {"counts", lab::corpus_counts(corpus)},
                        {"dropped", lab::corpus_dropped(corpus)},
                        {"domains_with_shared_files", corpus.domains_with_shared_files},
                        {"seed", o.seed},
                        {"tokens", o.tokens}};
    out["tokenizer"] = options.tokenizer ? ordered_json(options.tokenizer->hash()) : ordered_json();
    print_json(out);
  } else {
    print(describe(corpus, o.out));
  }
}

}  // namespace

void add_corpus(CLI::App& app) {
  auto o = std::make_shared<CorpusOptions>();
  CLI::App* c =
      add_command(app, "corpus", "cut files into disjoint calibration, validation and final documents",
                  "wring corpus code=/usr/lib/python3.11 book.txt -o text --model sample/hf", o->common,
                  [o] { run(*o); });
  c->add_option(
       "FILE", o->files,
       "[NAME=]PATH of a .txt, .md, .rst, .py or .html file, or of a folder of them; NAME is the domain "
       "(default: the folder's name, or the file's without extension)")
      ->required();
  c->add_option("-o,--output", o->out, "folder to write, which must not exist or be empty")->required();
  c->add_option("--documents", o->documents, "calibration/validation/final counts, all domains together")
      ->capture_default_str();
  c->add_option("--tokens", o->tokens, "tokens that a document holds at least")->capture_default_str();
  c->add_option("--model", o->model, "whose tokenizer counts; without one, four bytes are a token");
  c->add_option("--seed", o->seed, "which files and documents are drawn")->capture_default_str();
}

}  // namespace wring::cli
