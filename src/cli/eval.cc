// wring eval: what a model loses on texts, alone or against a reference. Numbers come from evaluate/.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/cpu.h"
#include "base/error.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/open.h"
#include "engine/model_files.h"
#include "evaluate/documents.h"
#include "evaluate/engine_scorer.h"
#include "evaluate/llama_protocol.h"
#include "evaluate/nll.h"
#include "evaluate/reference.h"
#include "evaluate/summary.h"

namespace wring::cli {
namespace {

using nlohmann::json;

struct EvalOptions {
  Common common;
  engine::ComputeMode compute = engine::ComputeMode::kExact;
  std::string model, against, protocol = "documents", positions = "32";
  std::vector<std::string> texts;
  std::int64_t context = 0;
};

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<evaluate::DocumentResult> run_all(engine::Engine& engine, const evaluate::DocumentRun& base,
                                              const std::string& task) {
  evaluate::DocumentRun run = base;
  for (std::size_t i = 0; i < run.documents.size(); ++i) run.which.push_back(i);
  run.pool = &engine.pool();
  evaluate::EngineScorer scorer(engine);
  std::vector<evaluate::DocumentResult> results;
  evaluate::run_documents(scorer, run, terminal_progress(), task,
                          [&](std::size_t, evaluate::DocumentResult r) { results.push_back(std::move(r)); });
  return results;
}

std::string text_of(const evaluate::EvalSummary& s, const json& out) {
  std::string text =
      fmt::format("{} documents, {} tokens: NLL {:.5f}, perplexity {:.4f}, {:.4f} bits a byte ({} mode)\n",
                  s.documents, s.tokens, s.nll, s.ppl, s.bits_per_byte, out["compute"].get<std::string>());
  if (s.against) {
    const evaluate::Comparison& a = *s.against;
    text += fmt::format("against {}: ΔNLL {:+.5f} [{:+.5f}, {:+.5f}] (95 %), R {:.2f} %\n",
                        out["against"].get<std::string>(), a.delta_nll.mean, a.delta_nll.low,
                        a.delta_nll.high, a.retained);
    if (a.kl) {
      text += fmt::format(
          "KL mean {:.6f} [{:.6f}, {:.6f}], median {:.6f}, p95 {:.5f}, p99 {:.5f}, max {:.5f} at {} "
          "positions; same top token {:.2f} %\n",
          a.kl->mean.mean, a.kl->mean.low, a.kl->mean.high, a.kl->p50, a.kl->p95, a.kl->p99, a.kl->max,
          a.kl->positions, 100 * a.kl->same_top);
    }
    text +=
        fmt::format("documents' ΔNLL: p50 {:+.5f}, p95 {:+.5f}, p99 {:+.5f}, max {:+.5f}\n",
                    a.document_delta.p50, a.document_delta.p95, a.document_delta.p99, a.document_delta.max);
  }
  for (const evaluate::DomainSummary& d : s.domains) {
    text += fmt::format("  {:16} {:4} documents, NLL {:.5f}{}\n", printable(d.domain), d.documents, d.nll,
                        d.delta_nll ? fmt::format(", ΔNLL {:+.5f} [{:+.5f}, {:+.5f}]", d.delta_nll->mean,
                                                  d.delta_nll->low, d.delta_nll->high)
                                    : "");
  }
  return text + fmt::format("{:.0f} tokens/s\n", out["tokens_per_s"].get<double>());
}

void add_conditions(json& out, const EvalOptions& o, const engine::ModelFiles& files, std::int64_t context,
                    double seconds, double tokens) {
  out["model"] = o.model;
  out["compute"] = compute_mode_name(o.compute);
  out["protocol"] = o.protocol;
  out["context"] = context;
  out["isa"] = isa_name(choose_isa());
  out["already_quantized"] = files.model.is_quantized();
  out["seconds"] = seconds;
  out["tokens_per_s"] = seconds > 0 ? tokens / seconds : 0;
}

void llama(const EvalOptions& o, const engine::ModelFiles& files, const evaluate::TextSet& texts,
           std::int64_t context) {
  const auto windows = evaluate::llama_windows(texts, files.require_tokenizer(), context,
                                               files.model.config().max_position_embeddings);
  engine::Engine engine(files.model, {.compute = o.compute, .threads = o.common.threads});
  evaluate::EngineScorer scorer(engine);
  const double start = now_seconds();
  const evaluate::PerplexityResult r = evaluate::llama_perplexity(scorer, windows, terminal_progress());
  json out = {{"nll", r.nll}, {"ppl", r.ppl}, {"tokens", r.tokens}, {"windows", r.windows}};
  add_conditions(out, o, files, context, now_seconds() - start, static_cast<double>(r.windows * context));
  if (o.common.json) {
    print_json(out);
  } else {
    print(fmt::format(
        "{} windows of {} tokens, second halves scored: NLL {:.5f}, perplexity {:.4f} ({} mode, "
        "{:.0f} tokens/s)\n",
        r.windows, context, r.nll, r.ppl, compute_mode_name(o.compute), out["tokens_per_s"].get<double>()));
  }
}

void documents(const EvalOptions& o, const engine::ModelFiles& files, const evaluate::TextSet& texts,
               std::int64_t context) {
  const text::Tokenizer& tokenizer = files.require_tokenizer();
  const std::vector<evaluate::Document> docs =
      evaluate::tokenize(texts, tokenizer, context, files.model.config().max_position_embeddings);
  evaluate::DocumentRun run;
  run.documents = docs;
  run.positions = o.positions == "all" ? evaluate::KlPositions::kAll : evaluate::KlPositions::kThirtyTwo;
  run.tokenizer = &tokenizer;
  std::optional<evaluate::Reference> reference;
  std::vector<evaluate::DocumentResult> reference_results;
  if (!o.against.empty()) {
    const engine::ModelFiles other = open_model_files(o.against);
    const auto other_docs = evaluate::tokenize(texts, other.require_tokenizer(), context,
                                               other.model.config().max_position_embeddings);
    if (evaluate::tokenized_hash(other_docs) != evaluate::tokenized_hash(docs)) {
      throw Error(ErrorCode::kBadInput,
                  "the tokenizers of the two models make different tokens of these documents: they cannot be "
                  "compared",
                  fmt::format("{} and {}", o.model, o.against));
    }
    engine::Engine engine(other.model, {.threads = o.common.threads});
    evaluate::EngineScorer scorer(engine);
    const evaluate::ReferenceKey key = {other.model.path().string(), evaluate::tokenized_hash(docs), "exact",
                                        run.positions};
    reference = evaluate::record_reference(scorer, docs, key, {}, terminal_progress());
    reference_results = evaluate::reference_results(*reference, docs);
    run.reference = &*reference;
  }
  engine::Engine engine(files.model, {.compute = o.compute, .threads = o.common.threads});
  const double start = now_seconds();
  const evaluate::EvalSummary summary =
      evaluate::summarize(run_all(engine, run, "evaluating"), reference_results);
  json out = evaluate::to_json(summary);
  double tokens = 0;
  for (const evaluate::Document& d : docs) tokens += static_cast<double>(d.ids.size());
  add_conditions(out, o, files, context, now_seconds() - start, tokens);
  if (!o.against.empty()) {
    out["against"] = o.against;
    out["against_compute"] = compute_mode_name(engine::ComputeMode::kExact);
  }
  if (o.common.json) {
    print_json(out);
  } else {
    print(text_of(summary, out));
  }
}

void run(const EvalOptions& o) {
  const engine::ModelFiles files = open_model_files(o.model);
  const std::int64_t limit = files.model.config().max_position_embeddings;
  const std::int64_t context =
      o.context > 0 ? o.context : std::min<std::int64_t>(o.protocol == "llama" ? 512 : 1024, limit);
  evaluate::check_context(context, limit);
  const evaluate::TextSet texts =
      evaluate::read_texts(std::vector<std::filesystem::path>(o.texts.begin(), o.texts.end()));
  for (const std::string& note : texts.notes) warn(note);
  if (o.protocol == "llama") {
    if (!o.against.empty())
      throw Error(ErrorCode::kUsage, "--against goes with the documents protocol", "--protocol llama");
    return llama(o, files, texts, context);
  }
  return documents(o, files, texts, context);
}

}  // namespace

void add_eval(CLI::App& app) {
  auto o = std::make_shared<EvalOptions>();
  CLI::App* c = add_command(
      app, "eval", "NLL and perplexity on texts; against a reference also ΔNLL, KL, intervals, tails",
      "wring eval q4_k.gguf --against sample/hf --text final.jsonl", o->common, [o] { run(*o); });
  c->add_option("MODEL", o->model, "Hugging Face folder or .gguf file")->required();
  c->add_option("--text", o->texts, "texts: .txt (one document) or JSONL with {\"id\",\"domain\",\"text\"}")
      ->required();
  c->add_option("--against", o->against, "reference model, always computed in exact mode");
  add_compute(*c, o->compute);
  c->add_option(
       "--context", o->context,
       "tokens of a document (default: 1024, llama protocol 512, or the model's context if that is less)")
      ->check(CLI::Range(2, 1 << 24));
  c->add_option("--protocol", o->protocol,
                "documents, or llama: windows whose second half is scored, as llama-perplexity does")
      ->check(CLI::IsMember({"documents", "llama"}))
      ->capture_default_str();
  c->add_option("--kl-positions", o->positions, "positions a document at which KL is taken: 32 or all")
      ->check(CLI::IsMember({"32", "all"}))
      ->capture_default_str();
}

}  // namespace wring::cli
