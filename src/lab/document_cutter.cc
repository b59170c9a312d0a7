#include "lab/document_cutter.h"

#include <algorithm>

namespace wring::lab {
namespace {

constexpr std::size_t kLongestPiece = 2000;
constexpr std::string_view kBlanks = " \t\n\r\v\f";

bool is_blank(std::string_view s) {
  return s.find_first_not_of(kBlanks) == std::string_view::npos;
}

// Lines with their ends; a long line in parts.
std::vector<std::string_view> pieces_of(std::string_view text) {
  std::vector<std::string_view> pieces;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t newline = text.find('\n', at);
    std::size_t end = newline == std::string_view::npos ? text.size() : newline + 1;
    if (end - at > kLongestPiece) {
      const std::size_t blank = text.rfind(' ', at + kLongestPiece);
      end = at + kLongestPiece;
      if (blank != std::string_view::npos && blank > at) {
        end = blank + 1;
      } else {
        while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
      }
    }
    pieces.push_back(text.substr(at, end - at));
    at = end;
  }
  return pieces;
}

std::string_view without_blank_end(std::string_view s) {
  const std::size_t last = s.find_last_not_of(kBlanks);
  return last == std::string_view::npos ? std::string_view() : s.substr(0, last + 1);
}

}  // namespace

std::int64_t estimated_tokens(std::string_view text) {
  return static_cast<std::int64_t>(text.size() / 4);
}

CutText cut_documents(std::string_view text, std::int64_t tokens, const TokenCounter& count) {
  const std::vector<std::string_view> pieces = pieces_of(text);
  CutText result;
  for (std::size_t i = 0; i < pieces.size();) {
    if (is_blank(pieces[i])) {
      ++i;
      continue;
    }
    const char* const begin = pieces[i].data();
    std::int64_t sum = 0;
    bool done = false;
    while (i < pieces.size() && !done) {
      const std::string_view piece = pieces[i++];
      if (!is_blank(piece)) sum += count(piece);
      if (sum < tokens) continue;
      const bool paragraph_ends = i == pieces.size() || is_blank(pieces[i]);
      if (!paragraph_ends && sum < tokens + tokens / 4) continue;
      const auto length = static_cast<std::size_t>(piece.data() + piece.size() - begin);
      const std::string_view document = without_blank_end({begin, length});
      // Pieces may hold more tokens apart than together: the whole decides, and the sum goes on from there.
      sum = count(document);
      if (sum < tokens) continue;
      result.documents.push_back(document);
      done = true;
    }
    if (!done) result.left_over_bytes = static_cast<std::size_t>(text.data() + text.size() - begin);
  }
  return result;
}

}  // namespace wring::lab
