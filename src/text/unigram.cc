// See unigram.h.
#include "text/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/utf8.h"

namespace wring::text {

namespace {

constexpr double kUnknownPenalty = 10.0;  // SentencePiece's kUnkPenalty

}  // namespace

Unigram::Unigram(const Vocabulary& vocabulary, const Alphabet& alphabet, std::span<const double> scores)
    : alphabet_(alphabet), states_(1) {
  double lowest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    lowest = std::min(lowest, scores[i]);
    if (!vocabulary.can_be_made(id)) continue;
    if (vocabulary.text(id).empty() || byte_of_token(vocabulary.text(id))) continue;
    add(vocabulary.text(id), id, scores[i]);
  }
  unknown_score_ = lowest - kUnknownPenalty;
}

void Unigram::add(std::string_view piece, TokenId id, double score) {
  std::uint64_t state = 0;
  for (const char c : piece) {
    const auto [edge, is_new] = edges_.try_emplace(state << 8 | static_cast<unsigned char>(c),
                                                   static_cast<std::uint32_t>(states_.size()));
    if (is_new) states_.emplace_back();
    state = edge->second;
  }
  states_[state] = {id, score};
}

void Unigram::search(std::string_view word, std::vector<Scratch::Node>& nodes) const {
  nodes.assign(word.size() + 1, {0, -1, -1});
  for (std::size_t begin = 0; begin < word.size();) {
    const std::size_t character = character_bytes(word.substr(begin));
    const double so_far = nodes[begin].score;
    const auto offer = [&](std::size_t end, double score, TokenId id) {
      Scratch::Node& node = nodes[end];
      if (node.begin < 0 || so_far + score > node.score) {  // of equals the one that begins first
        node = {so_far + score, static_cast<std::int32_t>(begin), id};
      }
    };
    bool known = false;
    std::uint64_t state = 0;
    for (std::size_t end = begin; end < word.size();) {
      const auto edge = edges_.find(state << 8 | static_cast<unsigned char>(word[end]));
      if (edge == edges_.end()) break;
      state = edge->second;
      ++end;
      if (states_[state].id < 0) continue;
      offer(end, states_[state].score, states_[state].id);
      known |= end - begin == character;
    }
    if (!known) offer(begin + character, unknown_score_, -1);
    begin += character;
  }
}

void Unigram::encode(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const {
  if (word.size() >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw Error(ErrorCode::kBadInput, fmt::format("a word of {} bytes is too long to tokenize", word.size()));
  }
  auto& nodes = scratch.nodes_;
  search(word, nodes);
  auto& ends = scratch.ends_;
  ends.clear();
  for (auto end = static_cast<std::int32_t>(word.size()); end > 0;
       end = nodes[static_cast<std::size_t>(end)].begin) {
    ends.push_back(end);
  }
  std::size_t unknown_from = 0, done = 0;  // unknown characters in a row are spelled together
  const auto spell_unknown = [&] {
    if (done > unknown_from) alphabet_.spell(word.substr(unknown_from, done - unknown_from), out);
  };
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    const TokenId id = nodes[static_cast<std::size_t>(*end)].id;
    if (id >= 0) {
      spell_unknown();
      out.push_back(id);
      unknown_from = static_cast<std::size_t>(*end);
    }
    done = static_cast<std::size_t>(*end);
  }
  spell_unknown();
}

}  // namespace wring::text
