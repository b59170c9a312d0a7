// What a study found, as plain data: computed from its ledger, so that a report can be made again from the
// rows alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "evaluate/summary.h"
#include "lab/speed.h"
#include "lab/study_plan.h"

namespace wring::lab {

struct CandidateResult {
  std::string name;  // "source", "q4_k+imatrix"
  std::string type;  // of its matrices: "BF16", "Q4_K"
  std::uint64_t file_bytes = 0;
  double bits_per_weight = 0;       // over the blocks' matrices
  double file_bits_per_weight = 0;  // over all tensors
  std::optional<double> quantize_seconds;
  std::optional<double> relative_error;  // of its matrices
  std::optional<double> weighted_error;  // the same weighted by importance, where the recipe uses it
  std::string file_hash;                 // XXH3; empty for the source
  evaluate::EvalSummary eval;            // `against` is empty for the source
  std::vector<SpeedRow> speeds;          // one a prompt length and batch; empty: not measured
};

/// Two candidates on the same documents, so that they may be ranked, or not.
struct PairResult {
  std::string first, second;
  evaluate::Interval delta_nll;  // first − second
};

struct StudyResults {
  std::string model;  // folder or file name
  std::string model_hash;
  std::string architecture;
  std::uint64_t parameters = 0;
  bool already_quantized = false;           // the source: comparisons then favour grids near its own
  std::vector<CandidateResult> candidates;  // the source first
  std::vector<PairResult> pairs;            // of all candidates but the source

  // Conditions.
  std::string compute_mode;        // of the evaluation
  std::string speed_compute_mode;  // of the timings
  std::string cpu_level, cpu, build;
  int threads = 0;
  double read_bandwidth_gbps = 0, fp32_gmacs = 0, int8_gmacs = 0;
  std::int64_t context = 0;
  std::string kl_positions;
  std::size_t documents_planned = 0;
  std::size_t calibration_documents = 0;
  std::int64_t calibration_tokens = 0;
  SpeedProtocol speed;
  std::string protocol;   // id of the frozen manifest
  std::string root_hash;  // of the rows
  std::size_t rows = 0;
};

/// Computes the results from the study's folder by way of the ledger's index, which is made if need be;
/// p-values are corrected over the candidates (Holm). Errors: kBadInput naming what is missing for a study
/// that is not complete, or for a manifest changed since.
StudyResults collect_results(const std::filesystem::path& folder);

}  // namespace wring::lab
