// "pre_tokenizer" of tokenizer.json -> rules. A byte-level vocabulary needs words that end in ByteLevel:
// without it they would hold characters that it does not have. Source: Hugging Face tokenizers,
// pre_tokenizers/.
#include "text/hf_json.h"
#include "text/pretokenizer.h"
#include "text/vocabulary.h"

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
  const HfPattern pattern = read_pattern(rule, where);
  out.add_split(pattern.is_regex ? pattern.text : literal(pattern.text),
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

void add_metaspace(const Json& rule, std::string_view where, PreTokenizer& out) {
  const std::string replacement = formats::json_string_or(rule, "replacement", kBlankMark, where);
  if (replacement.empty()) {
    throw Error(ErrorCode::kBadInput, "Metaspace.replacement is empty", std::string(where));
  }
  out.add_metaspace(replacement, prepend_scheme(rule, where));
  if (formats::json_bool_or(rule, "split", true, where)) {
    out.add_split(literal(replacement), SplitBehavior::kMergedWithNext, false, where);
  }
}

// Sequences may nest; the JSON reader bounds the depth.
void flatten(const Json& rule, std::string_view where, std::vector<const Json*>& rules) {
  if (type_of(rule, where) != "Sequence") {
    rules.push_back(&rule);
    check_rules(rules.size(), where);
    return;
  }
  for (const Json& part : parts_of(rule, "pretokenizers", where)) flatten(part, where, rules);
}

}  // namespace

PrependScheme prepend_scheme(const Json& metaspace, std::string_view where) {
  // Files older than 2024 have add_prefix_space instead of the scheme.
  const bool prefix = formats::json_bool_or(metaspace, "add_prefix_space", true, where);
  const std::string scheme =
      formats::json_string_or(metaspace, "prepend_scheme", prefix ? "always" : "never", where);
  if (scheme == "always") return PrependScheme::kAlways;
  if (scheme == "first") return PrependScheme::kFirst;
  if (scheme == "never") return PrependScheme::kNever;
  throw Error(ErrorCode::kNotSupported,
              fmt::format("the prepend_scheme '{}' is not supported", printable(scheme)), std::string(where),
              "supported: always, first, never");
}

PreTokenizer parse_pretokenizer(const Json& definition, bool byte_level, std::string_view where) {
  std::vector<const Json*> rules;
  if (!definition.is_null()) flatten(definition, where, rules);
  PreTokenizer out;
  bool ends_in_byte_level = false;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const Json& rule = *rules[i];
    const std::string type = type_of(rule, where);
    if (type == "Split") {
      add_split(rule, where, out);
    } else if (type == "Digits") {
      // Both forms isolate: single digits, or whole runs of them.
      const bool single = formats::json_bool_or(rule, "individual_digits", false, where);
      out.add_split(single ? R"(\p{N})" : R"(\p{N}+)", SplitBehavior::kIsolated, false, where);
    } else if (type == "WhitespaceSplit") {
      out.add_split(R"(\s)", SplitBehavior::kRemoved, false, where);
    } else if (type == "Metaspace") {
      add_metaspace(rule, where, out);
    } else if (type == "ByteLevel") {
      if (i + 1 != rules.size() || !byte_level) {
        throw Error(ErrorCode::kNotSupported,
                    "the pre_tokenizer ByteLevel is supported as the last one and with its decoder only",
                    std::string(where));
      }
      add_byte_level(rule, where, out);
      ends_in_byte_level = true;
    } else {
      throw Error(ErrorCode::kNotSupported, fmt::format("the pre_tokenizer type '{}' is not supported", type),
                  std::string(where),
                  "supported: Split, Digits, WhitespaceSplit, Metaspace, ByteLevel, Sequence");
    }
  }
  if (byte_level && !ends_in_byte_level) {
    throw Error(ErrorCode::kNotSupported,
                "the decoder is ByteLevel, but the pre_tokenizer does not end in ByteLevel",
                std::string(where), "a byte-level vocabulary needs both");
  }
  return out;
}

}  // namespace wring::text
