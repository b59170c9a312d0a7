// Rules are compared as what they do (definition()), against the few that GGUF's flag can mean. Source of the
// flag's meaning: llama.cpp's src/llama-vocab.cpp, which puts a blank before a text and after special tokens.
#include "quantize/sentencepiece_gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/gguf.h"
#include "formats/json.h"
#include "text/decoder_hf.h"
#include "text/normalizer.h"
#include "text/pretokenizer.h"
#include "text/score_merges.h"
#include "text/vocabulary_gguf.h"

namespace wring::quantize {
namespace {

using Json = nlohmann::json;
using MergeTexts = std::vector<std::pair<std::string, std::string>>;

namespace token_type = formats::token_type;

struct Blanks {
  bool prefix;              // a blank before a text
  bool cuts_words = false;  // words begin at blanks
  bool exact = true;        // a text that begins with a blank, or follows a special token, gets one too
};

std::optional<Blanks> blanks_of(const text::Normalizer& normalizer, const text::PreTokenizer& rules) {
  using text::PrependScheme;
  const std::string mark(text::kBlankMark);
  text::Normalizer none, replaces, prepends;
  replaces.add_replace(" ", mark);
  prepends.add_prepend(mark);
  prepends.add_replace(" ", mark);
  const std::string normalized = normalizer.definition(), cut = rules.definition();

  text::PreTokenizer at_blanks;  // Gemma's, which finds none after normalization
  at_blanks.add_split(" ", text::SplitBehavior::kMergedWithPrevious, false, "");
  if (cut == text::PreTokenizer().definition() || cut == at_blanks.definition()) {
    if (normalized == replaces.definition()) return Blanks{.prefix = false};
    if (normalized == prepends.definition()) return Blanks{.prefix = true};
    return std::nullopt;
  }
  if (normalized != none.definition()) return std::nullopt;
  for (const PrependScheme scheme : {PrependScheme::kAlways, PrependScheme::kFirst, PrependScheme::kNever}) {
    const bool prefix = scheme != PrependScheme::kNever;
    text::PreTokenizer metaspace;
    metaspace.add_metaspace(mark, scheme);
    if (cut == metaspace.definition()) return Blanks{prefix, false, !prefix};
    metaspace.add_split(mark, text::SplitBehavior::kMergedWithNext, false, "");
    if (cut == metaspace.definition()) return Blanks{prefix, true, !prefix};
  }
  return std::nullopt;
}

/// Where words begin at blanks, no token may hold a blank further in: GGUF's models see a whole text at once.
bool joins_words(std::span<const std::string> texts, std::span<const std::int32_t> types) {
  for (std::size_t id = 0; id < texts.size(); ++id) {
    const std::size_t at = texts[id].find(text::kBlankMark, 1);
    if (types[id] == token_type::kNormal && at != std::string::npos) return true;
  }
  return false;
}

MergeTexts merges_in(const Json& model) {
  MergeTexts out;
  for (const Json& m : model["merges"]) {
    if (m.is_array()) {
      out.emplace_back(m[0], m[1]);
    } else {
      const auto line = m.get<std::string>();
      const std::size_t blank = line.find(' ');
      out.emplace_back(line.substr(0, blank), line.substr(blank + 1));
    }
  }
  return out;
}

/// A token scores the higher the sooner a merge makes it; those that none makes come last. Checked by going
/// back: the merges that follow from the scores must be the definition's, but for the order of those that
/// make one token. That order tells only where such merges overlap ("a" "aa" "a" with "aaa"), and
/// SentencePiece, from whose scores published lists were made, takes the leftmost as GGUF's reader does.
std::vector<float> scores_of_merges(const Json& model, const text::Vocabulary& vocabulary) {
  const MergeTexts merges = merges_in(model);
  std::vector<double> scores(static_cast<std::size_t>(vocabulary.size()),
                             -static_cast<double>(merges.size()));
  MergeTexts wanted;
  std::unordered_map<std::string, std::size_t> last;  // where a result was made last
  bool in_order = true;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string result = merges[rank].first + merges[rank].second;
    const text::TokenId id = *vocabulary.find(result);
    if (vocabulary.kind(id) != text::TokenKind::kNormal) continue;  // never made: found in the text before
    const auto [place, is_new] = last.try_emplace(result, rank);
    if (is_new) scores[static_cast<std::size_t>(id)] = -static_cast<double>(rank);
    in_order &= is_new || place->second + 1 == rank;
    place->second = rank;
    wanted.push_back(merges[rank]);
  }
  MergeTexts found;
  for (const text::Merge& m : text::merges_from_scores(vocabulary, scores)) {
    found.emplace_back(vocabulary.text(m.left), vocabulary.text(m.right));
  }
  std::ranges::sort(wanted);
  std::ranges::sort(found);
  if (!in_order || wanted != found) {
    throw Error(
        ErrorCode::kNotSupported,
        "these merges are not those of a SentencePiece model: GGUF keeps a score for each token instead, "
        "and no scores say the same",
        "tokenizer.json, model.merges", "convert to hf instead");
  }
  return {scores.begin(), scores.end()};
}

std::vector<float> scores_of_pieces(const Json& model, std::size_t tokens) {
  std::vector<float> scores(tokens, 0.0F);
  for (std::size_t id = 0; id < model["vocab"].size(); ++id) scores[id] = model["vocab"][id][1].get<float>();
  return scores;
}

/// A GGUF's reader falls back on byte tokens wherever there are some, and joins unknown characters.
void check_unknown(bool byte_fallback, bool fuse_unk, std::span<const std::string> texts) {
  const bool byte_tokens =
      std::ranges::any_of(texts, [](const std::string& t) { return text::byte_of_token(t).has_value(); });
  if (byte_fallback == byte_tokens && fuse_unk) return;
  throw Error(
      ErrorCode::kNotSupported,
      fmt::format(
          "GGUF implies fuse_unk, and byte_fallback where there are byte tokens; here they are {} and {}",
          fuse_unk, byte_fallback),
      "tokenizer.json, model", "convert to hf instead");
}

/// It writes "▁" as a blank and takes one off where it has put one.
void check_decoder(const Json& definition, bool prefix) {
  const std::string where = "tokenizer.json, decoder";
  const text::Decoder decoder = text::parse_decoder(definition.value("decoder", Json()), where);
  const std::vector<std::pair<std::string, std::string>> blank = {{std::string(text::kBlankMark), " "}};
  if (decoder.coding.replacements == blank && decoder.strips_leading_blank == prefix) return;
  throw Error(
      ErrorCode::kNotSupported,
      "GGUF implies a decoder that writes \"\u2581\" as a blank and takes off one that was put in front",
      where, "convert to hf instead");
}

}  // namespace

