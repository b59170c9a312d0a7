// "pre_tokenizer" of tokenizer.json -> rules. Only definitions that end in ByteLevel are taken: without it
// the words would hold characters that a byte-level vocabulary does not have. Source: Hugging Face
// tokenizers, pre_tokenizers/.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/json.h"
#include "text/pretokenizer.h"

namespace wring::text {

namespace {

using Json = nlohmann::json;

SplitBehavior behavior_of(const std::string& name, std::string_view where) {
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  throw Error(ErrorCode::kNotSupported, fmt::format("the Split behavior '{}' is not supported", name),
              std::string(where));
}

// A plain string as a pattern: whatever could be an operator is escaped.
std::string literal(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\^$.[]|()?*+{}#-&").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

void add_split(const Json& rule, std::string_view where, PreTokenizer& out) {
  const auto pattern = rule.find("pattern");
  if (pattern == rule.end() || !pattern->is_object() || pattern->size() != 1 ||
      !pattern->begin().value().is_string()) {
    throw Error(ErrorCode::kBadInput, "pattern is not {\"Regex\": text} or {\"String\": text}",
                std::string(where));
  }
  const std::string& kind = pattern->begin().key();
  const auto& text = pattern->begin().value().get_ref<const std::string&>();
  if (kind != "Regex" && kind != "String") {
    throw Error(ErrorCode::kNotSupported, fmt::format("the pattern kind '{}' is not supported", kind),
                std::string(where));
  }
  out.add_split(kind == "Regex" ? text : literal(text),
                behavior_of(formats::json_string_or(rule, "behavior", "", where), where),
                formats::json_bool_or(rule, "invert", false, where), where);
}

void add_byte_level(const Json& rule, std::string_view where, PreTokenizer& out) {
  // The defaults are those of the reference: both true.
  if (formats::json_bool_or(rule, "add_prefix_space", true, where)) out.add_prefix_space();
  if (formats::json_bool_or(rule, "use_regex", true, where)) {
    out.add_split(kGpt2Pattern, SplitBehavior::kIsolated, false, where);
  }
}

// Sequences may nest; the JSON reader bounds the depth.
void flatten(const Json& rule, std::string_view where, std::vector<const Json*>& rules) {
  if (!rule.is_object()) {
    throw Error(ErrorCode::kNotSupported, "no pre_tokenizer: only byte-level BPE is supported",
                std::string(where));
  }
  if (formats::json_string_or(rule, "type", "", where) != "Sequence") {
    rules.push_back(&rule);
    return;
  }
  const auto parts = rule.find("pretokenizers");
  if (parts == rule.end() || !parts->is_array()) {
    throw Error(ErrorCode::kBadInput, "a Sequence without the list pretokenizers", std::string(where));
  }
  for (const Json& part : *parts) flatten(part, where, rules);
}

}  // namespace

PreTokenizer parse_pretokenizer(const nlohmann::json& definition, std::string_view where) {
  std::vector<const Json*> rules;
  flatten(definition, where, rules);
  PreTokenizer out;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const Json& rule = *rules[i];
    const std::string type = formats::json_string_or(rule, "type", "", where);
    if (type == "Split") {
      add_split(rule, where, out);
    } else if (type == "Digits") {
      // Both forms isolate: single digits, or whole runs of them.
      const bool single = formats::json_bool_or(rule, "individual_digits", false, where);
      out.add_split(single ? R"(\p{N})" : R"(\p{N}+)", SplitBehavior::kIsolated, false, where);
    } else if (type == "ByteLevel") {
      if (i + 1 != rules.size()) {
        throw Error(ErrorCode::kNotSupported, "the pre_tokenizer ByteLevel is supported as the last one only",
                    std::string(where));
      }
      add_byte_level(rule, where, out);
      return out;
    } else {
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("the pre_tokenizer type '{}' is not supported", printable(type)),
                  std::string(where), "supported: Split, Digits, ByteLevel, Sequence");
    }
  }
  throw Error(ErrorCode::kNotSupported,
              "the pre_tokenizer does not end in ByteLevel: only byte-level BPE is supported",
              std::string(where));
}

}  // namespace wring::text
