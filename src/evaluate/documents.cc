// Reading and tokenizing documents.
#include "evaluate/documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"
#include "base/hash.h"
#include "base/lines.h"
#include "base/mapped_file.h"
#include "base/utf8.h"
#include "engine/chat.h"
#include "formats/json.h"

namespace wring::evaluate {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxTextBytes = std::size_t{2} << 30;
constexpr std::int64_t kMinTokens = 2;

// Whether `tail`, where valid UTF-8 ends, is the beginning of one character: what cutting a file at a byte
// leaves.
bool is_cut_character(std::string_view tail) {
  // Completing such a beginning with the lowest or highest continuation bytes gives a character.
  for (std::size_t missing = 1; missing + tail.size() <= 4; ++missing) {
    for (const char filler : {'\x80', '\xBF'}) {
      if (is_valid_utf8(std::string(tail) + std::string(missing, filler))) return true;
    }
  }
  return false;
}

[[noreturn]] void refuse_utf8(std::string_view text, std::size_t offset, const std::string& where) {
  throw Error(ErrorCode::kBadInput,
              fmt::format("text is not UTF-8: byte 0x{:02X} at offset {}",
                          static_cast<unsigned char>(text[offset]), offset),
              where, "convert the file to UTF-8");
}

void require_text(std::string_view text, const std::string& where) {
  if (text.find_first_not_of(" \t\r\n\v\f") != std::string_view::npos) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("blank text: {} bytes without a word, 0 tokens to score, at least {} are needed",
                          text.size(), kMinTokens),
              where);
}

TextDocument read_plain(const fs::path& file, std::string text, std::vector<std::string>& notes) {
  const std::string where = file.string();
  const std::size_t valid = valid_utf8_prefix(text);
  if (valid < text.size()) {
    if (!is_cut_character(std::string_view(text).substr(valid))) refuse_utf8(text, valid, where);
    notes.push_back(
        fmt::format("{}: ends inside a character; its last {} bytes, from offset {}, were dropped", where,
                    text.size() - valid, valid));
    text.resize(valid);
  }
  require_text(text, where);
  const std::string stem = replace_invalid_utf8(file.stem().string());
  return {stem, stem, std::move(text), where, {}};
}

std::string required_string(const nlohmann::json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end()) {
    throw Error(ErrorCode::kBadInput, fmt::format("field \"{}\" is missing", key), where,
                R"(each line needs {"id","domain","text"})");
  }
  if (!found->is_string()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("field \"{}\" is of type {}, a string is needed", key, found->type_name()),
                where);
  }
  std::string value = found->get<std::string>();
  if (value.empty()) throw Error(ErrorCode::kBadInput, fmt::format("field \"{}\" is empty", key), where);
  return value;
}

void read_jsonl(const fs::path& file, std::string_view content, std::vector<TextDocument>& documents) {
  for_each_line(content, file.string(), [&](std::string_view line, const std::string& where) {
    const std::size_t valid = valid_utf8_prefix(line);
    if (valid < line.size()) refuse_utf8(line, valid, where);
    const nlohmann::json object = formats::parse_json(line, where);
    if (!object.is_object()) {
      throw Error(ErrorCode::kBadInput, "not a JSON object", where,
                  R"(each line needs {"id","domain","text"})");
    }
    TextDocument document{required_string(object, "id", where),
                          required_string(object, "domain", where),
                          required_string(object, "text", where),
                          where,
                          {}};
    require_text(document.text, where);
    documents.push_back(std::move(document));
  });
}

// Bytes of text in all ids but the first, which is not scored. A blank that the tokenizer puts in front is no
// text.
std::int64_t scored_bytes(const text::Tokenizer& tokenizer, std::span<const text::TokenId> ids) {
  const auto bytes = [&](std::span<const text::TokenId> some) {
    return static_cast<std::int64_t>(tokenizer.decode(some, true).size());
  };
  return bytes(ids) - bytes(ids.first(1));
}

}  // namespace

TextSet read_texts(std::span<const fs::path> files) {
  TextSet set;
  for (const fs::path& file : files) {
    std::string content = read_text_file(file, kMaxTextBytes);
    if (file.extension() != ".jsonl") {
      set.documents.push_back(read_plain(file, std::move(content), set.notes));
    } else {
      const std::size_t before = set.documents.size();
      read_jsonl(file, content, set.documents);
      if (set.documents.size() == before) {
        throw Error(ErrorCode::kBadInput, "empty: the file holds no document", file.string());
      }
    }
  }
  if (set.documents.empty()) throw Error(ErrorCode::kUsage, "no text file was given");
  std::unordered_map<std::string, const TextDocument*> known;
  for (TextDocument& d : set.documents) {
    const auto [first, added] = known.emplace(d.id, &d);
    if (!added) {
      throw Error(ErrorCode::kBadInput, fmt::format("document id \"{}\" stands twice", printable(d.id)),
                  fmt::format("{} and {}", first->second->source, d.source));
    }
    d.sha256 = sha256_hex(d.text);
  }
  return set;
}

void check_context(std::int64_t context, std::int64_t max_position_embeddings) {
  if (context < kMinTokens) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("a context of {} tokens is below the minimum of {}", context, kMinTokens));
  }
  if (context > max_position_embeddings) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("a context of {} tokens is longer than the model's max_position_embeddings of {}",
                            context, max_position_embeddings),
                {}, fmt::format("use --context {} or less", max_position_embeddings));
  }
}

std::vector<Document> tokenize(const TextSet& texts, const text::Tokenizer& tokenizer, std::int64_t context,
                               std::int64_t max_position_embeddings) {
  check_context(context, max_position_embeddings);
  std::vector<Document> documents;
  documents.reserve(texts.documents.size());
  for (const TextDocument& text : texts.documents) {
    Document d{text.id, text.domain, text.sha256, {}, 0, false};
    d.ids = with_context(text.source, [&] { return engine::encode_document(tokenizer, text.text); });
    d.cut = d.ids.size() > static_cast<std::size_t>(context);
    if (d.cut) d.ids.resize(static_cast<std::size_t>(context));
    if (static_cast<std::int64_t>(d.ids.size()) < kMinTokens) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("document \"{}\" has {} tokens, at least {} are needed", printable(d.id),
                              d.ids.size(), kMinTokens),
                  text.source);
    }
    d.scored_bytes = scored_bytes(tokenizer, d.ids);
    documents.push_back(std::move(d));
  }
  return documents;
}

}  // namespace wring::evaluate