SentencePieceKeys sentencepiece_keys(const Json& definition, std::span<const std::string> texts,
                                     std::span<const std::int32_t> types) {
  const Json& model = definition["model"];
  const auto flag = [&](const char* name) {
    return formats::json_bool_or(model, name, false, "tokenizer.json, model");
  };
  const bool unigram = model.value("type", model["vocab"].is_array() ? "Unigram" : "BPE") == "Unigram";
  const std::optional<Blanks> blanks =
      blanks_of(text::parse_normalizer(definition.value("normalizer", Json()), "tokenizer.json, normalizer"),
                text::parse_pretokenizer(definition.value("pre_tokenizer", Json()), false,
                                         "tokenizer.json, pre_tokenizer"));
  if (!blanks || (blanks->cuts_words && joins_words(texts, types)) || flag("ignore_merges")) {
    throw Error(ErrorCode::kNotSupported,
                "GGUF cannot say these rules: it knows blanks as \"\u2581\" and one in front of a text",
                "tokenizer.json, normalizer and pre_tokenizer", "convert to hf instead");
  }
  check_unknown(flag("byte_fallback"), unigram || flag("fuse_unk"), texts);
  check_decoder(definition, blanks->prefix);
  SentencePieceKeys out;
  out.add_space_prefix = blanks->prefix;
  if (!blanks->exact) {
    out.warning =
        "GGUF puts a blank before every text and after special tokens; this tokenizer.json does not where a "
        "text begins with one, and may not after special tokens: such texts get other ids";
  }
  if (unigram) {
    out.model = "t5";
    out.scores = scores_of_pieces(model, texts.size());
  } else {
    out.model = "llama";
    out.scores = scores_of_merges(
        model, text::vocabulary_from_gguf(texts, std::vector<std::int64_t>(types.begin(), types.end()),
                                          "tokenizer.json"));
  }
  return out;
}

}  // namespace wring::quantize
