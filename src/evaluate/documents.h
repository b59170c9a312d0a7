// The texts that a model is measured on: read, checked, hashed and cut to ids. Nothing is normalised on the
// way: the same bytes in give the same tokens, line ends and NUL bytes included.
//
// A .jsonl file holds a line {"id","domain","text"} for each document. Any other file is one document, its
// name without extension being id and domain.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace wring::evaluate {

using TokenId = text::TokenId;

struct TextDocument {
  std::string id;
  std::string domain;
  std::string text;    // valid UTF-8
  std::string source;  // "final.jsonl line 3", for errors
  std::string sha256;  // of `text`
};

struct TextSet {
  std::vector<TextDocument> documents;
  std::vector<std::string> notes;  // what was changed on reading, a line each: must be shown
};

/// Reads the files in order. Errors, naming file, line and field: kBadInput for a folder, a missing or odd
/// field, invalid UTF-8 (with the byte's offset), a text of white space only, no document at all, or an id
/// used twice; a character cut at the very end of a plain file is dropped and noted instead.
TextSet read_texts(std::span<const std::filesystem::path> files);

/// A document as a model sees it.
struct Document {
  std::string id;
  std::string domain;
  std::string sha256;             // of the whole text, before the cut
  std::vector<TokenId> ids;       // BOS first if the tokenizer adds one; at most `context`
  std::int64_t scored_bytes = 0;  // of text in the ids but the first: what bits per byte divides by
  bool cut = false;               // text was left over at `context`
};

/// Tokenizes plainly: the text of a special token stays text. Errors: kBadInput where `context` is below 2 or
/// above `max_position_embeddings` (both named), or a document has fewer than 2 tokens.
std::vector<Document> tokenize(const TextSet& texts, const text::Tokenizer& tokenizer, std::int64_t context,
                               std::int64_t max_position_embeddings);

/// The checks on `context` alone, so that a wrong one is refused before any text is read.
void check_context(std::int64_t context, std::int64_t max_position_embeddings);

}  // namespace wring::evaluate
