// Document results to ledger rows and back; numbers survive to the last bit.
#include "evaluate/document_result.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "formats/json.h"

namespace wring::evaluate {
namespace {

using nlohmann::json;

constexpr double kBig = std::numeric_limits<double>::max();
constexpr std::int64_t kMany = std::int64_t{1} << 53;

const json& array_of(const json& object, const char* key, std::string_view where) {
  static const json kEmpty = json::array();
  const auto found = object.find(key);
  if (found == object.end()) return kEmpty;
  if (!found->is_array()) {
    throw Error(ErrorCode::kBadInput, std::string("field \"") + key + "\" is not an array",
                std::string(where));
  }
  return *found;
}

WorstToken worst_token_from_json(const json& j, const std::string& document, std::string_view where) {
  WorstToken t;
  t.document = document;
  t.position = formats::json_int(j, "position", 0, kMany, where);
  t.token = formats::json_string_or(j, "token", "", where);
  t.context = formats::json_string_or(j, "context", "", where);
  t.nll = formats::json_number(j, "nll", -kBig, kBig, where);
  t.reference_nll = formats::json_number(j, "reference_nll", -kBig, kBig, where);
  return t;
}

}  // namespace

json to_json(const WorstToken& token) {
  return {{"document", token.document}, {"position", token.position}, {"token", token.token},
          {"context", token.context},   {"nll", token.nll},           {"reference_nll", token.reference_nll}};
}

json to_json(const DocumentResult& result) {
  json j = {{"id", result.id},         {"domain", result.domain}, {"sha256", result.sha256},
            {"tokens", result.tokens}, {"bytes", result.bytes},   {"nll_sum", result.nll_sum}};
  if (result.kl.empty()) return j;
  j["kl"] = result.kl;
  j["same_top"] = result.same_top;
  j["delta_p_squares"] = result.delta_p_squares;
  j["worst_tokens"] = json::array();
  for (const WorstToken& t : result.worst_tokens) j["worst_tokens"].push_back(to_json(t));
  return j;
}

DocumentResult document_result_from_json(const json& j, std::string_view where) {
  if (!j.is_object())
    throw Error(ErrorCode::kBadInput, "a document's result must be an object", std::string(where));
  DocumentResult r;
  r.id = formats::json_string_or(j, "id", "", where);
  r.domain = formats::json_string_or(j, "domain", "", where);
  r.sha256 = formats::json_string_or(j, "sha256", "", where);
  r.tokens = formats::json_int(j, "tokens", 1, kMany, where);
  r.bytes = formats::json_int(j, "bytes", 0, kMany, where);
  r.nll_sum = formats::json_number(j, "nll_sum", -kBig, kBig, where);
  for (const json& value : array_of(j, "kl", where)) {
    if (!value.is_number()) {
      throw Error(ErrorCode::kBadInput, "field \"kl\" holds something else than numbers", std::string(where));
    }
    r.kl.push_back(value.get<double>());
  }
  const auto positions = static_cast<std::int64_t>(r.kl.size());
  r.same_top = formats::json_int_or(j, "same_top", 0, 0, positions, where);
  r.delta_p_squares =
      formats::json_number_or(j, "delta_p_squares", 0, 0, static_cast<double>(positions), where);
  for (const json& t : array_of(j, "worst_tokens", where)) {
    r.worst_tokens.push_back(worst_token_from_json(t, r.id, where));
  }
  return r;
}

}  // namespace wring::evaluate
