#include "quantize/recipe.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "base/utf8.h"
#include "quantize/block_quantizer.h"
#include "quantize/matrix_grid.h"

namespace wring::quantize {
namespace {

using formats::QuantType;

struct NamedType {
  std::string_view name;
  QuantType type;
  bool mixed = false;
};

// In the order of docs/CLI.md. Q4_1, Q5_0 and Q5_1 can be written for single tensors (--keep) and are no
// recipes of their own.
constexpr std::array<NamedType, 10> kTypes = {{
    {"bf16", QuantType::kBF16},
    {"f16", QuantType::kF16},
    {"q8_0", QuantType::kQ8_0},
    {"q4_k", QuantType::kQ4_K},
    {"q4_k_m", QuantType::kQ4_K, true},
    {"q5_k", QuantType::kQ5_K},
    {"q6_k", QuantType::kQ6_K},
    {"iq4_xs", QuantType::kIQ4_XS},
    {"iq4_nl", QuantType::kIQ4_NL},
    {"q4_0", QuantType::kQ4_0},
}};
constexpr std::string_view kImportance = "+imatrix", kFeedback = "+gptq";

struct NamedCodes {
  std::string_view name;
  CodedFormat format;
  bool feedback = false, search = false;
};

const std::array<NamedCodes, 5> kCodes = {{
    {"int4-rtn", {CodeKind::kInt4, 128}},
    {"int4-gptq", {CodeKind::kInt4, 128}, true},
    {"int4-gptq+search", {CodeKind::kInt4, 128}, true, true},
    {"fp8", {CodeKind::kFp8, 0}},
    {"nvfp4", {CodeKind::kNvfp4, 16}},
}};

}  // namespace

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const NamedType& t : kTypes) {
    const std::string name(t.name);
    names.push_back(name);
    if (uses_importance(t.type)) names.push_back(name + std::string(kImportance));
    if (has_grid(t.type)) {
      names.push_back(name + std::string(kFeedback));
      names.push_back(name + std::string(kImportance) + std::string(kFeedback));
    }
  }
  for (const NamedCodes& c : kCodes) names.emplace_back(c.name);
  return names;
}

Recipe parse_recipe(std::string_view name) {
  std::string_view stem = name;
  const bool feedback = stem.ends_with(kFeedback);
  if (feedback) stem.remove_suffix(kFeedback.size());
  const bool importance = stem.ends_with(kImportance);
  if (importance) stem.remove_suffix(kImportance.size());
  for (const NamedType& t : kTypes) {
    if (t.name != stem) continue;
    if (importance && !uses_importance(t.type)) {
      throw Error(ErrorCode::kUsage, fmt::format("importance changes nothing in {}", stem),
                  fmt::format("recipe {}", name), fmt::format("use {}", stem));
    }
    if (feedback && !has_grid(t.type)) {
      throw Error(ErrorCode::kUsage, fmt::format("error feedback changes nothing in {}", stem),
                  fmt::format("recipe {}", name), fmt::format("use {}", stem));
    }
    return {std::string(name), t.type, importance, feedback, false, t.mixed, std::nullopt};
  }
  for (const NamedCodes& c : kCodes) {
    if (c.name == name)
      return {std::string(name), QuantType::kBF16, false, c.feedback, c.search, false, c.format};
  }
  throw Error(ErrorCode::kNotSupported, fmt::format("recipe '{}' is not supported", printable(name)), {},
              fmt::format("supported: {}", fmt::join(recipe_names(), ", ")));
}

}  // namespace wring::quantize
