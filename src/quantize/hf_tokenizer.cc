#include "quantize/hf_tokenizer.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "text/chat_template.h"
#include "text/pretokenizer_gguf.h"
#include "text/tokenizer.h"

namespace wring::quantize {
namespace {

using OrderedJson = nlohmann::ordered_json;

namespace token_type = formats::token_type;

struct HfTokens {
  OrderedJson vocabulary = OrderedJson::object();
  OrderedJson added = OrderedJson::array();
};

HfTokens read_tokens(const formats::GgufReader& source, const text::Tokenizer& tokenizer) {
  const std::vector<std::string>& texts = source.strings("tokenizer.ggml.tokens");
  const bool typed = source.has("tokenizer.ggml.token_type");
  const std::vector<std::int64_t> types = typed
                                              ? source.integers("tokenizer.ggml.token_type")
                                              : std::vector<std::int64_t>(texts.size(), token_type::kNormal);
  HfTokens out;
  for (std::size_t id = 0; id < texts.size(); ++id) {
    if (types[id] == token_type::kUnused) continue;  // a row of padding
    out.vocabulary[texts[id]] = id;
    const bool special = tokenizer.is_special(static_cast<text::TokenId>(id));
    if (!special && types[id] != token_type::kUserDefined) continue;
    out.added.push_back({{"id", id},
                         {"content", texts[id]},
                         {"single_word", false},
                         {"lstrip", false},
                         {"rstrip", false},
                         {"normalized", false},
                         {"special", special}});
  }
  return out;
}

/// BOS in front of every text, where the definition has it.
OrderedJson post_processor(const text::Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  if (!tokenizer.adds_bos()) return nullptr;
  const text::TokenId bos = *tokenizer.bos();
  const std::string& name = texts[static_cast<std::size_t>(bos)];
  const OrderedJson special = {{"SpecialToken", {{"id", name}, {"type_id", 0}}}};
  const auto sequence = [](const char* id, int type) {
    return OrderedJson{{"Sequence", {{"id", id}, {"type_id", type}}}};
  };
  return {
      {"type", "TemplateProcessing"},
      {"single", OrderedJson::array({special, sequence("A", 0)})},
      {"pair", OrderedJson::array({special, sequence("A", 0), sequence("B", 1)})},
      {"special_tokens",
       {{name, {{"id", name}, {"ids", OrderedJson::array({bos})}, {"tokens", OrderedJson::array({name})}}}}}};
}

OrderedJson definition(const formats::GgufReader& source, const text::Tokenizer& tokenizer) {
  const std::string& pre = source.string("tokenizer.ggml.pre");
  const text::NamedPreTokenizer named = text::named_pretokenizer(pre, source.file());
  HfTokens tokens = read_tokens(source, tokenizer);
  const OrderedJson byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", std::move(tokens.added)},
          {"normalizer", named.nfc ? OrderedJson{{"type", "NFC"}} : OrderedJson(nullptr)},
          {"pre_tokenizer", text::pretokenizer_json(pre, source.file())},
          {"post_processor", post_processor(tokenizer, source.strings("tokenizer.ggml.tokens"))},
          {"decoder", byte_level},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", named.ignore_merges},
            {"vocab", std::move(tokens.vocabulary)},
            {"merges", source.strings("tokenizer.ggml.merges")}}}};
}

OrderedJson settings(const formats::GgufReader& source, const text::Tokenizer& tokenizer) {
  const std::vector<std::string>& texts = source.strings("tokenizer.ggml.tokens");
  OrderedJson out = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"bos_token", "tokenizer.ggml.bos_token_id"},
      {"eos_token", "tokenizer.ggml.eos_token_id"},
      {"unk_token", "tokenizer.ggml.unknown_token_id"},
      {"pad_token", "tokenizer.ggml.padding_token_id"},
  };
  for (const auto& [name, key] : kNames) {
    if (!source.has(key)) continue;
    out[name] =
        texts[static_cast<std::size_t>(source.integer(key, 0, static_cast<std::int64_t>(texts.size()) - 1))];
  }
  out["add_bos_token"] = tokenizer.adds_bos();
  if (const auto chat_template = text::find_chat_template(source)) out["chat_template"] = *chat_template;
  return out;
}

}  // namespace

void write_hf_tokenizer(const formats::GgufReader& source, const std::filesystem::path& folder) {
  if (source.string_or("tokenizer.ggml.model", "none") == "none") return;
  const text::Tokenizer tokenizer =
      text::Tokenizer::from_gguf(source);  // checks every part that is read here
  write_file_atomically(folder / "tokenizer.json", definition(source, tokenizer).dump() + "\n");
  write_file_atomically(folder / "tokenizer_config.json", settings(source, tokenizer).dump(1) + "\n");
}

}  // namespace wring::quantize
