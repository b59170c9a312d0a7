#include "quantize/expert_coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace wring::quantize {
namespace {

constexpr std::string_view kPrefix = "blk.", kSuffix = ".ffn_down_exps.weight";

/// The layer of "blk.3.ffn_down_exps.weight"; −1 for other names.
int layer_of(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return -1;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  int layer = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  return error == std::errc() && end == name.data() + name.size() ? layer : -1;
}

}  // namespace

ExpertCoverage expert_coverage(const formats::Imatrix& imatrix) {
  ExpertCoverage coverage;
  std::vector<std::uint64_t> tokens;
  for (const auto& [name, entry] : imatrix.entries) {
    const int layer = layer_of(name);
    if (layer < 0) continue;
    for (std::size_t e = 0; e < entry.counts.size(); ++e) {
      tokens.push_back(static_cast<std::uint64_t>(entry.counts[e]));
      if (tokens.back() < kLeastExpertTokens)
        coverage.few.push_back({layer, static_cast<int>(e), tokens.back()});
    }
  }
  if (tokens.empty()) return coverage;
  std::ranges::stable_sort(coverage.few, {}, &SparseExpert::layer);  // names sort 10 before 2
  std::ranges::sort(tokens);
  const std::size_t half = tokens.size() / 2;
  coverage.experts = tokens.size();
  coverage.least = tokens.front();
  coverage.median = tokens.size() % 2 == 1
                        ? static_cast<double>(tokens[half])
                        : (static_cast<double>(tokens[half - 1]) + static_cast<double>(tokens[half])) / 2;
  return coverage;
}

std::string few_tokens_text(const ExpertCoverage& coverage, std::size_t shown) {
  std::string text =
      fmt::format("{} of {} experts saw fewer than {} calibration tokens and are rounded without importance:",
                  coverage.few.size(), coverage.experts, kLeastExpertTokens);
  for (std::size_t i = 0; i < std::min(shown, coverage.few.size()); ++i) {
    const SparseExpert& e = coverage.few[i];
    text += fmt::format("{} blk.{} expert {} ({})", i == 0 ? "" : ",", e.layer, e.expert, e.tokens);
  }
  if (coverage.few.size() > shown) text += fmt::format(" and {} more", coverage.few.size() - shown);
  return text;
}

bool saw_few_tokens(const PlannedTensor& tensor, const formats::ImatrixEntry& entry, std::size_t matrix) {
  const bool of_expert = tensor.site == model::Site::kExpertGateUp || tensor.site == model::Site::kExpertDown;
  return of_expert && entry.counts[matrix] < static_cast<float>(kLeastExpertTokens);
}

}  // namespace wring::quantize
