#include "quantize/write_gguf.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <map>

#include "base/error.h"
#include "formats/gguf.h"
#include "model/names.h"
#include "quantize/block_quantizer.h"
#include "quantize/gguf_metadata.h"

namespace wring::quantize {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRopeFreqs = "rope_freqs.weight";

std::string gguf_name_of(const model::Model& model, const PlannedTensor& tensor) {
  const std::optional<std::string> name = model::gguf_name(model.spec().model_type, tensor.name);
  if (!name) throw Error(ErrorCode::kInternal, fmt::format("{} has no name in GGUF", tensor.name));
  return *name;
}

/// The importance of a tensor's columns: empty where the plan has none or the type has no use for it.
/// Embedding and head may lack an entry, as llama.cpp's imatrix files do.
std::span<const float> importance_of(const model::Model& model, const QuantPlan& plan,
                                     const PlannedTensor& tensor, const formats::Imatrix* imatrix) {
  if (!plan.importance || tensor.role == TensorRole::kVector || !uses_importance(tensor.used)) return {};
  const std::string name = gguf_name_of(model, tensor);
  const auto found = imatrix->entries.find(name);
  if (found == imatrix->entries.end()) {
    if (tensor.role != TensorRole::kBlockMatrix) return {};
    throw Error(ErrorCode::kBadInput, fmt::format("the importance matrix has no entry for {}", name), {},
                "was it made from another model? wring imatrix makes one");
  }
  if (found->second.sum_squares.size() != static_cast<std::size_t>(tensor.columns)) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("the importance matrix has {} values for {}, which has {} columns",
                            found->second.sum_squares.size(), name, tensor.columns),
                {}, "was it made from another model? wring imatrix makes one");
  }
  return found->second.sum_squares;
}

/// The type that most of the blocks' weights have: general.file_type names it.
formats::QuantType main_type(const QuantPlan& plan) {
  std::map<formats::QuantType, std::uint64_t> weights;
  formats::QuantType best = formats::QuantType::kF32;
  for (const PlannedTensor& t : plan.tensors) {
    if (t.role != TensorRole::kBlockMatrix) continue;
    weights[t.used] += t.elements();
    if (weights[t.used] > weights[best]) best = t.used;
  }
  return best;
}

void check_arguments(const model::Model& model, const QuantPlan& plan, const formats::Imatrix* imatrix,
                     const fs::path& out) {
  if (!plan.settled) throw Error(ErrorCode::kInternal, "the plan is not settled");
  with_context(model.path().string(), [&] { refuse_another_computation(model.config()); });
  if (out.extension() != ".gguf") {
    throw Error(ErrorCode::kUsage, fmt::format("the output of recipe {} must end in .gguf", plan.recipe),
                out.string());
  }
  if (plan.importance && imatrix == nullptr) {
    throw Error(ErrorCode::kUsage, fmt::format("recipe {} needs an importance matrix", plan.recipe), {},
                "give --imatrix FILE, or --calibration texts to make one");
  }
  for (const PlannedTensor& t : plan.tensors) importance_of(model, plan, t, imatrix);
}

}  // namespace

QuantizeReport write_gguf(const model::Model& model, const QuantPlan& plan, const formats::Imatrix* imatrix,
                          const fs::path& out, ThreadPool& pool, ProgressSink& progress) {
  check_arguments(model, plan, imatrix, out);
  const auto start = std::chrono::steady_clock::now();
  formats::GgufWriter writer(out);
  QuantizeReport report;
  add_gguf_metadata(writer, model, main_type(plan), plan.importance ? imatrix : nullptr, report.warnings);

  const std::vector<float> divisors = gguf_rope_divisors(model.config());
  if (!divisors.empty()) {
    const std::array<std::uint64_t, 1> shape = {divisors.size()};
    writer.declare(kRopeFreqs, formats::QuantType::kF32, shape);
  }
  for (const PlannedTensor& t : plan.tensors) writer.declare(gguf_name_of(model, t), t.used, t.shape());
  writer.begin_data();
  writer.write(std::as_bytes(std::span(divisors)));

  const auto sink = [&](std::span<const std::byte> bytes) { writer.write(bytes); };
  for (const PlannedTensor& t : plan.tensors) {
    progress.update("writing tensors", report.tensors.size(), plan.tensors.size(), "tensors");
    report.tensors.push_back(
        stream_tensor(model, t, importance_of(model, plan, t, imatrix), true, pool, sink, progress));
  }
  progress.update("writing tensors", report.tensors.size(), plan.tensors.size(), "tensors");
  writer.commit([&](const formats::GgufReader& written) {
    report.file_bytes = written.file_bytes();
    const model::ModelSpec read = model::make_spec(model::read_gguf_config(written));
    if (!model::same_computation(model.spec(), read)) {
      throw Error(ErrorCode::kInternal, "the written metadata says another computation", out.string());
    }
  });
  report.relative_error = block_matrix_error(report.tensors);
  report.weighted_error = block_matrix_weighted_error(report.tensors);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace wring::quantize
