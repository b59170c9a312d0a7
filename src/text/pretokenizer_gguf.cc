// The table of names (pretokenizer_gguf.h). Sources: the pre_tokenizer entries of the tokenizer.json
// published with GPT-2, Llama 3, Qwen 2.5/3 and 3.5, SmolLM, DeepSeek V3, gpt-oss (o200k_harmony), EXAONE 3/4
// and K-EXAONE, and the same patterns quoted as comments in llama.cpp's src/llama-vocab.cpp, which also says
// which name means which.
#include "text/pretokenizer_gguf.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/utf8.h"

namespace wring::text {

namespace {

constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDigit = R"(\p{N})";
constexpr std::string_view kThreeDigits = R"(\p{N}{1,3})";
constexpr std::string_view kCjk = "[一-龥\u3040-ゟ゠-ヿ]+";
constexpr std::string_view kDeepSeekV3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kExaoneMoe =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?)"
    R"(|\s*[\r\n]|\s+(?!\S)|\s+)";

struct Entry {
  std::string_view name;
  std::array<std::string_view, 3> patterns;  // applied one after the other, matches isolated
  bool nfc, ignore_merges, adds_bos;
};

// The first name of equal rules is the one written to new files.
const std::array<Entry, 15>& table() {
  static const std::array<Entry, 15> entries = {{
      {"gpt-2", {kGpt2Pattern}, false, false, false},
      {"exaone4", {kGpt2Pattern}, false, false, false},
      {"llama-bpe", {kLlama3}, false, true, true},
      {"llama3", {kLlama3}, false, true, true},
      {"llama-v3", {kLlama3}, false, true, true},
      {"qwen2", {kQwen2}, true, false, false},
      {"qwen35", {kQwen35}, true, false, false},
      {"smollm", {kDigit, kGpt2Pattern}, false, false, false},
      {"starcoder", {kDigit, kGpt2Pattern}, false, false, false},
      {"exaone", {kDigit, kGpt2Pattern}, false, false, false},
      {"deepseek-v3", {kThreeDigits, kCjk, kDeepSeekV3}, false, false, false},
      {"gpt-4o", {kGpt4o}, false, false, false},
      {"llama4", {kGpt4o}, false, false, false},
      {"exaone-moe", {kExaoneMoe}, false, false, false},
      {"gpt2", {kGpt2Pattern}, false, false, false},
  }};
  return entries;
}

PreTokenizer rules_of(const Entry& entry, std::string_view where) {
  PreTokenizer rules;
  for (const std::string_view pattern : entry.patterns) {
    if (!pattern.empty()) rules.add_split(pattern, SplitBehavior::kIsolated, false, where);
  }
  return rules;
}

const Entry& find_entry(std::string_view name, std::string_view where) {
  std::string known;
  for (const Entry& entry : table()) {
    if (entry.name == name) return entry;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw Error(ErrorCode::kNotSupported,
              fmt::format("the pre-tokenizer '{}' is not supported", printable(name)),
              fmt::format("{}, tokenizer.ggml.pre", where), fmt::format("supported: {}", known));
}

}  // namespace

NamedPreTokenizer named_pretokenizer(std::string_view name, std::string_view where) {
  const Entry& entry = find_entry(name, where);
  return {rules_of(entry, where), entry.nfc, entry.ignore_merges, entry.adds_bos};
}

nlohmann::json pretokenizer_json(std::string_view name, std::string_view where) {
  nlohmann::json rules = nlohmann::json::array();
  for (const std::string_view pattern : find_entry(name, where).patterns) {
    if (pattern.empty()) continue;
    rules.push_back(
        {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}});
  }
  rules.push_back(
      {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}});
  return {{"type", "Sequence"}, {"pretokenizers", std::move(rules)}};
}

std::string_view name_of_pretokenizer(const PreTokenizer& rules, bool nfc) {
  const std::string wanted = rules.definition();
  for (const Entry& entry : table()) {
    if (entry.nfc == nfc && rules_of(entry, entry.name).definition() == wanted) return entry.name;
  }
  return {};
}

}  // namespace wring::text
