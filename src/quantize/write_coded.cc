// Tensors are declared widest first, as safetensors wants them, and written as they are made: the codes and
// scales of a matrix lie apart in the file.
#include "quantize/write_coded.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "formats/safetensors.h"
#include "quantize/companions.h"
#include "quantize/compressed_config.h"
#include "quantize/hf_tokenizer.h"
#include "quantize/model_card.h"
#include "quantize/tensor_reader.h"

namespace wring::quantize {
namespace {

namespace fs = std::filesystem;
using formats::TensorInfo;

/// Rows that a thread takes at a time.
constexpr std::size_t kRowGrain = 8;

/// Calls f(row, values) for all rows of a tensor.
template <class F>
void for_rows(const model::Model& model, const PlannedTensor& planned, ThreadPool& pool, F f) {
  TensorReader reader(model, planned);
  const auto rows = static_cast<std::size_t>(planned.rows),
             columns = static_cast<std::size_t>(planned.columns);
  struct Buffers {
    std::vector<float> row, scratch;
  };
  std::vector<Buffers> buffers(static_cast<std::size_t>(pool.threads()), {std::vector<float>(columns), {}});
  pool.for_pieces(rows, kRowGrain, [&](std::size_t begin, std::size_t end, int worker) {
    auto& [row, scratch] = buffers[static_cast<std::size_t>(worker)];
    for (std::size_t r = begin; r < end; ++r) {
      reader.read(r, row.data(), scratch);
      f(r, std::span<const float>(row));
    }
  });
  // Source and copy would otherwise stay in memory together.
  for (const std::string& name : planned.weights) release_mapped_pages(model.weight(name).tensor->data);
}

std::uint64_t hash_of_row(std::span<const float> row) {
  return xxh3_64({reinterpret_cast<const char*>(row.data()), row.size_bytes()});
}

std::uint64_t hash_of_rows(const std::vector<std::uint64_t>& rows) {
  return xxh3_64({reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(rows[0])});
}

/// The largest magnitude among the matrices that share NVFP4's number with each: those of one input, of
/// experts those of the same expert. vLLM joins such maps (q, k, v; gate, up) under one number.
std::vector<float> shared_magnitudes(const QuantPlan& plan) {
  const auto key = [](const PlannedTensor& t) { return std::tuple(t.layer, t.site, t.expert); };
  std::map<std::tuple<int, model::Site, int>, float> largest;
  for (const PlannedTensor& t : plan.tensors) {
    if (t.codes) largest[key(t)] = std::max(largest[key(t)], t.largest);
  }
  std::vector<float> out;
  for (const PlannedTensor& t : plan.tensors) out.push_back(t.codes ? largest[key(t)] : 0);
  return out;
}

class CodedWriter {
 public:
  CodedWriter(const model::Model& model, const QuantPlan& plan, const LargestInputs* inputs,
              const fs::path& folder, ThreadPool& pool, ProgressSink& progress, const CodeChooser& choose)
      : model_(&model),
        plan_(&plan),
        inputs_(inputs),
        folder_(folder),
        pool_(&pool),
        progress_(&progress),
        choose_(&choose),
        shared_(shared_magnitudes(plan)),
        writer_(folder / "model.safetensors") {}

  void write_tensors(const std::vector<const TensorInfo*>& copied, QuantizeReport& report) {
    declare(copied);
    for (std::size_t i = 0; i < plan_->tensors.size(); ++i) {
      const PlannedTensor& t = plan_->tensors[i];
      tell("writing tensors", i);
      const auto sink = [&](std::span<const std::byte> bytes) { writer_.write(name_of(t), bytes); };
      report.tensors.push_back(t.codes ? write_codes(t, shared_[i])
                                       : stream_tensor(*model_, t, {}, *pool_, sink, *progress_));
    }
    for (const TensorInfo* t : copied) writer_.write(t->name, t->data);
    writer_.commit();
    report.file_bytes = fs::file_size(folder_ / "model.safetensors");
  }

  /// Opens the folder as any user would. Errors: kInternal where a matrix is not what was meant.
  void check() {
    const model::Model written = model::Model::open(folder_);
    for (std::size_t i = 0, coded = 0; i < plan_->tensors.size(); ++i) {
      const PlannedTensor& t = plan_->tensors[i];
      tell("reading back", i);
      if (!t.codes) continue;
      std::vector<std::uint64_t> rows(static_cast<std::size_t>(t.rows));
      for_rows(written, t, *pool_,
               [&](std::size_t r, std::span<const float> row) { rows[r] = hash_of_row(row); });
      if (hash_of_rows(rows) != meant_[coded++])
        throw Error(ErrorCode::kInternal, "a matrix does not read back as it was meant", t.name);
    }
  }

 private:
  std::string name_of(const PlannedTensor& t) const { return folder_name(*model_, t.name); }

  void tell(const char* task, std::size_t done) const {
    progress_->throw_if_cancelled();
    progress_->update(task, done, plan_->tensors.size(), "tensors");
  }

  std::string part_name(const PlannedTensor& t, const CodedPart& part) const {
    const std::string name = name_of(t);
    return fmt::format("{}.{}", name.substr(0, name.rfind('.')), part.name);
  }

