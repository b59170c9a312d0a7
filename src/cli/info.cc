// wring info: what a model's files hold.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/open.h"
#include "engine/model_files.h"
#include "model/names.h"

namespace wring::cli {
namespace {

using nlohmann::ordered_json;

struct InfoOptions {
  Common common;
  std::string model;
};

double bits_per_weight(std::uint64_t bytes, std::uint64_t weights) {
  return weights == 0 ? 0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(weights);
}

ordered_json describe(const engine::ModelFiles& files) {
  const model::Model& m = files.model;
  ordered_json out;
  out["model"] = m.path().string();
  out["architecture"] = m.config().model_type;
  out["parameters"] = m.parameters();
  out["file_bytes"] = m.file_bytes();
  out["payload_bytes"] = m.payload_bytes();
  out["bits_per_weight"] = bits_per_weight(m.payload_bytes(), m.parameters());
  out["already_quantized"] = m.is_quantized();
  if (!m.config().quantization.method.empty()) out["quant_method"] = m.config().quantization.method;
  out["layers"] = m.config().num_hidden_layers;
  out["hidden_size"] = m.config().hidden_size;
  out["vocab_size"] = m.config().vocab_size;
  out["context"] = m.config().max_position_embeddings;
  out["tokenizer"] = files.tokenizer.has_value();
  out["chat_template"] = files.chat_template_source.has_value();
  if (!m.revision().empty()) out["revision"] = m.revision();
  std::map<std::string, std::pair<int, std::uint64_t>> types;
  ordered_json tensors = ordered_json::array();
  for (const model::Weight& w : m.weights()) {
    const std::string type = w.type_name();
    auto& [count, bytes] = types[type];
    ++count;
    bytes += w.bytes();
    tensors.push_back({{"name", w.name},
                       {"stored_name", w.tensor->name},
                       {"type", type},
                       {"shape", w.shape()},
                       {"bytes", w.bytes()}});
  }
  for (const auto& [type, use] : types) out["types"][type] = {{"tensors", use.first}, {"bytes", use.second}};
  out["tensors"] = std::move(tensors);
  return out;
}

void run(const InfoOptions& o) {
  const engine::ModelFiles files = open_model_files(o.model);
  const ordered_json d = describe(files);
  if (o.common.json) {
    print_json(d);
    return;
  }
  std::string text = fmt::format("{}: {}, {} layers, hidden {}, vocabulary {}, context {}\n", o.model,
                                 d["architecture"].get<std::string>(), d["layers"].dump(),
                                 d["hidden_size"].dump(), d["vocab_size"].dump(), d["context"].dump());
  text += fmt::format("{:.1f} million weights in {}, {:.3f} bits a weight{}\n",
                      static_cast<double>(files.model.parameters()) / 1e6,
                      human_bytes(static_cast<double>(files.model.file_bytes())),
                      d["bits_per_weight"].get<double>(),
                      files.model.is_quantized() ? "; the source is already quantized" : "");
  for (const auto& [type, use] : d["types"].items()) {
    text += fmt::format("  {:7} {:5} tensors, {}\n", type, use["tensors"].get<int>(),
                        human_bytes(use["bytes"].get<double>()));
  }
  text += fmt::format("tokenizer: {}; chat template: {}\n", files.tokenizer ? "yes" : "none",
                      files.chat_template_source ? "yes" : "none");
  print(text);
}

}  // namespace

void add_info(CLI::App& app) {
  auto o = std::make_shared<InfoOptions>();
  CLI::App* c = add_command(app, "info", "architecture, tensors, types, bytes and bits a weight of a model",
                            "wring info sample/hf", o->common, [o] { run(*o); });
  c->add_option("MODEL", o->model, "Hugging Face folder or .gguf file")->required();
}

}  // namespace wring::cli
