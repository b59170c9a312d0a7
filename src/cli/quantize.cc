// wring quantize: the plan first, then the smaller file or folder.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/cpu.h"
#include "base/error.h"
#include "cli/calibrate.h"
#include "cli/command.h"
#include "cli/open.h"
#include "engine/model_files.h"
#include "quantize/block_feedback.h"
#include "quantize/gguf_metadata.h"
#include "quantize/plan.h"
#include "quantize/recipe.h"
#include "quantize/write_coded.h"
#include "quantize/write_gguf.h"

namespace wring::cli {
namespace {

using nlohmann::ordered_json;

struct QuantizeOptions {
  Common common;
  std::string model, recipe, out, imatrix;
  std::vector<std::string> calibration, keep;
  std::int64_t context = 0, group = 0;
  bool deploy = false, strict = false, dry_run = false;
};

/// Whether calibration is for the range of inputs.
bool takes_inputs(const quantize::Recipe& recipe) {
  return recipe.codes && recipe.codes->kind == quantize::CodeKind::kNvfp4;
}

quantize::PlanOptions plan_options(const QuantizeOptions& o, const quantize::Recipe& recipe) {
  quantize::PlanOptions options;
  for (const std::string& k : o.keep) options.keep.push_back(quantize::parse_keep_rule(k));
  options.deploy = o.deploy;
  options.strict = o.strict;
  options.threads = threads_or_default(o.common.threads);
  options.group = o.group;
  options.coded_inputs = takes_inputs(recipe) && !o.calibration.empty();
  return options;
}

struct TypeUse {
  int tensors = 0;
  std::uint64_t bytes = 0;
};

std::map<std::string, TypeUse> types_of(const quantize::QuantPlan& plan) {
  std::map<std::string, TypeUse> types;
  for (const quantize::PlannedTensor& t : plan.tensors) {
    TypeUse& use = types[t.used_name()];
    ++use.tensors;
    use.bytes += t.bytes();
  }
  return types;
}

ordered_json describe(const quantize::QuantPlan& plan) {
  ordered_json out;
  out["recipe"] = plan.recipe;
  out["quantized_matrices"] = plan.matrices();
  out["quantized_weights"] = plan.matrix_weights();
  out["bits_per_weight"] = plan.block_matrix_bits();
  out["file_bits_per_weight"] = plan.file_bits();
  out["payload_bytes"] = plan.payload_bytes();
  out["bytes"] = plan.payload_bytes();
  out["types"] = ordered_json::object();
  for (const auto& [type, use] : types_of(plan))
    out["types"][type] = {{"tensors", use.tensors}, {"bytes", use.bytes}};
  out["tensors"] = ordered_json::array();
  for (const quantize::PlannedTensor& t : plan.tensors) {
    out["tensors"].push_back({{"name", t.name},
                              {"asked", t.asked_name()},
                              {"used", t.used_name()},
                              {"bytes", t.bytes()},
                              {"reason", t.reason}});
  }
  return out;
}

std::string plan_text(const quantize::QuantPlan& plan) {
  std::string text;
  for (const quantize::PlannedTensor& t : plan.tensors) {
    if (t.substituted()) {
      text += fmt::format("  {}: {} instead of {}: {}\n", t.name, t.used_name(), t.asked_name(), t.reason);
    }
  }
  std::string head = fmt::format(
      "{}: {} of tensors, {:.3f} bits a weight in the blocks' matrices, {:.3f} in all\n", plan.recipe,
      human_bytes(static_cast<double>(plan.payload_bytes())), plan.block_matrix_bits(), plan.file_bits());
  for (const auto& [type, use] : types_of(plan)) {
    head += fmt::format("  {:10} {:5} tensors, {}\n", type, use.tensors,
                        human_bytes(static_cast<double>(use.bytes)));
  }
  return head + text;
}

void dry_run(const QuantizeOptions& o, const quantize::QuantPlan& plan) {
  if (o.common.json) {
    ordered_json out = describe(plan);
    out["seconds"] = plan.estimated_seconds();
    out["working_bytes"] = plan.working_bytes();
    out["peak_memory_bytes"] = plan.peak_bytes();
    print_json(out);
  } else {
    print(plan_text(plan) + fmt::format("about {:.0f} s and {} of memory beside the mapped source\n",
                                        plan.estimated_seconds(),
                                        human_bytes(static_cast<double>(plan.working_bytes()))));
  }
}

// A plan needs no weights: a folder with nothing but config.json is enough.
quantize::QuantPlan plan_only(const std::string& path, const quantize::Recipe& recipe,
                              const quantize::PlanOptions& options) {
  if (!std::filesystem::is_directory(path))
    return quantize::make_plan(model::Model::open(path).spec(), recipe, options);
  const model::ModelConfig config = model::read_hf_config(path);
  quantize::QuantPlan plan = quantize::make_plan(model::make_spec(config), recipe, options);
  if (!plan.codes) with_context(path, [&] { quantize::refuse_another_computation(config); });
  return plan;
}

void check_output(const QuantizeOptions& o, const quantize::Recipe& recipe) {
  const bool gguf = o.out.ends_with(".gguf");
  if (!recipe.codes && !gguf) {
    throw Error(ErrorCode::kUsage, "an output file that ends in .gguf is needed",
                o.out.empty() ? "--output" : o.out);
  }
  if (recipe.codes && (gguf || o.out.empty())) {
    throw Error(ErrorCode::kUsage, fmt::format("recipe {} writes a folder", o.recipe),
                o.out.empty() ? "--output" : o.out, "name a folder that does not exist yet");
  }
  std::vector<std::string> inputs = o.calibration;
  inputs.insert(inputs.end(), {o.model, o.imatrix});
  refuse_onto_input(o.out, inputs);
}

void check_calibration(const QuantizeOptions& o, const quantize::Recipe& recipe) {
  if (recipe.feedback && o.calibration.empty()) {
    throw Error(ErrorCode::kUsage, fmt::format("{} needs calibration texts", o.recipe), "--calibration",
                "an importance matrix is not enough for error feedback");
  }
  if (recipe.importance && o.imatrix.empty() && o.calibration.empty()) {
    throw Error(ErrorCode::kUsage, fmt::format("{} needs an importance matrix", o.recipe),
                "--imatrix or --calibration", "give a file made by wring imatrix, or calibration texts");
  }
  if (!o.imatrix.empty() && !o.calibration.empty())
    throw Error(ErrorCode::kUsage, "give either --imatrix or --calibration");
  if (!recipe.importance && !o.imatrix.empty())
    warn(fmt::format("recipe {} takes no importance: --imatrix is not used", o.recipe));
  if (!recipe.importance && !recipe.feedback && !takes_inputs(recipe) && !o.calibration.empty())
    warn(fmt::format("recipe {} takes no importance: --calibration is not used", o.recipe));
}

// Folders without a search are the report's recipe: columns in their order, as GPTQ was published.
quantize::FeedbackOptions feedback_options(const QuantizeOptions& o) {
  quantize::FeedbackOptions options;
  options.search = quantize::parse_recipe(o.recipe).search;
  if (!options.search) options.order = quantize::ColumnOrder::kAsStored;
  return options;
}

quantize::QuantizeReport write(const QuantizeOptions& o, const engine::ModelFiles& files,
                               const quantize::QuantPlan& plan, ThreadPool& pool) {
  if (plan.codes) {
    std::optional<quantize::LargestInputs> inputs;
    if (plan.codes->coded_inputs)
      inputs = calibrate_inputs(files, o.calibration, o.context, o.common.threads);
    if (!plan.feedback)
      return quantize::write_coded(files.model, plan, inputs ? &*inputs : nullptr, o.out, pool,
                                   terminal_progress());
    const auto documents = calibration_documents(files, o.calibration, o.context);
    quantize::BlockFeedback feedback(files.model, plan, documents, feedback_options(o), plan.threads);
    quantize::QuantizeReport report = quantize::write_coded(
        files.model, plan, inputs ? &*inputs : nullptr, o.out, pool, terminal_progress(),
        [&](const quantize::PlannedTensor& planned, std::span<const float>, quantize::CodedScales& scales) {
          quantize::BlockFeedback::Rounded rounded = feedback.take(planned, terminal_progress());
          scales = std::move(rounded.scales);
          return std::move(rounded.codes);
        });
    report.warnings.insert(report.warnings.end(), feedback.warnings().begin(), feedback.warnings().end());
    return report;
  }
  if (plan.feedback) {
    const auto documents = calibration_documents(files, o.calibration, o.context);
    quantize::BlockFeedback feedback(files.model, plan, documents, {}, plan.threads);
    return quantize::write_gguf(files.model, plan, {nullptr, &feedback}, o.out, pool, terminal_progress());
  }
  std::optional<formats::Imatrix> imatrix;
  if (plan.importance) {
    imatrix = o.imatrix.empty() ? calibrate(files, o.calibration, o.context, o.common.threads)
                                : formats::read_imatrix(o.imatrix);
  }
  return quantize::write_gguf(files.model, plan, imatrix ? &*imatrix : nullptr, o.out, pool,
                              terminal_progress());
}

ordered_json describe(const quantize::QuantPlan& plan, const quantize::QuantizeReport& report) {
  ordered_json out = describe(plan);
  out["bytes"] = report.file_bytes;
  out["seconds"] = report.seconds;
  out["error"] = report.relative_error;
  out["warnings"] = report.warnings;
  if (report.weighted_error) out["weighted_error"] = *report.weighted_error;
  for (std::size_t i = 0; i < report.tensors.size(); ++i) {
    out["tensors"][i]["error"] = report.tensors[i].relative_error;
    if (report.tensors[i].weighted_error)
      out["tensors"][i]["weighted_error"] = *report.tensors[i].weighted_error;
  }
  return out;
}

void run(const QuantizeOptions& o) {
  const quantize::Recipe recipe = quantize::parse_recipe(o.recipe);
  const quantize::PlanOptions options = plan_options(o, recipe);
  if (o.dry_run) return dry_run(o, plan_only(o.model, recipe, options));
  check_output(o, recipe);
  check_calibration(o, recipe);
  const engine::ModelFiles files = open_model_files(o.model);
  if (!recipe.codes)
    with_context(o.model, [&] { quantize::refuse_another_computation(files.model.config()); });
  ThreadPool pool(options.threads);
  quantize::QuantPlan plan = quantize::make_plan(files.model.spec(), recipe, options);
  quantize::settle_plan(plan, quantize::largest_magnitudes(files.model, plan, pool, terminal_progress()));
  if (!o.common.json) print(plan_text(plan));
  const quantize::QuantizeReport report = write(o, files, plan, pool);
  for (const std::string& w : report.warnings) warn(w);
  if (o.common.json) {
    ordered_json out = describe(plan, report);
    out["already_quantized_source"] = files.model.is_quantized();
    print_json(out);
    return;
  }
  const auto worst = std::ranges::max_element(report.tensors, {}, &quantize::TensorReport::relative_error);
  print(fmt::format(
      "written to {}: {} in {:.1f} s; relative error {:.4f} over the blocks' matrices, at most {:.4f} ({})\n",
      o.out, human_bytes(static_cast<double>(report.file_bytes)), report.seconds, report.relative_error,
      worst->relative_error, worst->planned.name));
  if (report.weighted_error) {
    print(fmt::format("weighted by importance, which is what this recipe keeps small: {:.4f}\n",
                      *report.weighted_error));
  }
}

}  // namespace

void add_quantize(CLI::App& app) {
  auto o = std::make_shared<QuantizeOptions>();
  CLI::App* c =
      add_command(app, "quantize", "writes a smaller file or folder of a model",
                  "wring quantize sample/hf --recipe q4_k -o q4_k.gguf", o->common, [o] { run(*o); });
  c->add_option("MODEL", o->model, "Hugging Face folder or .gguf file")->required();
  c->add_option("--recipe", o->recipe, fmt::format("one of {}", fmt::join(quantize::recipe_names(), ", ")))
      ->required();
  c->add_option("-o,--output", o->out, ".gguf file to write; a folder for int4-rtn, fp8 and nvfp4");
  c->add_option("--imatrix", o->imatrix, "importance matrix, for recipes with +imatrix");
  c->add_option("--calibration", o->calibration,
                "texts to take the importance from instead, or for nvfp4 the range of inputs: .txt or JSONL");
  c->add_option("--context", o->context,
                "tokens of a calibration document (default: 1024, or the model's context if that is less)")
      ->check(CLI::Range(2, 1 << 24));
  c->add_option("--keep", o->keep,
                "PATTERN=TYPE: matrices with that name get this type, as '*.mlp.down_proj=q8_0'")
      ->allow_extra_args(false);
  c->add_option("--group", o->group, "columns a scale of int4-rtn (default: 128)")
      ->check(CLI::IsMember({32, 64, 128}));
  c->add_flag("--deploy", o->deploy, "quantize embedding and head too, as llama.cpp's files of that name do");
  c->add_flag("--strict", o->strict, "refuse to substitute a type");
  c->add_flag("--dry-run", o->dry_run, "print the plan only; needs nothing but config.json");
}

}  // namespace wring::cli
