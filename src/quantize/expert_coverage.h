// How many calibration tokens each expert saw: a router sends few to some, whose importance is then chance.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/imatrix.h"
#include "quantize/planned_tensor.h"

namespace wring::quantize {

/// An expert that saw fewer tokens is rounded without importance, and listed.
inline constexpr std::uint64_t kLeastExpertTokens = 64;

struct SparseExpert {
  int layer = 0;
  int expert = 0;
  std::uint64_t tokens = 0;
};

struct ExpertCoverage {
  std::uint64_t experts = 0;  // of all layers together; 0: the model has none
  std::uint64_t least = 0;
  double median = 0;
  std::vector<SparseExpert> few;  // fewer than kLeastExpertTokens, by layer and number
};

/// Of an importance matrix: the counts of the experts' down projections.
ExpertCoverage expert_coverage(const formats::Imatrix& imatrix);

/// "12 of 96 experts saw fewer than 64 calibration tokens and are rounded without importance: blk.1 expert 3
/// (0 tokens), …"; the first `shown` are named.
std::string few_tokens_text(const ExpertCoverage& coverage, std::size_t shown);

/// Whether matrix `matrix` of the tensor is an expert's that saw too few tokens.
bool saw_few_tokens(const PlannedTensor& tensor, const formats::ImatrixEntry& entry, std::size_t matrix);

}  // namespace wring::quantize
