// Encoding and decoding (tokenizer.h): added tokens first, then normalization, pre-tokenization and BPE for
// what lies between them. Bytes that are not UTF-8 are words of their own, since regexes are defined on
// characters only.
#include "text/tokenizer.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "text/normalizer.h"
#include "text/tokenizer_state.h"

namespace wring::text {

namespace {

std::vector<AddedToken> select(const std::vector<AddedToken>& tokens, bool normalized, bool nfc) {
  std::vector<AddedToken> out;
  for (const AddedToken& t : tokens) {
    if (t.normalized != normalized) continue;
    out.push_back(t);
    if (normalized && nfc) out.back().text = to_nfc(t.text);
  }
  return out;
}

}  // namespace

Tokenizer::State::State(TokenizerParts parts)
    : vocabulary((parts.vocabulary.finish(), std::move(parts.vocabulary))),
      bpe(vocabulary, std::move(parts.merges), parts.ignore_merges),
      // Without a normalizer "normalized" text is the text itself, but the order of the two searches remains.
      added_raw(select(parts.added, false, parts.nfc)),
      added_normalized(select(parts.added, true, parts.nfc)),
      pretokenizer(std::move(parts.pretokenizer)),
      nfc(parts.nfc),
      bos(parts.bos),
      eos(parts.eos),
      adds_bos(parts.adds_bos),
      hash(compute_hash(parts.added)) {}

std::string Tokenizer::State::compute_hash(const std::vector<AddedToken>& added) const {
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
  for (const Merge& m : bpe.merges()) sha.update(fmt::format("{} {}\n", m.left, m.right));
  for (const AddedToken& t : added) {
    if (t.single_word || t.lstrip || t.rstrip || (t.normalized && nfc)) {
      sha.update(fmt::format("{} {} {} {} {}\n", t.id, t.single_word, t.lstrip, t.rstrip, t.normalized));
    }
  }
  sha.update(pretokenizer.definition());
  sha.update(fmt::format("nfc {} ignore_merges {}\n", nfc, bpe.ignores_merges()));
  return sha.finish_hex();
}

void Tokenizer::State::encode_plain(std::string_view text, RegexSearch& search, Bpe::Scratch& scratch,
                                    std::vector<TokenId>& out) const {
  const PreTokenizer::Emit word = [&](std::string_view w) { bpe.encode(w, scratch, out); };
  while (!text.empty()) {
    const std::size_t valid = valid_utf8_prefix(text);
    if (valid > 0) {
      pretokenizer.split(text.substr(0, valid), search, word);
      text.remove_prefix(valid);
      continue;
    }
    std::size_t bad = 1;
    while (bad < text.size() && static_cast<unsigned char>(text[bad]) >= 0x80 &&
           valid_utf8_prefix(text.substr(bad, 4)) == 0) {
      ++bad;
    }
    word(text.substr(0, bad));
    text.remove_prefix(bad);
  }
}

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<TokenId> Tokenizer::encode(std::string_view text, Specials specials) const {
  std::vector<TokenId> out;
  RegexSearch search(text.size());
  Bpe::Scratch scratch;
  const auto token = [&](TokenId id) { out.push_back(id); };
  const auto after_normalization = [&](std::string_view piece) {
    state_->added_normalized.split(
        piece, specials, [&](std::string_view plain) { state_->encode_plain(plain, search, scratch, out); },
        token);
  };
  state_->added_raw.split(
      text, specials,
      [&](std::string_view piece) {
        if (state_->nfc) {
          after_normalization(to_nfc(piece));
        } else {
          after_normalization(piece);
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
  return {id_of(left), id_of(right), id_of(fmt::format("{}{}", left, right))};
}

}  // namespace wring::text
