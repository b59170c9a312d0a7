// The rules run as a chain: a piece goes through all later rules before the next one is cut, so that no list
// of pieces of a long text is ever held (pretokenizer.h).
#include "text/pretokenizer.h"

#include <fmt/format.h>

#include <optional>

#include "text/replace_string.h"

namespace wring::text {

const std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

// Joins parts into pieces as a behaviour says; at most one piece is held back.
class Joiner {
 public:
  Joiner(SplitBehavior behavior, std::string_view text, const PreTokenizer::Emit& emit)
      : behavior_(behavior), text_(text), emit_(emit) {}

  void part(std::size_t begin, std::size_t end, bool is_match) {
    switch (behavior_) {
      case SplitBehavior::kIsolated:
        put({begin, end, is_match});
        return;
      case SplitBehavior::kRemoved:
        if (!is_match) put({begin, end, is_match});
        return;
      case SplitBehavior::kContiguous:
        join({begin, end, is_match}, held_ && held_->is_match == is_match);
        return;
      case SplitBehavior::kMergedWithPrevious:  // of several matches in a row only the first
        join({begin, end, is_match}, held_ && is_match && !held_->is_match);
        return;
      case SplitBehavior::kMergedWithNext:  // of several matches in a row only the last
        join({begin, end, is_match}, held_ && !is_match && held_->is_match);
        return;
    }
  }

  void finish() {
    if (held_) put(*held_);
  }

 private:
  struct Part {
    std::size_t begin, end;
    bool is_match;
  };

  void put(const Part& p) const {
    if (p.end > p.begin) emit_(text_.substr(p.begin, p.end - p.begin));
  }

  void join(const Part& p, bool with_held) {
    if (with_held) {
      held_->end = p.end;
      held_->is_match = p.is_match;
    } else {
      finish();
      held_ = p;
    }
  }

  SplitBehavior behavior_;
  std::string_view text_;
  const PreTokenizer::Emit& emit_;
  std::optional<Part> held_;
};

std::string_view name_of(SplitBehavior b) {
  switch (b) {
    case SplitBehavior::kRemoved:
      return "Removed";
    case SplitBehavior::kIsolated:
      return "Isolated";
    case SplitBehavior::kMergedWithPrevious:
      return "MergedWithPrevious";
    case SplitBehavior::kMergedWithNext:
      return "MergedWithNext";
    case SplitBehavior::kContiguous:
      return "Contiguous";
  }
  return "";
}

}  // namespace

void PreTokenizer::add_split(std::string_view pattern, SplitBehavior behavior, bool invert,
                             std::string_view where) {
  rules_.emplace_back(Split{Regex(pattern, where), behavior, invert});
}

void PreTokenizer::add_prefix_space() {
  rules_.emplace_back(PrefixSpace{});
}

void PreTokenizer::add_metaspace(std::string replacement, PrependScheme scheme) {
  rules_.emplace_back(Metaspace{std::move(replacement), scheme});
}

void PreTokenizer::split(std::string_view text, bool begins_text, RegexSearch& search,
                         const Emit& emit) const {
  if (!text.empty()) apply(0, {text, begins_text}, search, emit);
}

void PreTokenizer::apply(std::size_t index, Piece piece, RegexSearch& search, const Emit& emit) const {
  if (index == rules_.size()) {
    emit(piece.text);
    return;
  }
  if (const auto* rule = std::get_if<Split>(&rules_[index])) {
    const Emit next = [&](std::string_view part) {
      apply(index + 1, {part, piece.begins_text && part.data() == piece.text.data()}, search, emit);
    };
    Joiner joiner(rule->behavior, piece.text, next);
    search.for_each_part(rule->regex, piece.text, [&](std::size_t begin, std::size_t end, bool is_match) {
      joiner.part(begin, end, is_match != rule->invert);
    });
    joiner.finish();
  } else if (const auto* metaspace = std::get_if<Metaspace>(&rules_[index])) {
    std::string written = replace_string(piece.text, " ", metaspace->replacement);
    const bool wanted = metaspace->scheme == PrependScheme::kAlways ||
                        (metaspace->scheme == PrependScheme::kFirst && piece.begins_text);
    if (wanted && !written.starts_with(metaspace->replacement)) written.insert(0, metaspace->replacement);
    check_growth(piece.text.size(), written.size());
    apply(index + 1, {written, piece.begins_text}, search, emit);
  } else {
    const std::string with_blank =
        piece.text.starts_with(' ') ? std::string(piece.text) : fmt::format(" {}", piece.text);
    apply(index + 1, {with_blank, piece.begins_text}, search, emit);
  }
}

std::string PreTokenizer::definition() const {
  std::string out;
  for (const auto& rule : rules_) {
    if (const auto* split = std::get_if<Split>(&rule)) {
      out += fmt::format("split {} {} {}\n", name_of(split->behavior), split->invert, split->regex.pattern());
    } else if (const auto* metaspace = std::get_if<Metaspace>(&rule)) {
      out += fmt::format("metaspace {} {}\n", metaspace->replacement, static_cast<int>(metaspace->scheme));
    } else {
      out += "prefix_space\n";
    }
  }
  return out;
}

}  // namespace wring::text
