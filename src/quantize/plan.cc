#include "quantize/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/utf8.h"
#include "model/names.h"
#include "quantize/block_quantizer.h"
#include "quantize/mixed_types.h"

namespace wring::quantize {
namespace {

using formats::QuantType;

bool matches_glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t]) && pattern[p] != '*') {
      ++p;
      ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool matches(const KeepRule& rule, std::string_view model_type, const std::string& hf_name) {
  for (const std::string& name : {hf_name, model::gguf_name(model_type, hf_name).value_or(hf_name)}) {
    if (matches_glob(rule.pattern, name)) return true;
    if (matches_glob(rule.pattern, std::string_view(name).substr(0, name.rfind('.')))) return true;
  }
  return false;
}

/// What llama.cpp's files of a type's name have for embedding and head: the head, also where it is the
/// embedding, gets Q6_K if the type is smaller than Q8_0.
QuantType deployed_type(QuantType type, bool is_head) {
  const bool large = formats::is_plain_float(type) || type == QuantType::kQ8_0;
  return is_head && !large ? QuantType::kQ6_K : type;
}

bool is_small(const PlannedTensor& tensor) {
  return tensor.role == TensorRole::kVector || tensor.role == TensorRole::kKept;
}

/// What vectors and kept maps have in a GGUF file mostly of `type`.
QuantType small_type(const PlannedTensor& tensor, QuantType type) {
  if (!tensor.narrow) return QuantType::kF32;
  return formats::is_plain_float(type) ? type : QuantType::kBF16;
}

bool fits(QuantType type, std::int64_t columns) {
  return columns % formats::info_of(type).block_size == 0;
}

/// The type that stands in where rows do not divide into blocks.
QuantType fallback_for(std::int64_t columns) {
  return fits(QuantType::kQ8_0, columns) ? QuantType::kQ8_0 : QuantType::kBF16;
}

void settle_shape(PlannedTensor& tensor) {
  tensor.used = tensor.asked;
  if (fits(tensor.asked, tensor.columns)) return;
  tensor.used = fallback_for(tensor.columns);
  tensor.reason = fmt::format("rows of {} do not divide into blocks of {}", tensor.columns,
                              formats::info_of(tensor.asked).block_size);
}

void settle_codes(PlannedTensor& tensor, const CodedFormat& format) {
  tensor.asked_codes = format;
  if (format.fits(tensor.columns)) {
    tensor.codes = format;
  } else {
    tensor.reason = fmt::format("rows of {} do not divide into groups of {}", tensor.columns, format.group);
  }
}

/// Maps must be Linear modules of their own, for that is what compressed-tensors' targets name.
void refuse_other_modules(const model::ModelSpec& spec, const std::vector<PlannedTensor>& tensors) {
  for (const PlannedTensor& t : tensors) {
    if (t.role != TensorRole::kBlockMatrix || t.transposed_rows == 0) continue;
    throw Error(ErrorCode::kNotSupported,
                fmt::format("{} models are not written as compressed-tensors: {} is no Linear module",
                            spec.model_type, t.name),
                {}, "choose a recipe that writes GGUF");
  }
}

CodedFormat format_of(const Recipe& recipe, const PlanOptions& options) {
  CodedFormat format = *recipe.codes;
  if (options.group != 0) format.group = options.group;
  format.coded_inputs = options.coded_inputs && format.kind == CodeKind::kNvfp4;
  return format;
}

void check_plan_options(const Recipe& recipe, const PlanOptions& options) {
  if (options.deploy && recipe.codes) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--deploy changes nothing in {}: embedding and head stay BF16", recipe.name));
  }
  if (options.deploy && recipe.type == QuantType::kBF16) {
    throw Error(ErrorCode::kUsage,
                "--deploy changes nothing in bf16: embedding and head are BF16 either way");
  }
  if (options.group != 0 && !(recipe.codes && recipe.codes->kind == CodeKind::kInt4))
    throw Error(ErrorCode::kUsage, fmt::format("--group changes nothing in {}", recipe.name));
  for (const KeepRule& rule : options.keep) {
    if (!recipe.codes || formats::is_plain_float(rule.type)) continue;
    throw Error(ErrorCode::kNotSupported,
                fmt::format("--keep {}: a folder does not hold {}", printable(rule.pattern),
                            formats::name_of(rule.type)),
                {}, "bf16, f16 and f32 can be kept there");
  }
}

