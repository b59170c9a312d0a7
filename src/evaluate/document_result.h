// What is measured on one document by one candidate: the unit of evidence (a ledger row) from which every
// number of an evaluation is computed.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace wring::evaluate {

/// A token that the candidate predicted much worse than the reference did.
struct WorstToken {
  std::string document;
  std::int64_t position = 0;  // in the document's ids
  std::string token;          // its text, invalid bytes as U+FFFD
  std::string context;        // the text just before it
  double nll = 0;             // of the candidate
  double reference_nll = 0;
};

/// So many of a document's worst tokens are kept: enough for a worst twenty over all documents that is not
/// one document's alone.
inline constexpr std::size_t kWorstTokensPerDocument = 5;

struct DocumentResult {
  std::string id;
  std::string domain;
  std::string sha256;
  std::int64_t tokens = 0;  // scored: all but the first
  std::int64_t bytes = 0;   // of text in the scored tokens
  double nll_sum = 0;       // nats
  // The rest only where a reference was given.
  std::vector<double> kl;                // at the KL positions, in order
  std::int64_t same_top = 0;             // of these positions
  double delta_p_squares = 0;            // Σ (q − p)² over them
  std::vector<WorstToken> worst_tokens;  // largest increase first

  double nll() const { return nll_sum / static_cast<double>(tokens); }
};

nlohmann::json to_json(const DocumentResult& result);
nlohmann::json to_json(const WorstToken& token);

/// Errors: kBadInput naming `where` and the field.
DocumentResult document_result_from_json(const nlohmann::json& json, std::string_view where);

}  // namespace wring::evaluate
