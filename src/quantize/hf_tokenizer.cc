#include "quantize/hf_tokenizer.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "text/chat_template.h"
#include "text/pretokenizer_gguf.h"
#include "text/score_merges.h"
#include "text/tokenizer.h"
#include "text/vocabulary_gguf.h"

namespace wring::quantize {
namespace {

using OrderedJson = nlohmann::ordered_json;

namespace token_type = formats::token_type;

struct HfTokens {
  OrderedJson vocabulary;  // {"token": id}, or a unigram model's [["token", score]]
  OrderedJson added = OrderedJson::array();
};

HfTokens read_tokens(const formats::GgufReader& source, const text::Tokenizer& tokenizer, bool unigram) {
  const std::vector<std::string>& texts = source.strings("tokenizer.ggml.tokens");
  const std::vector<std::int64_t> types = text::token_types(source);
  HfTokens out;
  out.vocabulary = unigram ? OrderedJson::array() : OrderedJson::object();
  for (std::size_t id = 0; id < texts.size(); ++id) {
    if (unigram) {
      out.vocabulary.push_back({texts[id], source.numbers("tokenizer.ggml.scores")[id]});
    } else if (types[id] == token_type::kUnused) {
      continue;  // a row of padding
    } else {
      out.vocabulary[texts[id]] = id;
    }
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

/// A model, and the rules around it that a tokenizer.json has.
struct HfRules {
  OrderedJson model, normalizer, pre_tokenizer, decoder, added_tokens;
};

OrderedJson bpe_model(OrderedJson vocabulary, OrderedJson merges) {
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", std::move(vocabulary)},
          {"merges", std::move(merges)}};
}

HfRules byte_level_rules(const formats::GgufReader& source, const text::Tokenizer& tokenizer) {
  const std::string& pre = source.string("tokenizer.ggml.pre");
  const text::NamedPreTokenizer named = text::named_pretokenizer(pre, source.file());
  HfTokens tokens = read_tokens(source, tokenizer, false);
  OrderedJson model = bpe_model(std::move(tokens.vocabulary), source.strings("tokenizer.ggml.merges"));
  model["ignore_merges"] = named.ignore_merges;
  return {.model = std::move(model),
          .normalizer = named.nfc ? OrderedJson{{"type", "NFC"}} : OrderedJson(nullptr),
          .pre_tokenizer = text::pretokenizer_json(pre, source.file()),
          .decoder = {{"type", "ByteLevel"},
                      {"add_prefix_space", true},
                      {"trim_offsets", true},
                      {"use_regex", true}},
          .added_tokens = std::move(tokens.added)};
}

OrderedJson merges_of_scores(const formats::GgufReader& source) {
  const std::vector<std::string>& texts = source.strings("tokenizer.ggml.tokens");
  const text::Vocabulary vocabulary =
      text::vocabulary_from_gguf(texts, text::token_types(source), source.file());
  OrderedJson merges = OrderedJson::array();
  for (const text::Merge& m : text::merges_from_scores(vocabulary, source.numbers("tokenizer.ggml.scores"))) {
    merges.push_back({texts[static_cast<std::size_t>(m.left)], texts[static_cast<std::size_t>(m.right)]});
  }
  return merges;
}

HfRules sentencepiece_rules(const formats::GgufReader& source, const text::Tokenizer& tokenizer) {
  const bool unigram = source.string("tokenizer.ggml.model") == "t5";
  const bool prefix = source.boolean_or("tokenizer.ggml.add_space_prefix", true);
  HfTokens tokens = read_tokens(source, tokenizer, unigram);
  OrderedJson model;
  const bool has_unk = source.has("tokenizer.ggml.unknown_token_id");
  const std::int64_t unk =
      source.integer_or("tokenizer.ggml.unknown_token_id", 0, 0, tokenizer.vocab_size() - 1);
  if (unigram) {
    model = {{"type", "Unigram"},
             {"unk_id", has_unk ? OrderedJson(unk) : OrderedJson(nullptr)},
             {"vocab", std::move(tokens.vocabulary)},
             {"byte_fallback", true}};
  } else {
    model = bpe_model(std::move(tokens.vocabulary), merges_of_scores(source));
    model["fuse_unk"] = model["byte_fallback"] = true;
    if (has_unk) model["unk_token"] = source.strings("tokenizer.ggml.tokens")[static_cast<std::size_t>(unk)];
  }
  const auto replace = [](std::string_view from, std::string_view to) {
    return OrderedJson{{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
  };
  OrderedJson steps = OrderedJson::array(), decoders = OrderedJson::array();
  if (prefix) steps.push_back({{"type", "Prepend"}, {"prepend", text::kBlankMark}});
  steps.push_back(replace(" ", text::kBlankMark));
  decoders.push_back(replace(text::kBlankMark, " "));
  decoders.push_back({{"type", "ByteFallback"}});
  decoders.push_back({{"type", "Fuse"}});
  if (prefix) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return {.model = std::move(model),
          .normalizer = {{"type", "Sequence"}, {"normalizers", std::move(steps)}},
          .pre_tokenizer = nullptr,
          .decoder = {{"type", "Sequence"}, {"decoders", std::move(decoders)}},
          .added_tokens = std::move(tokens.added)};
}

OrderedJson definition(const formats::GgufReader& source, const text::Tokenizer& tokenizer) {
  HfRules rules = source.string("tokenizer.ggml.model") == "gpt2" ? byte_level_rules(source, tokenizer)
                                                                  : sentencepiece_rules(source, tokenizer);
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", std::move(rules.added_tokens)},
          {"normalizer", std::move(rules.normalizer)},
          {"pre_tokenizer", std::move(rules.pre_tokenizer)},
          {"post_processor", post_processor(tokenizer, source.strings("tokenizer.ggml.tokens"))},
          {"decoder", std::move(rules.decoder)},
          {"model", std::move(rules.model)}};
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
