#include "quantize/write_gguf.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "formats/gguf.h"
#include "quantize/block_quantizer.h"
#include "quantize/expert_coverage.h"
#include "quantize/gguf_metadata.h"

namespace wring::quantize {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownExperts = 16;  // in a warning

/// The importance of a tensor's columns: empty where the plan has none or the type has no use for it, and of
/// experts that saw too few tokens. Embedding and head may lack an entry, as llama.cpp's imatrix files do.
TensorImportance importance_of(const model::Model& model, const PlannedTensor& tensor,
                               const formats::Imatrix* imatrix) {
  const bool matrix = tensor.role != TensorRole::kVector && tensor.role != TensorRole::kKept;
  if (imatrix == nullptr || !matrix || !uses_importance(tensor.used)) return {};
  const std::string name = gguf_name_of(model.spec().model_type, tensor);
  const auto found = imatrix->entries.find(name);
  if (found == imatrix->entries.end()) {
    if (tensor.role != TensorRole::kBlockMatrix) return {};
    throw Error(ErrorCode::kBadInput, fmt::format("the importance matrix has no entry for {}", name), {},
                "was it made from another model? wring imatrix makes one");
  }
  const formats::ImatrixEntry& entry = found->second;
  const auto columns = static_cast<std::size_t>(tensor.columns),
             matrices = static_cast<std::size_t>(tensor.matrices());
  if (entry.sum_squares.size() != columns * matrices || entry.counts.size() != matrices) {
    throw Error(
        ErrorCode::kBadInput,
        fmt::format("the importance matrix has {} values of {} matrices for {}, which has {} columns in "
                    "{} matrices",
                    entry.sum_squares.size(), entry.counts.size(), name, tensor.columns, matrices),
        {}, "was it made from another model? wring imatrix makes one");
  }
  TensorImportance importance;
  for (std::size_t m = 0; m < matrices; ++m) {
    const std::span<const float> sums = std::span(entry.sum_squares).subspan(m * columns, columns);
    importance.push_back(saw_few_tokens(tensor, entry, m) ? std::span<const float>() : sums);
  }
  return importance;
}

void check_arguments(const model::Model& model, const QuantPlan& plan, const formats::Imatrix* imatrix,
                     const BlockFeedback* feedback, const fs::path& out) {
  if (!plan.settled) throw Error(ErrorCode::kInternal, "the plan is not settled");
  with_context(model.path().string(), [&] { refuse_another_computation(model.config()); });
  if (out.extension() != ".gguf") {
    throw Error(ErrorCode::kUsage, fmt::format("the output of recipe {} must end in .gguf", plan.recipe),
                out.string());
  }
  if (plan.feedback != (feedback != nullptr))
    throw Error(ErrorCode::kInternal, "error feedback and its plan go together");
  if (plan.importance && !plan.feedback && imatrix == nullptr) {
    throw Error(ErrorCode::kUsage, fmt::format("recipe {} needs an importance matrix", plan.recipe), {},
                "give --imatrix FILE, or --calibration texts to make one");
  }
  for (const PlannedTensor& t : plan.tensors) importance_of(model, t, imatrix);
}

}  // namespace

QuantizeReport write_gguf(const model::Model& model, const QuantPlan& plan, const Calibration& calibration,
                          const fs::path& out, ThreadPool& pool, ProgressSink& progress) {
  const formats::Imatrix* imatrix = plan.importance ? calibration.imatrix : nullptr;
  BlockFeedback* feedback = calibration.feedback;
  check_arguments(model, plan, imatrix, feedback, out);
  const auto start = std::chrono::steady_clock::now();
  formats::GgufWriter writer(out);
  QuantizeReport report;
  add_gguf_metadata(writer, model, plan, imatrix, report.warnings);

  if (imatrix != nullptr) {
    const ExpertCoverage coverage = expert_coverage(*imatrix);
    if (!coverage.few.empty()) report.warnings.push_back(few_tokens_text(coverage, kShownExperts));
  }

  const std::vector<RopeVector> rope = gguf_rope_vectors(model.config());
  for (const RopeVector& v : rope) {
    const std::array<std::uint64_t, 1> shape = {v.divisors.size()};
    writer.declare(v.name, formats::QuantType::kF32, shape);
  }
  for (const PlannedTensor& t : plan.tensors)
    writer.declare(gguf_name_of(model.spec().model_type, t), t.used, t.shape());
  writer.begin_data();
  for (const RopeVector& v : rope) writer.write(std::as_bytes(std::span(v.divisors)));

  const auto sink = [&](std::span<const std::byte> bytes) { writer.write(bytes); };
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const PlannedTensor& t = plan.tensors[i];
    progress.update("writing tensors", i, plan.tensors.size(), "tensors");
    if (feedback != nullptr && feedback->covers(t)) {
      BlockFeedback::Rounded rounded = feedback->take(i, progress);
      writer.write(rounded.bytes);
      report.tensors.push_back(std::move(rounded.report));
    } else {
      report.tensors.push_back(
          stream_tensor(model, t, importance_of(model, t, imatrix), pool, sink, progress));
    }
  }
  if (feedback != nullptr)
    report.warnings.insert(report.warnings.end(), feedback->warnings().begin(), feedback->warnings().end());
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
