// Tokenizer::from_hf: tokenizer.json (the definition) and tokenizer_config.json (which tokens are BOS and
// EOS). Source: the serialization of Hugging Face's tokenizers. "truncation" and "padding" are settings of a
// call, not of the definition, and are ignored as transformers does.
#include "text/decoder_hf.h"
#include "text/hf_json.h"
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

bool is_unigram(const Json& model, std::string_view where) {
  // Files older than 2020 leave the type out; pieces with scores are a list, tokens with ids an object.
  const std::string guess = member(model, "vocab").is_array() ? "Unigram" : "BPE";
  const std::string type = model.contains("type") ? type_of(model, where) : guess;
  if (type != "BPE" && type != "Unigram") {
    throw Error(ErrorCode::kNotSupported, fmt::format("the model type '{}' is not supported", type),
                std::string(where), "supported: BPE, Unigram");
  }
  return type == "Unigram";
}

// What neither model may have.
void check_model(const Json& model, std::string_view where) {
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!formats::json_string_or(model, key, "", where).empty())
      unsupported(fmt::format("{} is not supported", key), where);
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

// [["piece", score], …], ids in order.
std::vector<double> read_pieces(const Json& model, std::string_view where, Vocabulary& out) {
  const Json& vocab = member(model, "vocab");
  if (!vocab.is_array() || vocab.empty()) bad("model.vocab is missing, empty or not a list", where);
  std::vector<double> scores;
  for (std::size_t i = 0; i < vocab.size(); ++i) {
    const Json& piece = vocab[i];
    if (!piece.is_array() || piece.size() != 2 || !piece[0].is_string() || !piece[1].is_number()) {
      bad(fmt::format("piece {} is not [\"text\", score]", i), where);
    }
    out.add(static_cast<std::int64_t>(i), piece[0].get_ref<const std::string&>(), TokenKind::kNormal, where);
    scores.push_back(piece[1].get<double>());
  }
  return scores;
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
      out.vocabulary.add(token.id, token.text, kind, where, false);
    }
    out.added.push_back(std::move(token));
  }
}

Fallbacks read_fallbacks(const Json& model, bool unigram, std::string_view where,
                         const Vocabulary& vocabulary) {
  Fallbacks out;
  out.bytes = formats::json_bool_or(model, "byte_fallback", false, where);
  if (unigram) {
    out.fuse_unk = true;
    if (!member(model, "unk_id").is_null()) {
      out.unk = static_cast<TokenId>(formats::json_int(model, "unk_id", 0, vocabulary.size() - 1, where));
    }
    return out;
  }
  out.fuse_unk = formats::json_bool_or(model, "fuse_unk", false, where);
  const std::string unk = formats::json_string_or(model, "unk_token", "", where);
  if (unk.empty()) return out;
  out.unk = vocabulary.find(unk);
  if (!out.unk) bad(fmt::format("unk_token is '{}', which is not in the vocabulary", printable(unk)), where);
  return out;
}

// The token that a post-processor puts before a text, if any. ByteLevel only trims offsets.
std::optional<TokenId> leading_token(const Json& processor, std::string_view where,
                                     const Vocabulary& vocabulary) {
  if (processor.is_null()) return std::nullopt;
  const std::string type = type_of(processor, where);
  if (type == "ByteLevel") return std::nullopt;
  if (type == "Sequence") {
    std::optional<TokenId> found;
    for (const Json& part : parts_of(processor, "processors", where)) {
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
    const std::string in_model = where + ", model";
    const bool unigram = is_unigram(model, in_model);
    check_model(model, in_model);

    TokenizerParts parts;
    const Decoder decoder = parse_decoder(member(root, "decoder"), where + ", decoder");
    parts.coding = decoder.coding;
    parts.strips_leading_blank = decoder.strips_leading_blank;
    if (unigram) {
      parts.model = UnigramDefinition{read_pieces(model, in_model + ".vocab", parts.vocabulary)};
      parts.vocabulary.check_scored_lengths(in_model + ".vocab");
    } else {
      read_vocabulary(model, in_model + ".vocab", parts.vocabulary);
      parts.model = BpeDefinition{read_merges(model, parts.vocabulary, in_model + ".merges"),
                                  formats::json_bool_or(model, "ignore_merges", false, in_model)};
    }
    if (parts.coding.byte_level && (unigram || member(model, "byte_fallback") == true)) {
      unsupported(fmt::format("{} is not supported together with the decoder ByteLevel",
                              unigram ? "the model type Unigram" : "byte_fallback"),
                  in_model);
    }
    parts.fallbacks = read_fallbacks(model, unigram, in_model, parts.vocabulary);
    read_added(member(root, "added_tokens"), where + ", added_tokens", parts);
    parts.normalizer = parse_normalizer(member(root, "normalizer"), where + ", normalizer");
    parts.pretokenizer =
        parse_pretokenizer(member(root, "pre_tokenizer"), parts.coding.byte_level, where + ", pre_tokenizer");
    const auto leading =
        leading_token(member(root, "post_processor"), where + ", post_processor", parts.vocabulary);
    read_config(folder / "tokenizer_config.json", leading, parts);
    return Tokenizer(std::make_unique<State>(std::move(parts)));
  });
}

}  // namespace wring::text
