#include "quantize/write_hf.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "formats/safetensors.h"
#include "quantize/companions.h"
#include "quantize/hf_config.h"
#include "quantize/hf_tokenizer.h"

namespace wring::quantize {
namespace {

namespace fs = std::filesystem;

}  // namespace

QuantizeReport write_hf(const model::Model& model, const QuantPlan& plan, formats::QuantType type,
                        const fs::path& out, ThreadPool& pool, ProgressSink& progress) {
  if (!plan.settled) throw Error(ErrorCode::kInternal, "the plan is not settled");
  const auto start = std::chrono::steady_clock::now();
  const nlohmann::json config = hf_config(model, type);
  AtomicDirectory folder(out);
  QuantizeReport report;

  formats::SafetensorsWriter writer(folder.path() / "model.safetensors");
  writer.set_metadata({{"format", "pt"}});  // transformers asks for it
  for (const PlannedTensor& t : plan.tensors) writer.declare(t.name, t.used, t.shape());
  writer.begin_data();
  const auto sink = [&](std::span<const std::byte> bytes) { writer.write(bytes); };
  for (const PlannedTensor& t : plan.tensors) {
    progress.update("writing tensors", report.tensors.size(), plan.tensors.size(), "tensors");
    report.tensors.push_back(stream_tensor(model, t, {}, pool, sink, progress));
  }
  progress.update("writing tensors", report.tensors.size(), plan.tensors.size(), "tensors");
  writer.commit();

  write_file_atomically(folder.path() / "config.json", config.dump(2) + "\n");
  if (model.gguf() != nullptr) {
    write_hf_tokenizer(*model.gguf(), folder.path());
  } else {
    copy_companions(model.path(), folder.path());
  }
  report.file_bytes = fs::file_size(folder.path() / "model.safetensors");
  folder.commit();
  report.relative_error = block_matrix_error(report.tensors);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace wring::quantize