  void declare(const std::vector<const TensorInfo*>& copied) {
    struct Declared {
      std::string name;
      formats::QuantType type;
      std::vector<std::uint64_t> shape;
    };
    std::vector<Declared> all;
    for (const PlannedTensor& t : plan_->tensors) {
      if (!t.codes) {
        all.push_back({name_of(t), t.used, t.shape()});
        continue;
      }
      for (const CodedPart& part : parts_of(*t.codes, t.rows, t.columns))
        all.push_back({part_name(t, part), part.type, part.shape});
    }
    for (const TensorInfo* t : copied) all.push_back({t->name, t->type, t->shape});
    std::ranges::stable_sort(all, std::greater(),
                             [](const Declared& d) { return formats::info_of(d.type).block_bytes; });
    writer_.set_metadata({{"format", "pt"}});  // transformers asks for it
    for (const Declared& d : all) writer_.declare(d.name, d.type, d.shape);
    writer_.begin_data();
  }

  float input_global(const PlannedTensor& t) const {
    return t.codes->coded_inputs ? nvfp4_global(inputs_->of(t.layer, t.site)) : 1.0F;
  }

  TensorReport write_codes(const PlannedTensor& t, float largest) {
    const auto columns = static_cast<std::size_t>(t.columns);
    std::vector<float> weights(t.elements());
    for_rows(*model_, t, *pool_, [&](std::size_t r, std::span<const float> row) {
      std::ranges::copy(row, weights.begin() + static_cast<std::ptrdiff_t>(r * columns));
    });
    CodedScales scales = fit_scales(*t.codes, weights, t.columns, largest, *pool_);
    const std::vector<std::uint8_t> codes =
        *choose_ ? (*choose_)(t, weights, scales)
                 : round_to_nearest(*t.codes, weights, t.columns, scales, *pool_);
    TensorReport report = compare(t, weights, codes, scales);
    weights = {};
    const std::vector<CodedPart> parts = parts_of(*t.codes, t.rows, t.columns);
    const std::vector<std::vector<std::byte>> bytes =
        pack(*t.codes, codes, t.columns, scales, input_global(t));
    for (std::size_t i = 0; i < parts.size(); ++i) writer_.write(part_name(t, parts[i]), bytes[i]);
    return report;
  }

  /// Notes what reading back must give.
  TensorReport compare(const PlannedTensor& t, const std::vector<float>& weights,
                       const std::vector<std::uint8_t>& codes, const CodedScales& scales) {
    const auto rows = static_cast<std::size_t>(t.rows), columns = static_cast<std::size_t>(t.columns),
               group = static_cast<std::size_t>(scales.columns_per_scale);
    std::vector<double> squares(rows), errors(rows);
    std::vector<std::uint64_t> hashes(rows);
    pool_->for_pieces(rows, kRowGrain, [&](std::size_t begin, std::size_t end, int) {
      std::vector<float> back(columns);
      for (std::size_t r = begin; r < end; ++r) {
        float scale = 0;
        for (std::size_t c = 0; c < columns; ++c) {
          const std::size_t i = r * columns + c;
          if (c % group == 0) scale = scales.of(static_cast<std::int64_t>(r), static_cast<std::int64_t>(c));
          back[c] = level_of(t.codes->kind, codes[i]) * scale;
          const double x = weights[i], e = x - static_cast<double>(back[c]);
          squares[r] += x * x;
          errors[r] += e * e;
        }
        hashes[r] = hash_of_row(back);
      }
    });
    meant_.push_back(hash_of_rows(hashes));
    double square = 0, error = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      square += squares[r];
      error += errors[r];
    }
    return {t, square, square > 0 ? std::sqrt(error / square) : 0.0, std::nullopt};
  }

  const model::Model* model_;
  const QuantPlan* plan_;
  const LargestInputs* inputs_;
  fs::path folder_;
  ThreadPool* pool_;
  ProgressSink* progress_;
  const CodeChooser* choose_;
  std::vector<float> shared_;  // by tensor
  formats::SafetensorsWriter writer_;
  std::vector<std::uint64_t> meant_;  // by coded tensor
};

/// Of a source in codes, what lies beside the text model may be in codes too, which config.json would no
/// longer tell.
std::vector<const TensorInfo*> tensors_to_copy(const model::Model& model, QuantizeReport& report) {
  const std::vector<const TensorInfo*>& beside = model.left_out();
  if (beside.empty() || model.config().quantization.method.empty()) return beside;
  report.warnings.push_back(
      fmt::format("{} tensors beside the text model are not copied: the source is quantized", beside.size()));
  return {};
}

}  // namespace

QuantizeReport write_coded(const model::Model& model, const QuantPlan& plan, const LargestInputs* inputs,
                           const fs::path& out, ThreadPool& pool, ProgressSink& progress,
                           const CodeChooser& choose) {
  if (!plan.settled || !plan.codes) throw Error(ErrorCode::kInternal, "not a settled plan of a folder");
  if (plan.codes->coded_inputs && inputs == nullptr)
    throw Error(ErrorCode::kInternal, "inputs are to be coded, and none was calibrated");
  const auto start = std::chrono::steady_clock::now();
  QuantizeReport report;
  const std::vector<const TensorInfo*> copied = tensors_to_copy(model, report);
  const nlohmann::json config = compressed_config(model, *plan.codes, ignored_modules(model, plan, copied));
  AtomicDirectory folder(out);
  CodedWriter writer(model, plan, inputs, folder.path(), pool, progress, choose);
  writer.write_tensors(copied, report);
  write_file_atomically(folder.path() / "config.json", config.dump(2) + "\n");
  if (model.gguf() != nullptr) {
    write_hf_tokenizer(*model.gguf(), folder.path());
  } else {
    copy_companions(model.path(), folder.path());
  }
  writer.check();
  report.relative_error = block_matrix_error(report.tensors);
  write_file_atomically(folder.path() / "README.md", model_card(model, plan, report, out));
  write_file_atomically(folder.path() / "SHA256SUMS", sha256_sums(folder.path()));
  folder.commit();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace wring::quantize
