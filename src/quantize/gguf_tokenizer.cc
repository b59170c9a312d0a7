#include "quantize/gguf_tokenizer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/json.h"
#include "quantize/sentencepiece_gguf.h"
#include "text/chat_template.h"
#include "text/decoder_hf.h"
#include "text/normalizer.h"
#include "text/pretokenizer.h"
#include "text/pretokenizer_gguf.h"
#include "text/tokenizer.h"

namespace wring::quantize {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace token_type = formats::token_type;

struct Tokens {
  std::vector<std::string> texts;
  std::vector<std::int32_t> types;
};

/// What a SentencePiece-style model makes of characters without a token; empty where it has none.
std::string unknown_token(const Json& model) {
  const Json name = model.value("unk_token", Json()), id = model.value("unk_id", Json());
  if (name.is_string()) return name.get<std::string>();
  return id.is_null() ? "" : model["vocab"][id.get<std::size_t>()][0].get<std::string>();
}

/// Every embedding row gets a token: those that the definition leaves out are named [PAD…] and never used, as
/// llama.cpp's converter does. Ids were checked by Tokenizer::from_hf.
Tokens read_tokens(const Json& definition, bool sentencepiece, std::int64_t rows) {
  const auto n = static_cast<std::size_t>(rows);
  Tokens tokens{std::vector<std::string>(n), std::vector<std::int32_t>(n, token_type::kUnused)};
  for (std::size_t i = 0; i < n; ++i) tokens.texts[i] = fmt::format("[PAD{}]", i);
  const auto set = [&](const Json& id, const std::string& text, std::int32_t type) {
    tokens.texts[id.get<std::size_t>()] = text;
    tokens.types[id.get<std::size_t>()] = type;
  };
  const Json& model = definition["model"];
  const std::string unknown = sentencepiece ? unknown_token(model) : "";
  const auto type_of = [&](const std::string& text) {
    if (!unknown.empty() && text == unknown) return token_type::kUnknown;
    return sentencepiece && text::byte_of_token(text) ? token_type::kByte : token_type::kNormal;
  };
  if (model["vocab"].is_array()) {
    for (std::size_t id = 0; id < model["vocab"].size(); ++id) {
      const auto text = model["vocab"][id][0].get<std::string>();
      set(id, text, type_of(text));
    }
  } else {
    for (const auto& [text, id] : model["vocab"].items()) set(id, text, type_of(text));
  }
  for (const Json& added : definition.value("added_tokens", Json::array())) {
    const auto text = added["content"].get<std::string>();
    const bool special = formats::json_bool_or(added, "special", false, "tokenizer.json, added_tokens");
    const std::int32_t type = special ? token_type::kControl : token_type::kUserDefined;
    set(added["id"], text, !unknown.empty() && text == unknown ? token_type::kUnknown : type);
  }
  return tokens;
}

std::vector<std::string> read_merges(const Json& model) {
  std::vector<std::string> merges;
  for (const Json& merge : model["merges"]) {
    if (merge.is_string()) {
      merges.push_back(merge.get<std::string>());
      continue;
    }
    const std::string left = merge[0].get<std::string>(), right = merge[1].get<std::string>();
    if ((left + right).find(' ') != std::string::npos) {
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("merge {} ('{}' and '{}') holds a blank: GGUF cannot write it", merges.size(),
                              printable(left), printable(right)),
                  "tokenizer.json, model.merges");
    }
    merges.push_back(fmt::format("{} {}", left, right));
  }
  return merges;
}

/// Whether a byte-level definition normalizes to NFC, the only step that GGUF's names imply.
bool uses_nfc(const Json& definition) {
  const std::string where = "tokenizer.json, normalizer";
  const text::Normalizer steps = text::parse_normalizer(definition.value("normalizer", Json()), where);
  if (steps.empty()) return false;
  text::Normalizer nfc;
  nfc.add_nfc();
  if (steps.definition() == nfc.definition()) return true;
  throw Error(ErrorCode::kNotSupported, "GGUF knows no normalizer of byte-level text but NFC", where,
              "convert to hf instead");
}

/// Whether every token that merges can make is made by them when it stands alone: then "ignore_merges"
/// changes nothing.
bool merges_reach_all(const text::Tokenizer& tokenizer, const Tokens& tokens) {
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokens.types[static_cast<std::size_t>(id)] != token_type::kNormal) continue;
    const std::vector<text::TokenId> ids = tokenizer.encode(tokenizer.bytes_of(id), text::Specials::kPlain);
    if (ids.size() != 1 || ids[0] != id) return false;
  }
  return true;
}

std::string pre_tokenizer_name(const Json& definition, const text::Tokenizer& tokenizer,
                               const Tokens& tokens) {
  const std::string where = "tokenizer.json, pre_tokenizer";
  const text::PreTokenizer rules =
      text::parse_pretokenizer(definition.value("pre_tokenizer", Json()), true, where);
  const bool nfc = uses_nfc(definition);
  const std::string name(text::name_of_pretokenizer(rules, nfc));
  if (name.empty()) {
    throw Error(
        ErrorCode::kNotSupported,
        fmt::format("GGUF has no name for these rules{}: {}", nfc ? " with NFC" : "", rules.definition()),
        where, "convert to hf instead");
  }
  const bool ignores =
      formats::json_bool_or(definition["model"], "ignore_merges", false, "tokenizer.json, model");
  if (ignores != text::named_pretokenizer(name, where).ignore_merges &&
      !merges_reach_all(tokenizer, tokens)) {
    throw Error(ErrorCode::kNotSupported,
                fmt::format("ignore_merges is {}, but GGUF's pre-tokenizer {} implies the opposite, and this "
                            "vocabulary has tokens for which that matters",
                            ignores, name),
                "tokenizer.json, model");
  }
  return name;
}

