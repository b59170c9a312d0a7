// wring imatrix: calibration texts in, an importance matrix in llama.cpp's form out.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/calibrate.h"
#include "cli/command.h"
#include "cli/open.h"
#include "quantize/expert_coverage.h"

namespace wring::cli {
namespace {

constexpr std::size_t kShownExperts = 64;  // --json lists all

struct ImatrixOptions {
  Common common;
  std::string model, out;
  std::vector<std::string> texts;
  std::int64_t context = 0;
};

nlohmann::ordered_json coverage_json(const quantize::ExpertCoverage& coverage) {
  nlohmann::ordered_json few = nlohmann::ordered_json::array();
  for (const quantize::SparseExpert& e : coverage.few)
    few.push_back({{"layer", e.layer}, {"expert", e.expert}, {"tokens", e.tokens}});
  return {{"count", coverage.experts},
          {"least_tokens", coverage.least},
          {"median_tokens", coverage.median},
          {"few_tokens", few}};
}

void run(const ImatrixOptions& o) {
  std::vector<std::string> inputs = o.texts;
  inputs.push_back(o.model);
  refuse_onto_input(o.out, inputs);
  const engine::ModelFiles files = open_model_files(o.model);
  const formats::Imatrix imatrix = calibrate(files, o.texts, o.context, o.common.threads);
  formats::write_imatrix(imatrix, o.out);
  float tokens = 0;  // those that any map saw: experts see fewer
  for (const auto& [name, entry] : imatrix.entries)
    tokens = std::max(tokens, *std::ranges::max_element(entry.counts));
  const quantize::ExpertCoverage coverage = quantize::expert_coverage(imatrix);
  if (o.common.json) {
    nlohmann::ordered_json out{{"out", o.out},
                               {"matrices", imatrix.entries.size()},
                               {"documents", imatrix.chunk_count},
                               {"tokens", static_cast<std::int64_t>(tokens)}};
    if (coverage.experts > 0) out["experts"] = coverage_json(coverage);
    print_json(out);
    return;
  }
  print(fmt::format("importance of {} matrices from {} documents ({:.0f} tokens) written to {}\n",
                    imatrix.entries.size(), imatrix.chunk_count, tokens, o.out));
  if (coverage.experts > 0) {
    print(fmt::format("tokens an expert: at least {}, median {:.1f}\n", coverage.least, coverage.median));
  }
  if (!coverage.few.empty()) {
    print(few_tokens_text(coverage, kShownExperts) + "\n");
  }
}

}  // namespace

void add_imatrix(CLI::App& app) {
  auto o = std::make_shared<ImatrixOptions>();
  CLI::App* c = add_command(
      app, "imatrix", "importance matrix from calibration texts, in llama.cpp's GGUF form",
      "wring imatrix sample/hf --text calibration.jsonl -o imatrix.gguf", o->common, [o] { run(*o); });
  c->add_option("MODEL", o->model, "Hugging Face folder or .gguf file")->required();
  c->add_option("--text", o->texts, "calibration texts: .txt or JSONL")->required();
  c->add_option("-o,--output", o->out, "GGUF file to write")->required();
  c->add_option("--context", o->context,
                "tokens of a document (default: 1024, or the model's context if that is less)")
      ->check(CLI::Range(2, 1 << 24));
}

}  // namespace wring::cli
