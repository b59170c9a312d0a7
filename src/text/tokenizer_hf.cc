// Tokenizer::from_hf: tokenizer.json (the definition) and tokenizer_config.json (which tokens are BOS and
// EOS). Source: the serialization of Hugging Face's tokenizers. "truncation" and "padding" are settings of a
// call, not of the definition, and are ignored as transformers does.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/json.h"
#include "text/tokenizer_state.h"

namespace wring::text {

namespace {

using Json = nlohmann::json;

[[noreturn]] void bad(std::string what, std::string_view where) {
  throw Error(ErrorCode::kBadInput, std::move(what), std::string(where));
}

[[noreturn]] void unsupported(std::string what, std::string_view where) {
  throw Error(ErrorCode::kNotSupported, std::move(what), std::string(where));
}

const Json& member(const Json& object, const char* key) {
  static const Json null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

std::string type_of(const Json& object, std::string_view where) {
  if (!object.is_object()) bad("not an object with a type", where);
  return printable(formats::json_string_or(object, "type", "", where));
}

void check_model(const Json& model, std::string_view where) {
  // Files older than 2020 leave the type out; their models are told apart by what they hold.
  const std::string type = model.contains("type") ? type_of(model, where) : "BPE";
  if (type != "BPE") unsupported(fmt::format("the model type '{}' is not supported", type), where);
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!formats::json_string_or(model, key, "", where).empty())
      unsupported(fmt::format("{} is not supported", key), where);
  }
  if (formats::json_bool_or(model, "byte_fallback", false, where)) {
    unsupported("byte_fallback is not supported: only byte-level BPE is", where);
  }
  if (member(model, "dropout").is_number() && member(model, "dropout") != 0) {
    unsupported("dropout is not supported: it makes ids random", where);
  }
}

void read_vocabulary(const Json& model, std::string_view where, Vocabulary& out) {
  const Json& vocab = member(model, "vocab");
  if (!vocab.is_object()) bad("model.vocab is missing or not an object", where);
  for (const auto& [token, id] : vocab.items()) {
    if (!id.is_number_integer() || (id.is_number_unsigned() && id.get<std::uint64_t>() > INT64_MAX)) {
      bad(fmt::format("the id of '{}' is not an integer in [0, {}]", printable(token), kMaxTokenId), where);
    }
    out.add(id.get<std::int64_t>(), token, TokenKind::kNormal, where);
  }
  if (out.size() == 0) bad("model.vocab is empty", where);
}

std::vector<Merge> read_merges(const Json& model, const Vocabulary& vocabulary, std::string_view where) {
  const Json& list = member(model, "merges");
  if (!list.is_array()) bad("model.merges is missing or not a list", where);
  std::vector<Merge> merges;
  merges.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json& m = list[i];
    if (m.is_string()) {
      const auto [left, right] = split_merge(m.get_ref<const std::string&>(), i, where);
      merges.push_back(make_merge(vocabulary, left, right, i, where));
    } else if (m.is_array() && m.size() == 2 && m[0].is_string() && m[1].is_string()) {
      merges.push_back(make_merge(vocabulary, m[0].get_ref<const std::string&>(),
                                  m[1].get_ref<const std::string&>(), i, where));
    } else {
      bad(fmt::format("merge {} is neither \"a b\" nor [\"a\", \"b\"]", i), where);
    }
  }
  return merges;
}

void read_added(const Json& list, std::string_view where, TokenizerParts& out) {
  if (list.is_null()) return;
  if (!list.is_array()) bad("added_tokens is not a list", where);
  for (const Json& t : list) {
    if (!t.is_object()) bad("an entry of added_tokens is not an object", where);
    AddedToken token;
    token.text = formats::json_string_or(t, "content", "", where);
    if (token.text.empty()) bad("an added token without content", where);
    const std::int64_t id = formats::json_int(t, "id", 0, kMaxTokenId, where);
    token.id = static_cast<TokenId>(id);
    token.special = formats::json_bool_or(t, "special", false, where);
    token.single_word = formats::json_bool_or(t, "single_word", false, where);
    token.lstrip = formats::json_bool_or(t, "lstrip", false, where);
    token.rstrip = formats::json_bool_or(t, "rstrip", false, where);
    token.normalized = formats::json_bool_or(t, "normalized", !token.special, where);
    const TokenKind kind = token.special ? TokenKind::kSpecial : TokenKind::kAdded;
    if (const auto known = out.vocabulary.find(token.text)) {
      if (*known != token.id) {
        bad(fmt::format("the added token '{}' has id {}, but model.vocab gives it {}", printable(token.text),
                        token.id, *known),
            where);
      }
      out.vocabulary.set_kind(token.id, kind);
    } else {
      out.vocabulary.add(token.id, token.text, kind, where);
    }
    out.added.push_back(std::move(token));
  }
}

void read_normalizer(const Json& normalizer, std::string_view where, TokenizerParts& out) {
  if (normalizer.is_null()) return;
  const std::string type = type_of(normalizer, where);
  if (type == "NFC") {
    out.nfc = true;
  } else if (type == "Sequence") {
    for (const Json& part : member(normalizer, "normalizers")) read_normalizer(part, where, out);
  } else {
    unsupported(fmt::format("the normalizer type '{}' is not supported", type), where);
  }
}

