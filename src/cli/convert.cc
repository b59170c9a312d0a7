// wring convert: the same model in another file form or plain type.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/cpu.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/open.h"
#include "model/model.h"
#include "quantize/gguf_metadata.h"
#include "quantize/hf_config.h"
#include "quantize/plan.h"
#include "quantize/write_gguf.h"
#include "quantize/write_hf.h"

namespace wring::cli {
namespace {

struct ConvertOptions {
  Common common;
  std::string model, out, to, type = "bf16";
};

// Everything else rounds more than a copy may, and is wring quantize's with its plan and its errors.
formats::QuantType plain_type(const std::string& name, bool to_gguf) {
  using formats::QuantType;
  constexpr std::array kPlain = {QuantType::kBF16, QuantType::kF16, QuantType::kF32};
  const std::optional<QuantType> type = formats::quant_type_from_name(name);
  if (type && (std::ranges::find(kPlain, *type) != kPlain.end() || (to_gguf && *type == QuantType::kQ8_0)))
    return *type;
  throw Error(
      ErrorCode::kUsage,
      fmt::format("type {} is not one that convert writes to {}", name, to_gguf ? "GGUF" : "a folder"),
      "--type",
      to_gguf ? "use bf16, f16, f32 or q8_0; wring quantize makes the others"
              : "use bf16, f16 or f32; wring quantize makes quantized .gguf files");
}

void run(const ConvertOptions& o) {
  refuse_onto_input(o.out, {o.model});
  const bool to_gguf = o.to == "gguf" || (o.to.empty() && o.out.ends_with(".gguf"));
  const formats::QuantType type = plain_type(o.type, to_gguf);
  const model::Model m = open_model(o.model);
  ThreadPool pool(threads_or_default(o.common.threads));
  with_context(o.model, [&] {
    if (to_gguf) return quantize::refuse_another_computation(m.config());
    quantize::hf_config(m, type);  // refuses what has none
  });
  const auto form = to_gguf ? quantize::FileForm::kGguf : quantize::FileForm::kHf;
  quantize::QuantPlan plan = quantize::make_convert_plan(m.spec(), type, form, pool.threads());
  quantize::settle_plan(plan, quantize::largest_magnitudes(m, plan, pool, terminal_progress()));
  const quantize::QuantizeReport report =
      to_gguf ? quantize::write_gguf(m, plan, nullptr, o.out, pool, terminal_progress())
              : quantize::write_hf(m, plan, type, o.out, pool, terminal_progress());
  for (const std::string& w : report.warnings) warn(w);
  if (o.common.json) {
    print_json(nlohmann::ordered_json{{"out", o.out},
                                      {"form", to_gguf ? "gguf" : "hf"},
                                      {"type", o.type},
                                      {"bytes", report.file_bytes},
                                      {"seconds", report.seconds},
                                      {"error", report.relative_error},
                                      {"warnings", report.warnings}});
  } else {
    print(fmt::format("written to {}: {} in {:.1f} s, relative error {:.2e}\n", o.out,
                      human_bytes(static_cast<double>(report.file_bytes)), report.seconds,
                      report.relative_error));
  }
}

}  // namespace

void add_convert(CLI::App& app) {
  auto o = std::make_shared<ConvertOptions>();
  CLI::App* c =
      add_command(app, "convert", "the same model in another file form or plain type",
                  "wring convert sample/hf -o sample.gguf --type bf16", o->common, [o] { run(*o); });
  c->add_option("MODEL", o->model, "Hugging Face folder or .gguf file")->required();
  c->add_option("-o,--output", o->out, ".gguf file, or folder to make")->required();
  c->add_option("--to", o->to, "gguf or hf (default: by the output's name)")
      ->check(CLI::IsMember({"gguf", "hf"}));
  c->add_option("--type", o->type, "bf16, f16, f32; for GGUF q8_0 too")->capture_default_str();
}

}  // namespace wring::cli
