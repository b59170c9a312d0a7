// Encoding and decoding (tokenizer.h): added tokens first, then normalization, pre-tokenization and the model
// for what lies between them. Bytes that are not UTF-8 are words of their own, since regexes are defined on
// characters only.
#include "text/tokenizer.h"

#include <fmt/format.h>

#include <map>

#include "base/error.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "text/tokenizer_state.h"

namespace wring::text {

namespace {

std::vector<AddedToken> select(const std::vector<AddedToken>& tokens, bool normalized,
                               const Normalizer& normalizer) {
  std::vector<AddedToken> out;
  for (const AddedToken& t : tokens) {
    if (t.normalized != normalized) continue;
    out.push_back(t);
    RegexSearch search(t.text.size());
    if (normalized) out.back().text = normalizer.apply(t.text, search);
  }
  return out;
}

Vocabulary finish(TokenizerParts& parts) {
  std::map<TokenId, std::string> found_as;
  for (AddedToken& t : select(parts.added, true, parts.normalizer)) found_as[t.id] = std::move(t.text);
  parts.vocabulary.finish(std::move(parts.coding), found_as);
  return std::move(parts.vocabulary);
}

std::variant<Bpe, Unigram> make_model(const TokenizerParts& parts, const Vocabulary& vocabulary) {
  const Alphabet alphabet(vocabulary, parts.fallbacks);
  if (const auto* unigram = std::get_if<UnigramDefinition>(&parts.model)) {
    return Unigram(vocabulary, alphabet, unigram->scores);
  }
  const auto& bpe = std::get<BpeDefinition>(parts.model);
  return Bpe(vocabulary, alphabet, bpe.merges, bpe.ignore_merges);
}

}  // namespace

Tokenizer::State::State(TokenizerParts parts)
    : vocabulary(finish(parts)),
      model(make_model(parts, vocabulary)),
      normalizer(std::move(parts.normalizer)),
      // Without a normalizer "normalized" text is the text itself, but the order of the two searches remains.
      added_raw(select(parts.added, false, normalizer)),
      added_normalized(select(parts.added, true, normalizer)),
      pretokenizer(std::move(parts.pretokenizer)),
      strips_leading_blank(parts.strips_leading_blank),
      bos(parts.bos),
      eos(parts.eos),
      adds_bos(parts.adds_bos),
      hash(compute_hash(parts)) {}

std::string Tokenizer::State::compute_hash(const TokenizerParts& parts) const {
  // Every string with its length, so that no two definitions write the same bytes. Padding rows and BOS/EOS
  // are left out: they change no text's ids, and a GGUF and the folder it was made from differ in them.
  Sha256 sha;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const TokenKind kind = vocabulary.kind(id);
    if (kind == TokenKind::kAbsent || kind == TokenKind::kUnused) continue;
    const std::string_view token = vocabulary.text(id);
    sha.update(fmt::format("{} {} {} ", id, static_cast<int>(kind), token.size()));
    sha.update(token);
  }
  if (const auto* unigram = std::get_if<UnigramDefinition>(&parts.model)) {
    for (const double score : unigram->scores) sha.update(fmt::format("{}\n", score));
  } else {
    for (const Merge& m : std::get<BpeDefinition>(parts.model).merges) {
      sha.update(fmt::format("{} {} {}\n", m.left, m.right, m.rank));
    }
    sha.update(fmt::format("ignore_merges {}\n", std::get<Bpe>(model).ignores_merges()));
  }
  for (const AddedToken& t : parts.added) {
    const bool normalized = t.normalized && !normalizer.empty();
    if (t.single_word || t.lstrip || t.rstrip || normalized) {
      sha.update(fmt::format("{} {} {} {} {}\n", t.id, t.single_word, t.lstrip, t.rstrip, normalized));
    }
  }
  sha.update(normalizer.definition());
  sha.update(pretokenizer.definition());
  const Fallbacks& f = parts.fallbacks;
  sha.update(fmt::format("byte_level {} bytes {} unk {} {} strips {}\n", vocabulary.is_byte_level(), f.bytes,
                         f.unk.value_or(-1), f.fuse_unk, strips_leading_blank));
  return sha.finish_hex();
}