void check_decoder(const Json& decoder, std::string_view where) {
  if (decoder.is_null()) unsupported("no decoder: byte-level BPE needs ByteLevel", where);
  const std::string type = type_of(decoder, where);
  if (type == "ByteLevel") return;
  const Json& parts = member(decoder, "decoders");
  if (type == "Sequence" && parts.is_array() && parts.size() == 1) return check_decoder(parts[0], where);
  unsupported(fmt::format("the decoder type '{}' is not supported", type), where);
}

// The token that a post-processor puts before a text, if any. ByteLevel only trims offsets.
std::optional<TokenId> leading_token(const Json& processor, std::string_view where,
                                     const Vocabulary& vocabulary) {
  if (processor.is_null()) return std::nullopt;
  const std::string type = type_of(processor, where);
  if (type == "ByteLevel") return std::nullopt;
  if (type == "Sequence") {
    std::optional<TokenId> found;
    for (const Json& part : member(processor, "processors")) {
      if (const auto token = leading_token(part, where, vocabulary)) found = token;
    }
    return found;
  }
  if (type != "TemplateProcessing")
    unsupported(fmt::format("the post_processor type '{}' is not supported", type), where);
  const Json& single = member(processor, "single");
  if (!single.is_array() || single.empty()) bad("TemplateProcessing.single is not a list", where);
  std::vector<std::string> before;
  std::size_t texts = 0;
  for (const Json& piece : single) {
    if (!piece.is_object()) bad("an entry of TemplateProcessing.single is not an object", where);
    if (piece.contains("Sequence")) ++texts;
    const Json& token = member(piece, "SpecialToken");
    if (texts == 0 && token.is_object()) before.push_back(formats::json_string_or(token, "id", "", where));
  }
  if (texts != 1 || before.size() > 1) {
    unsupported("TemplateProcessing.single is supported with one text and at most one token before it",
                where);
  }
  if (before.empty()) return std::nullopt;
  const auto id = vocabulary.find(before[0]);
  if (!id)
    bad(fmt::format("TemplateProcessing uses '{}', which is not in the vocabulary", printable(before[0])),
        where);
  return id;
}

// "<s>" or {"content": "<s>", ...} or null.
std::optional<TokenId> named_token(const Json& config, const char* key, std::string_view where,
                                   const Vocabulary& vocabulary) {
  const Json& value = member(config, key);
  if (value.is_null()) return std::nullopt;
  const Json& content = value.is_object() ? member(value, "content") : value;
  if (!content.is_string()) bad(fmt::format("{} is neither a string nor an object with content", key), where);
  const auto& text = content.get_ref<const std::string&>();
  const auto id = vocabulary.find(text);
  if (!id) bad(fmt::format("{} is '{}', which is not in the vocabulary", key, printable(text)), where);
  return id;
}

void read_config(const std::filesystem::path& path, std::optional<TokenId> leading, TokenizerParts& out) {
  const std::string where = path.filename().string();
  const bool exists = std::filesystem::exists(path);
  const Json config = exists ? formats::read_json_file(path) : Json::object();
  if (!config.is_object()) bad("not an object", where);
  out.bos = named_token(config, "bos_token", where, out.vocabulary);
  out.eos = named_token(config, "eos_token", where, out.vocabulary);
  if (leading && out.bos && *leading != *out.bos) {
    bad(fmt::format("bos_token is '{}', but tokenizer.json's post_processor begins with '{}'",
                    printable(out.vocabulary.text(*out.bos)), printable(out.vocabulary.text(*leading))),
        where);
  }
  if (leading) out.bos = leading;
  out.adds_bos = formats::json_bool_or(config, "add_bos_token", leading.has_value(), where);
  if (out.adds_bos && !out.bos) bad("add_bos_token is true, but there is no bos_token", where);
}

}  // namespace

Tokenizer Tokenizer::from_hf(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "tokenizer.json";
  return with_context(folder.string(), [&] {
    const Json root = formats::read_json_file(path);
    const std::string where = "tokenizer.json";
    if (!root.is_object()) bad("not an object", where);
    const Json& model = member(root, "model");
    if (!model.is_object()) bad("model is missing or not an object", where);
    check_model(model, where + ", model");

    TokenizerParts parts;
    read_vocabulary(model, where + ", model.vocab", parts.vocabulary);
    parts.merges = read_merges(model, parts.vocabulary, where + ", model.merges");
    parts.ignore_merges = formats::json_bool_or(model, "ignore_merges", false, where + ", model");
    read_added(member(root, "added_tokens"), where + ", added_tokens", parts);
    read_normalizer(member(root, "normalizer"), where + ", normalizer", parts);
    parts.pretokenizer = parse_pretokenizer(member(root, "pre_tokenizer"), where + ", pre_tokenizer");
    check_decoder(member(root, "decoder"), where + ", decoder");
    const auto leading =
        leading_token(member(root, "post_processor"), where + ", post_processor", parts.vocabulary);
    read_config(folder / "tokenizer_config.json", leading, parts);
    return Tokenizer(std::make_unique<State>(std::move(parts)));
  });
}

}  // namespace wring::text
