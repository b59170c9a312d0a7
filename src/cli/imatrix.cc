// wring imatrix: calibration texts in, an importance matrix in llama.cpp's form out.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/calibrate.h"
#include "cli/command.h"
#include "cli/open.h"

namespace wring::cli {
namespace {

struct ImatrixOptions {
  Common common;
  std::string model, out;
  std::vector<std::string> texts;
  std::int64_t context = 0;
};

void run(const ImatrixOptions& o) {
  std::vector<std::string> inputs = o.texts;
  inputs.push_back(o.model);
  refuse_onto_input(o.out, inputs);
  const engine::ModelFiles files = open_model_files(o.model);
  const formats::Imatrix imatrix = calibrate(files, o.texts, o.context, o.common.threads);
  formats::write_imatrix(imatrix, o.out);
  const auto tokens =
      static_cast<std::int64_t>(imatrix.entries.empty() ? 0 : imatrix.entries.begin()->second.counts.front());
  if (o.common.json) {
    print_json(nlohmann::ordered_json{{"out", o.out},
                                      {"matrices", imatrix.entries.size()},
                                      {"documents", imatrix.chunk_count},
                                      {"tokens", tokens}});
  } else {
    print(fmt::format("importance of {} matrices from {} documents ({} tokens) written to {}\n",
                      imatrix.entries.size(), imatrix.chunk_count, tokens, o.out));
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