void Tokenizer::State::encode_plain(std::string_view text, bool begins_text, Scratch& scratch,
                                    std::vector<TokenId>& out) const {
  const PreTokenizer::Emit word = [&](std::string_view w) {
    if (const auto* bpe = std::get_if<Bpe>(&model)) {
      bpe->encode(w, scratch.bpe, out);
    } else {
      std::get<Unigram>(model).encode(w, scratch.unigram, out);
    }
  };
  while (!text.empty()) {
    std::size_t used = valid_utf8_prefix(text);
    if (used > 0) {
      pretokenizer.split(text.substr(0, used), begins_text, scratch.search, word);
    } else {
      used = 1;
      while (used < text.size() && static_cast<unsigned char>(text[used]) >= 0x80 &&
             valid_utf8_prefix(text.substr(used, 4)) == 0) {
        ++used;
      }
      word(text.substr(0, used));
    }
    begins_text = false;
    text.remove_prefix(used);
  }
}

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<TokenId> Tokenizer::encode(std::string_view text, Specials specials) const {
  std::vector<TokenId> out;
  State::Scratch scratch(text.size());
  const auto token = [&](TokenId id) { out.push_back(id); };
  const auto encode_piece = [&](std::string_view piece, bool begins_text) {
    state_->added_normalized.split(
        piece, specials,
        [&](std::string_view plain) {
          state_->encode_plain(plain, begins_text && plain.data() == piece.data(), scratch, out);
        },
        token);
  };
  state_->added_raw.split(
      text, specials,
      [&](std::string_view piece) {
        const bool begins_text = piece.data() == text.data();
        if (state_->normalizer.empty()) {
          encode_piece(piece, begins_text);
        } else {
          encode_piece(state_->normalizer.apply(piece, scratch.search), begins_text);
        }
      },
      token);
  return out;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_specials) const {
  std::string out;
  for (const TokenId id : ids) {
    if (!skip_specials || !is_special(id)) out += bytes_of(id);
  }
  if (state_->strips_leading_blank && out.starts_with(' ')) out.erase(0, 1);
  return out;
}

std::string_view Tokenizer::bytes_of(TokenId id) const {
  return state_->vocabulary.bytes(id);
}
std::int32_t Tokenizer::vocab_size() const {
  return state_->vocabulary.size();
}
bool Tokenizer::is_special(TokenId id) const {
  return state_->vocabulary.kind(id) == TokenKind::kSpecial;
}
std::optional<TokenId> Tokenizer::id_of(std::string_view token) const {
  return state_->vocabulary.find(token);
}
std::optional<TokenId> Tokenizer::bos() const {
  return state_->bos;
}
std::optional<TokenId> Tokenizer::eos() const {
  return state_->eos;
}
bool Tokenizer::adds_bos() const {
  return state_->adds_bos;
}
const std::string& Tokenizer::hash() const {
  return state_->hash;
}

std::pair<std::string_view, std::string_view> split_merge(std::string_view line, std::size_t index,
                                                          std::string_view where) {
  const std::size_t blank = line.find(' ');
  if (blank == std::string_view::npos || blank == 0 || blank + 1 == line.size() ||
      line.find(' ', blank + 1) != std::string_view::npos) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("merge {} '{}' is not two tokens with a blank between", index, printable(line)),
                std::string(where));
  }
  return {line.substr(0, blank), line.substr(blank + 1)};
}

Merge make_merge(const Vocabulary& vocabulary, std::string_view left, std::string_view right,
                 std::size_t index, std::string_view where) {
  const auto id_of = [&](std::string_view token) {
    const auto id = vocabulary.find(token);
    if (!id) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("merge {} ('{}' + '{}') uses '{}', which is not in the vocabulary", index,
                              printable(left), printable(right), printable(token)),
                  std::string(where));
    }
    return *id;
  };
  return {id_of(left), id_of(right), id_of(fmt::format("{}{}", left, right)),
          static_cast<std::uint32_t>(index)};
}

}  // namespace wring::text