/// Under strict, any substitution is an error that names the first few tensors.
void refuse_substitutions(const QuantPlan& plan) {
  if (!plan.strict) return;
  std::vector<std::string> names;
  const PlannedTensor* first = nullptr;
  for (const PlannedTensor& t : plan.tensors) {
    if (!t.substituted()) continue;
    if (first == nullptr) first = &t;
    names.push_back(t.name);
  }
  if (first == nullptr) return;
  const std::size_t shown = std::min<std::size_t>(names.size(), 3);
  const std::string more =
      names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : std::string();
  throw Error(
      ErrorCode::kNotSupported,
      fmt::format("{} cannot be used for {} of {} tensors ({})", first->asked_name(), names.size(),
                  plan.tensors.size(), first->reason),
      fmt::format("{}{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                  more),
      "leave out --strict to store them in the plan's other type, or choose another recipe");
}

constexpr double kCodedNanoseconds = 25;  // as below, hashing and reading back included

/// Nanoseconds a weight on one thread, measured on an AMD EPYC core; errors, reading and writing included.
double nanoseconds_per_weight(QuantType type) {
  switch (type) {
    case QuantType::kQ4_K:
    case QuantType::kQ5_K:
      return 110;
    case QuantType::kIQ4_XS:
    case QuantType::kIQ4_NL:
      return 130;
    case QuantType::kQ6_K:
      return 75;
    default:
      return formats::is_plain_float(type) ? 3 : 40;
  }
}

}  // namespace

KeepRule parse_keep_rule(std::string_view text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) {
    throw Error(ErrorCode::kUsage, fmt::format("--keep '{}' is not PATTERN=TYPE", printable(text)), {},
                "for example: --keep '*.v_proj=q8_0'");
  }
  const std::string_view name = text.substr(equals + 1);
  const std::optional<QuantType> type = formats::quant_type_from_name(name);
  if (!type || !can_quantize(*type)) {
    throw Error(ErrorCode::kNotSupported, fmt::format("type '{}' cannot be written", printable(name)),
                fmt::format("--keep {}", printable(text)));
  }
  return {std::string(text.substr(0, equals)), *type};
}

QuantType QuantPlan::main_type() const {
  std::map<QuantType, std::uint64_t> weights;
  QuantType best = QuantType::kF32;
  for (const PlannedTensor& t : tensors) {
    if (t.role != TensorRole::kBlockMatrix) continue;
    weights[t.used] += t.elements();
    if (weights[t.used] > weights[best]) best = t.used;
  }
  return best;
}

std::uint64_t QuantPlan::matrices() const {
  std::uint64_t n = 0;
  for (const PlannedTensor& t : tensors) {
    if (t.role == TensorRole::kBlockMatrix) n += static_cast<std::uint64_t>(t.matrices());
  }
  return n;
}

std::uint64_t QuantPlan::matrix_weights() const {
  std::uint64_t n = 0;
  for (const PlannedTensor& t : tensors) {
    if (t.role == TensorRole::kBlockMatrix) n += t.elements();
  }
  return n;
}

std::uint64_t QuantPlan::peak_bytes() const {
  std::uint64_t source = 0;
  for (const PlannedTensor& t : tensors)
    source += t.elements() * formats::info_of(QuantType::kBF16).block_bytes;
  return source + working_bytes();
}

std::uint64_t QuantPlan::payload_bytes() const {
  std::uint64_t bytes = 0;
  for (const PlannedTensor& t : tensors) bytes += t.bytes();
  return bytes;
}

double QuantPlan::block_matrix_bits() const {
  std::uint64_t bytes = 0, weights = 0;
  for (const PlannedTensor& t : tensors) {
    if (t.role != TensorRole::kBlockMatrix) continue;
    bytes += t.bytes();
    weights += t.elements();
  }
  return weights == 0 ? 0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(weights);
}

double QuantPlan::file_bits() const {
  std::uint64_t weights = 0;
  for (const PlannedTensor& t : tensors) weights += t.elements();
  return weights == 0 ? 0 : 8.0 * static_cast<double>(payload_bytes()) / static_cast<double>(weights);
}

std::uint64_t QuantPlan::working_bytes() const {
  std::uint64_t longest_row = 0;
  for (const PlannedTensor& t : tensors)
    longest_row = std::max(longest_row, static_cast<std::uint64_t>(t.columns));
  const bool transposes =
      std::ranges::any_of(tensors, [](const PlannedTensor& t) { return t.transposed_rows > 0; });
  // A matrix of codes: its weights, codes and their packed form.
  std::uint64_t largest_matrix = 0;
  for (const PlannedTensor& t : tensors) {
    if (t.codes) largest_matrix = std::max(largest_matrix, t.elements() * (sizeof(float) + 2));
  }
  // One chunk of finished rows, one of transposed ones, and in each thread a row of weights, the same in the
  // file's order and read back.
  return largest_matrix + kChunkWeights * sizeof(float) * (transposes ? 2 : 1) +
         static_cast<std::uint64_t>(threads) * 3 * longest_row * sizeof(float);
}

double QuantPlan::estimated_seconds() const {
  double nanoseconds = 0;
  for (const PlannedTensor& t : tensors)
    nanoseconds +=
        static_cast<double>(t.elements()) * (t.codes ? kCodedNanoseconds : nanoseconds_per_weight(t.used));
  return nanoseconds * 1e-9 / threads;
}