/// The id of a token that tokenizer_config.json names by text ("pad_token": "<pad>" or {"content": "<pad>"}).
std::optional<text::TokenId> named_token(const Json& config, const char* key,
                                         const text::Tokenizer& tokenizer) {
  const auto found = config.find(key);
  if (found == config.end()) return std::nullopt;
  const Json& content = found->is_object() ? found->value("content", Json()) : *found;
  if (!content.is_string()) return std::nullopt;
  return tokenizer.id_of(content.get<std::string>());
}

void add_special_ids(formats::GgufWriter& writer, const fs::path& folder, const Json& model,
                     const text::Tokenizer& tokenizer, const model::ModelConfig& config) {
  const auto add = [&](std::string_view key, std::optional<text::TokenId> id) {
    if (id) writer.add_u32(fmt::format("tokenizer.ggml.{}_token_id", key), static_cast<std::uint32_t>(*id));
  };
  const fs::path path = folder / "tokenizer_config.json";
  const Json settings = fs::exists(path) ? formats::read_json_file(path) : Json::object();
  // The configuration's ids end a reply: the tokenizer's EOS among them is "eos", the first other one "eot".
  std::optional<text::TokenId> eos = tokenizer.eos(), eot;
  for (const std::int32_t id : config.eos_token_ids) {
    if (!eos) {
      eos = id;
    } else if (id != *eos && !eot) {
      eot = id;
    }
  }
  add("bos", tokenizer.bos());
  add("eos", eos);
  add("eot", eot);
  const std::optional<text::TokenId> unknown = named_token(settings, "unk_token", tokenizer);
  add("unknown", unknown ? unknown : tokenizer.id_of(unknown_token(model)));
  add("padding", named_token(settings, "pad_token", tokenizer));
  writer.add_bool("tokenizer.ggml.add_bos_token", tokenizer.adds_bos());
}

void add_byte_level(formats::GgufWriter& writer, const Json& definition, const text::Tokenizer& tokenizer,
                    const Tokens& tokens) {
  writer.add_string("tokenizer.ggml.model", "gpt2");
  writer.add_string("tokenizer.ggml.pre", pre_tokenizer_name(definition, tokenizer, tokens));
  writer.add_strings("tokenizer.ggml.merges", read_merges(definition["model"]));
  writer.add_bool("tokenizer.ggml.add_space_prefix", false);
}

void add_sentencepiece(formats::GgufWriter& writer, const Json& definition, const Tokens& tokens,
                       std::vector<std::string>& warnings) {
  const SentencePieceKeys keys = sentencepiece_keys(definition, tokens.texts, tokens.types);
  writer.add_string("tokenizer.ggml.model", keys.model);
  writer.add_string("tokenizer.ggml.pre", "default");
  writer.add_f32s("tokenizer.ggml.scores", keys.scores);
  writer.add_bool("tokenizer.ggml.add_space_prefix", keys.add_space_prefix);
  if (keys.warning) warnings.push_back(*keys.warning);
}

}  // namespace

/// GGUF has no place for what an added token does to the text around it.
std::optional<std::string> lost_flags(const Json& definition) {
  const bool normalizes =
      !text::parse_normalizer(definition.value("normalizer", Json()), "tokenizer.json, normalizer").empty();
  for (const Json& added : definition.value("added_tokens", Json::array())) {
    const std::string where = "tokenizer.json, added_tokens";
    const bool special = formats::json_bool_or(added, "special", false, where);
    for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized"}) {
      const bool is_normalized = std::string_view(flag) == "normalized";
      if (is_normalized && !normalizes) continue;
      if (!formats::json_bool_or(added, flag, is_normalized && !special, where)) continue;
      return fmt::format("GGUF cannot hold {} of the added token '{}': texts with it may get other ids", flag,
                         printable(added["content"].get<std::string>()));
    }
  }
  return std::nullopt;
}

void add_tokenizer_from_hf(formats::GgufWriter& writer, const fs::path& folder,
                           const model::ModelConfig& config, std::vector<std::string>& warnings) {
  const fs::path path = folder / "tokenizer.json";
  if (!fs::exists(path)) {
    writer.add_string("tokenizer.ggml.model", "none");
    return;
  }
  const text::Tokenizer tokenizer = text::Tokenizer::from_hf(folder);  // checks every part that is read below
  if (tokenizer.vocab_size() > config.vocab_size) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("the tokenizer has ids up to {}, the embedding only {} rows",
                            tokenizer.vocab_size() - 1, config.vocab_size),
                path.string());
  }
  const Json definition = formats::read_json_file(path);
  with_context(folder.string(), [&] {
    const bool byte_level =
        text::parse_decoder(definition.value("decoder", Json()), "tokenizer.json, decoder").coding.byte_level;
    const Tokens tokens = read_tokens(definition, !byte_level, config.vocab_size);
    if (byte_level) {
      add_byte_level(writer, definition, tokenizer, tokens);
    } else {
      add_sentencepiece(writer, definition, tokens, warnings);
    }
    writer.add_strings("tokenizer.ggml.tokens", tokens.texts);
    writer.add_i32s("tokenizer.ggml.token_type", tokens.types);
    add_special_ids(writer, folder, definition["model"], tokenizer, config);
    if (const std::optional<std::string> source = text::find_chat_template(folder)) {
      writer.add_string("tokenizer.chat_template", *source);
    }
    if (const auto warning = lost_flags(definition)) warnings.push_back(*warning);
  });
}

}  // namespace wring::quantize
