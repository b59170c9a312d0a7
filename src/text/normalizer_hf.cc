// "normalizer" of tokenizer.json -> steps (normalizer.h).
#include "text/hf_json.h"
#include "text/normalizer.h"

namespace wring::text {

namespace {

// Sequences may nest; the JSON reader bounds the depth.
void add_steps(const nlohmann::json& step, std::string_view where, Normalizer& out) {
  const std::string type = type_of(step, where);
  if (type == "Sequence") {
    for (const nlohmann::json& part : parts_of(step, "normalizers", where)) add_steps(part, where, out);
  } else if (type == "NFC") {
    out.add_nfc();
  } else if (type == "Prepend") {
    out.add_prepend(formats::json_string_or(step, "prepend", "", where));
  } else if (type == "Replace") {
    HfPattern pattern = read_pattern(step, where);
    std::string content = formats::json_string_or(step, "content", "", where);
    if (pattern.is_regex) {
      out.add_replace(Regex(pattern.text, where), std::move(content));
    } else {
      out.add_replace(std::move(pattern.text), std::move(content));
    }
  } else {
    throw Error(ErrorCode::kNotSupported, fmt::format("the normalizer type '{}' is not supported", type),
                std::string(where), "supported: NFC, Prepend, Replace, Sequence");
  }
  check_rules(out.steps(), where);
}

}  // namespace

Normalizer parse_normalizer(const nlohmann::json& definition, std::string_view where) {
  Normalizer out;
  if (!definition.is_null()) add_steps(definition, where, out);
  return out;
}

}  // namespace wring::text