QuantPlan make_plan(const model::ModelSpec& spec, const Recipe& recipe, const PlanOptions& options) {
  check_plan_options(recipe, options);
  const FileForm form = recipe.codes ? FileForm::kHf : FileForm::kGguf;
  QuantPlan plan;
  plan.recipe = recipe.name;
  plan.importance = recipe.importance;
  plan.feedback = recipe.feedback;
  plan.mixed = recipe.mixed;
  plan.strict = options.strict;
  plan.threads = options.threads;
  plan.tensors = planned_tensors(spec, form);
  if (recipe.codes) {
    refuse_other_modules(spec, plan.tensors);
    plan.codes = format_of(recipe, options);
  }
  const std::vector<bool> more_bits =
      recipe.mixed ? wants_more_bits(spec, plan.tensors) : std::vector<bool>(plan.tensors.size(), false);
  std::vector<bool> rule_used(options.keep.size(), false);
  for (std::size_t n = 0; n < plan.tensors.size(); ++n) {
    PlannedTensor& t = plan.tensors[n];
    if (is_small(t)) {
      const bool plain = form == FileForm::kHf && !t.full_precision;
      t.asked = t.used = plain ? QuantType::kBF16 : small_type(t, recipe.type);
      continue;
    }
    t.asked = t.role == TensorRole::kBlockMatrix ? recipe.type : QuantType::kBF16;
    if (more_bits[n]) t.asked = QuantType::kQ6_K;
    if (t.role != TensorRole::kBlockMatrix) {
      if (options.deploy) {
        t.asked = deployed_type(recipe.type, t.role == TensorRole::kHead || spec.head.name == spec.embedding);
      } else if (recipe.codes) {
        t.reason = "embedding and head stay in BF16";
      } else if (recipe.type != QuantType::kBF16) {
        t.reason = "embedding and head stay in BF16 (--deploy quantizes them)";
      }
    }
    bool kept = false;
    for (std::size_t i = 0; i < options.keep.size(); ++i) {
      if (!matches(options.keep[i], spec.model_type, t.name)) continue;
      rule_used[i] = kept = true;
      t.asked = options.keep[i].type;
      t.reason = fmt::format("--keep {}", options.keep[i].pattern);
    }
    settle_shape(t);
    if (plan.codes && t.role == TensorRole::kBlockMatrix && !kept) settle_codes(t, *plan.codes);
  }
  for (std::size_t i = 0; i < options.keep.size(); ++i) {
    if (rule_used[i]) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("--keep {}: no matrix has such a name", printable(options.keep[i].pattern)), {},
                "names are Hugging Face's or GGUF's, with * and ?");
  }
  refuse_substitutions(plan);
  return plan;
}

QuantPlan make_convert_plan(const model::ModelSpec& spec, QuantType type, FileForm form, int threads) {
  QuantPlan plan;
  plan.recipe = std::string(formats::name_of(type));
  plan.threads = threads;
  plan.tensors = planned_tensors(spec, form);
  for (PlannedTensor& t : plan.tensors) {
    t.asked = t.full_precision                         ? QuantType::kF32
              : is_small(t) && form == FileForm::kGguf ? small_type(t, type)
                                                       : type;
    settle_shape(t);
  }
  if (form == FileForm::kHf) {
    std::stable_partition(plan.tensors.begin(), plan.tensors.end(),
                          [](const PlannedTensor& t) { return t.used == QuantType::kF32; });
  }
  return plan;
}

void settle_plan(QuantPlan& plan, std::span<const float> largest_magnitudes) {
  if (largest_magnitudes.size() != plan.tensors.size()) {
    throw Error(ErrorCode::kInternal,
                fmt::format("{} magnitudes for {} tensors", largest_magnitudes.size(), plan.tensors.size()));
  }
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    PlannedTensor& t = plan.tensors[i];
    t.largest = largest_magnitudes[i];
    if (t.codes) continue;
    const bool wide = t.used == QuantType::kF32 || t.used == QuantType::kBF16;
    if (wide || largest_magnitudes[i] <= kLargestQuantizable) continue;
    t.used = QuantType::kBF16;
    t.reason = fmt::format("its largest magnitude {} is above {}, float16's limit", largest_magnitudes[i],
                           kLargestQuantizable);
  }
  refuse_substitutions(plan);
  plan.settled = true;
}

std::uint32_t gguf_file_type(const QuantPlan& plan) {
  if (plan.mixed) return 15;  // "Q4_K_M"
  switch (plan.main_type()) {
    case QuantType::kF32:
      return 0;
    case QuantType::kF16:
      return 1;
    case QuantType::kQ4_0:
      return 2;
    case QuantType::kQ4_1:
      return 3;
    case QuantType::kQ8_0:
      return 7;
    case QuantType::kQ5_0:
      return 8;
    case QuantType::kQ5_1:
      return 9;
    case QuantType::kQ4_K:
      return 14;  // "Q4_K_S": all of one type
    case QuantType::kQ5_K:
      return 16;  // "Q5_K_S"
    case QuantType::kQ6_K:
      return 18;
    case QuantType::kIQ4_NL:
      return 25;
    case QuantType::kIQ4_XS:
      return 30;
    case QuantType::kBF16:
      return 32;
    default:
      throw Error(ErrorCode::kInternal,
                  fmt::format("no file type for {}", formats::name_of(plan.main_type())));
  }
}

}  // namespace wring::quantize
