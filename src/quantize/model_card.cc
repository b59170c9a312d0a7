#include "quantize/model_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/hash.h"
#include "base/mapped_file.h"
#include "base/utf8.h"

namespace wring::quantize {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHashedAtATime = std::size_t{1} << 26;  // bytes; more would stay in memory

std::string file_name_of(const fs::path& path) {
  const fs::path full = fs::absolute(path).lexically_normal();
  return replace_invalid_utf8((full.has_filename() ? full : full.parent_path()).filename().string());
}

/// "org/model" of a hub cache's snapshot, else the name of the folder or file.
std::string source_name(const model::Model& model) {
  if (model.revision().empty()) return file_name_of(model.path());
  const fs::path full = fs::absolute(model.path()).lexically_normal();
  const fs::path snapshot = full.has_filename() ? full : full.parent_path();
  std::string name = file_name_of(snapshot.parent_path().parent_path());
  constexpr std::string_view kModels = "models--";
  if (!name.starts_with(kModels)) return name;
  name.erase(0, kModels.size());
  if (const std::size_t at = name.find("--"); at != std::string::npos) name.replace(at, 2, "/");
  return name;
}

std::string format_text(const CodedFormat& format) {
  switch (format.kind) {
    case CodeKind::kInt4:
      return fmt::format("symmetric INT4, a BF16 scale for {} inputs (W4A16)", format.group);
    case CodeKind::kFp8:
      return "FP8 E4M3, a BF16 scale for each output; activations in FP8 by token as they come (W8A8)";
    case CodeKind::kNvfp4:
      return fmt::format("NVFP4: E2M1, an E4M3 scale for 16 inputs ({})",
                         format.coded_inputs ? "W4A4: activations too, under calibrated scales"
                                             : "W4A16: activations stay as they are");
  }
  return {};
}

std::string kept_text(const QuantPlan& plan, std::size_t beside) {
  std::map<std::string, std::vector<std::string>> reasons;
  for (const PlannedTensor& t : plan.tensors) {
    if (t.role == TensorRole::kBlockMatrix && !t.codes) reasons[t.reason].push_back(t.name);
  }
  std::string text =
      "Kept in BF16: embedding, output head, norms, biases, routers and the small maps of recurrent "
      "layers.\n";
  for (const auto& [reason, names] : reasons) {
    text += fmt::format("{} of the blocks' matrices ({}): {}{}\n", names.size(), names.front(), reason,
                        names.size() > 1 ? ", and others like it" : "");
  }
  if (beside > 0)
    text += fmt::format(
        "{} tensors beside the text model (vision, further tokens' prediction) are the source's.\n", beside);
  return text;
}

}  // namespace

std::string model_card(const model::Model& source, const QuantPlan& plan, const QuantizeReport& report,
                       const fs::path& out) {
  const std::string name = file_name_of(out), from = source_name(source);
  std::string revision = source.revision();
  if (!revision.empty()) revision = fmt::format(", revision {}", revision);
  std::string text = fmt::format("# {}\n\n{} in {}.\n\n", name, from, format_text(*plan.codes));
  text += "| | |\n|---|---|\n";
  text +=
      fmt::format("| source | {}{}{} |\n", from, revision, source.is_quantized() ? ", itself quantized" : "");
  text += fmt::format("| source's SHA-256 (weights and what they compute) | {} |\n", source.content_hash());
  text += fmt::format("| recipe | {} (Wring) |\n", plan.recipe);
  std::uint64_t matrices = 0, weights = 0;
  for (const PlannedTensor& t : plan.tensors) {
    if (!t.codes) continue;
    ++matrices;
    weights += t.elements();
  }
  text += fmt::format("| quantized | {} matrices, {} weights |\n", matrices, weights);
  text += fmt::format("| bits a weight in the blocks' matrices | {:.3f} |\n", plan.block_matrix_bits());
  text += fmt::format("| bits a weight in all | {:.3f} |\n", plan.file_bits());
  text += fmt::format("| relative error of the blocks' matrices | {:.4f} |\n\n", report.relative_error);
  text += kept_text(plan, source.config().quantization.method.empty() ? source.left_out().size() : 0);
  text += fmt::format(
      "\nWhat the rounding costs in quality is not in these numbers: `wring eval` measures it against the "
      "source.\n\n## Running it\n\n"
      "    vllm serve {0}\n"
      "    wring run {0} -p \"Hello\"\n"
      "    wring eval {0} --against SOURCE --text TEXTS.jsonl\n\n"
      "`sha256sum -c SHA256SUMS` checks the files.\n",
      name);
  return text;
}

std::string sha256_sums(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::string text;
  for (const fs::path& file : files) {
    const MappedFile mapped(file);
    Sha256 hash;
    for (std::size_t at = 0; at < mapped.size(); at += kHashedAtATime) {
      const auto piece = mapped.bytes().subspan(at, std::min(kHashedAtATime, mapped.size() - at));
      hash.update(piece);
      release_mapped_pages(piece);
    }
    text += fmt::format("{}  {}\n", hash.finish_hex(), file.filename().string());
  }
  return text;
}

}  // namespace wring::quantize
