// Text to token ids and back: byte-level BPE, SentencePiece-style BPE with byte fallback, and unigram models,
// from tokenizer.json or from a GGUF's metadata. Every part of the definition is checked at load, and what is
// not supported is refused by name: text is never tokenized by a guess.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wring::formats {
class GgufReader;
}

namespace wring::text {

using TokenId = std::int32_t;

/// Whether the text of special tokens ("<|im_start|>") inside a text becomes those tokens. Documents are
/// kPlain, templates kParse.
enum class Specials { kPlain, kParse };

class Tokenizer {
 public:
  /// From a model folder: tokenizer.json, with tokenizer_config.json for BOS and EOS. Errors: kBadInput
  /// naming file, field and value; kNotSupported for a model, normalizer, pre-tokenizer or decoder that is
  /// not implemented.
  static Tokenizer from_hf(const std::filesystem::path& folder);
  /// From tokenizer.ggml.* of a GGUF. Errors: as above, naming the key.
  static Tokenizer from_gguf(const formats::GgufReader& file);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  /// Ids of `text` (valid UTF-8 or not: bytes are kept), without BOS or EOS. Linear time in practice.
  /// Thread-safe.
  std::vector<TokenId> encode(std::string_view text, Specials specials) const;

  /// The bytes of the ids; may end inside a UTF-8 character. `skip_specials` leaves special tokens out. Where
  /// the definition writes a blank before a text that has none (Llama 2), a leading blank is taken off.
  std::string decode(std::span<const TokenId> ids, bool skip_specials = false) const;

  /// The bytes of one token as decode() would emit them inside a text; empty for ids outside the vocabulary.
  std::string_view bytes_of(TokenId id) const;

  std::int32_t vocab_size() const;  // highest id + 1
  bool is_special(TokenId id) const;
  std::optional<TokenId> id_of(std::string_view token) const;  // by its text in the vocabulary file

  std::optional<TokenId> bos() const;
  std::optional<TokenId> eos() const;
  bool adds_bos() const;  // whether the model's definition puts BOS before a document

  /// Identifies the definition (vocabulary, merges or scores, rules): equal hashes, equal tokenizers. The
  /// same rules may be written in two ways, so another hash does not mean other ids.
  const std::string& hash() const;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Turns a stream of tokens into text pieces that never end inside a UTF-8 character. The stream continues a
/// text, so a leading blank stays.
class StreamingDetokenizer {
 public:
  explicit StreamingDetokenizer(const Tokenizer& tokenizer, bool skip_specials = true)
      : tokenizer_(&tokenizer), skip_specials_(skip_specials) {}
  /// The text that is complete once `id` is added; may be empty.
  std::string push(TokenId id);
  /// What is left at the end, invalid bytes as U+FFFD.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool skip_specials_;
  std::string held_;  // an unfinished character
};

}  // namespace wring::text
