// wring logits: float32 logits, and the residual stream, as a safetensors file that others can compare.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/command.h"
#include "cli/open.h"
#include "engine/engine.h"
#include "formats/safetensors.h"
#include "model/model.h"

namespace wring::cli {
namespace {

struct LogitsOptions {
  Common common;
  std::string model, ids, out;
  bool hidden = false;
};

/// Keeps the residual stream after the embedding and after each block: (layers + 1, T, hidden_size).
class HiddenStates final : public engine::ForwardObserver {
 public:
  bool wants_inputs() const override { return false; }
  void on_residual(int, const engine::Rows& residual) override {
    for (std::int64_t i = 0; i < residual.count; ++i) {
      const auto row = residual.row(i);
      values.insert(values.end(), row.begin(), row.end());
    }
  }
  std::vector<float> values;
};

void run(const LogitsOptions& o) {
  refuse_onto_input(o.out, {o.model});
  const model::Model m = open_model(o.model);
  const std::vector<std::int32_t> ids = parse_ids(o.ids);
  engine::Engine engine(m, {.threads = o.common.threads});
  const engine::SequenceId sequence = engine.add_sequence(static_cast<std::int64_t>(ids.size()));
  HiddenStates hidden;
  // The observer may not fail inside a step: all that it will hold is made room for now.
  if (o.hidden)
    hidden.values.reserve((m.spec().layers.size() + 1) * ids.size() *
                          static_cast<std::size_t>(m.spec().hidden_size));
  const engine::StepResult result =
      engine.step({{{sequence, 0, ids, engine::Logits::kAll}}}, o.hidden ? &hidden : nullptr);

  for (std::int64_t i = 0; i < result.logits.count; ++i) {
    if (std::ranges::all_of(result.logits.row(i), [](float x) { return std::isfinite(x); })) continue;
    throw Error(ErrorCode::kBadInput, fmt::format("the logits of position {} are not finite numbers", i),
                o.model, "its weights hold NaN or infinity, or overflow");
  }
  formats::SafetensorsWriter writer(o.out);
  const std::uint64_t t = ids.size(), vocab = static_cast<std::uint64_t>(m.spec().vocab_size);
  if (o.hidden) {
    const std::uint64_t shape[] = {m.spec().layers.size() + 1, t,
                                   static_cast<std::uint64_t>(m.spec().hidden_size)};
    writer.declare("hidden", formats::QuantType::kF32, shape);
  }
  const std::uint64_t shape[] = {t, vocab};
  writer.declare("logits", formats::QuantType::kF32, shape);
  writer.set_metadata({{"compute", "exact"}});
  writer.begin_data();
  if (o.hidden) writer.write(std::as_bytes(std::span(hidden.values)));
  for (std::int64_t i = 0; i < result.logits.count; ++i) writer.write(std::as_bytes(result.logits.row(i)));
  writer.commit();
  if (o.common.json) {
    print_json(
        nlohmann::ordered_json{{"out", o.out}, {"tokens", t}, {"vocab_size", vocab}, {"compute", "exact"}});
  } else {
    print(fmt::format("{} × {} logits written to {}\n", t, vocab, o.out));
  }
}

}  // namespace

void add_logits(CLI::App& app) {
  auto o = std::make_shared<LogitsOptions>();
  CLI::App* c =
      add_command(app, "logits", "float32 logits of given token ids, in exact mode",
                  "wring logits sample/hf --ids 1,2,3 -o out.safetensors", o->common, [o] { run(*o); });
  c->add_option("MODEL", o->model, "Hugging Face folder or .gguf file")->required();
  c->add_option("--ids", o->ids, "token ids, as 1,2,3")->required();
  c->add_option("-o,--output", o->out, "safetensors file to write")->required();
  c->add_flag("--hidden", o->hidden, "write the residual stream too: (layers + 1, T, hidden_size)");
}

}  // namespace wring::cli
