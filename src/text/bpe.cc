// See bpe.h. Symbols form a linked list over the word; a heap entry is stale if the pair at its position has
// another rank by now. Of pairs with equal ranks an old entry may stand for a new pair, which is due just
// then.
#include "text/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"

namespace wring::text {

namespace {

std::uint64_t pair_key(TokenId left, TokenId right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

std::size_t spread(std::uint64_t key) {
  key *= 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
  return static_cast<std::size_t>(key ^ key >> 29);
}

}  // namespace

Bpe::Bpe(const Vocabulary& vocabulary, const Alphabet& alphabet, const std::vector<Merge>& merges,
         bool ignore_merges)
    : alphabet_(alphabet) {
  slots_.resize(std::bit_ceil(2 * merges.size() + 2));
  for (const Merge& merge : merges) insert(merge);
  if (!ignore_merges) return;
  Scratch scratch;
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.can_be_made(id)) continue;
    ids.clear();
    try {
      merge_up(vocabulary.word(id), scratch, ids);
    } catch (const Error&) {  // its letters are no tokens: only the whole word is
      ids.clear();
    }
    if (ids != std::vector<TokenId>{id}) whole_words_.emplace(vocabulary.word(id), id);
  }
}

const Bpe::Slot* Bpe::find(TokenId left, TokenId right) const {
  const std::uint64_t key = pair_key(left, right);
  for (std::size_t i = spread(key);; ++i) {
    const Slot& slot = slots_[i & (slots_.size() - 1)];
    if (slot.pair == key) return &slot;
    if (slot.pair == Slot{}.pair) return nullptr;
  }
}

void Bpe::insert(const Merge& merge) {
  const std::uint64_t key = pair_key(merge.left, merge.right);
  std::size_t i = spread(key) & (slots_.size() - 1);
  while (slots_[i].pair != Slot{}.pair && slots_[i].pair != key) i = (i + 1) & (slots_.size() - 1);
  slots_[i] = {key, merge.rank, merge.result};
}

void Bpe::encode(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const {
  if (const auto whole = whole_words_.find(word); whole != whole_words_.end()) {
    out.push_back(whole->second);
    return;
  }
  if (word.size() > Scratch::kMaxCachedBytes) {
    merge_up(word, scratch, out);
    return;
  }
  if (const auto seen = scratch.seen_.find(word); seen != scratch.seen_.end()) {
    const auto from = scratch.seen_ids_.begin() + static_cast<std::ptrdiff_t>(seen->second.begin);
    out.insert(out.end(), from, from + seen->second.count);
    return;
  }
  const std::size_t before = out.size();
  merge_up(word, scratch, out);
  if (scratch.seen_.size() == Scratch::kMaxCached) {
    scratch.seen_.clear();
    scratch.seen_ids_.clear();
  }
  scratch.seen_.emplace(
      word, Scratch::Range{scratch.seen_ids_.size(), static_cast<std::uint32_t>(out.size() - before)});
  scratch.seen_ids_.insert(scratch.seen_ids_.end(), out.begin() + static_cast<std::ptrdiff_t>(before),
                           out.end());
}

void Bpe::offer(Scratch& scratch, std::int32_t left) const {
  if (left < 0) return;
  const auto& symbols = scratch.symbols_;
  const std::int32_t right = symbols[static_cast<std::size_t>(left)].next;
  if (right < 0) return;
  const Slot* slot =
      find(symbols[static_cast<std::size_t>(left)].id, symbols[static_cast<std::size_t>(right)].id);
  if (slot == nullptr) return;
  scratch.heap_.push_back(static_cast<std::uint64_t>(slot->rank) << 32 | static_cast<std::uint32_t>(left));
  std::ranges::push_heap(scratch.heap_, std::greater<>{});
}

void Bpe::merge_up(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const {
  if (word.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw Error(ErrorCode::kBadInput, fmt::format("a word of {} bytes is too long to tokenize", word.size()));
  }
  scratch.letters_.clear();
  alphabet_.spell(word, scratch.letters_);
  auto& symbols = scratch.symbols_;
  symbols.clear();
  scratch.heap_.clear();
  const auto n = static_cast<std::int32_t>(scratch.letters_.size());
  for (std::int32_t i = 0; i < n; ++i) {
    symbols.push_back({scratch.letters_[static_cast<std::size_t>(i)], i - 1, i + 1 < n ? i + 1 : -1});
  }
  for (std::int32_t i = 0; i + 1 < n; ++i) offer(scratch, i);

  while (!scratch.heap_.empty()) {
    std::ranges::pop_heap(scratch.heap_, std::greater<>{});
    const std::uint64_t top = scratch.heap_.back();
    scratch.heap_.pop_back();
    auto& left = symbols[static_cast<std::size_t>(top & 0xFFFFFFFFu)];
    if (left.id < 0 || left.next < 0) continue;
    auto& right = symbols[static_cast<std::size_t>(left.next)];
    const Slot* slot = find(left.id, right.id);
    if (slot == nullptr || slot->rank != top >> 32) continue;
    left.id = slot->result;
    left.next = right.next;
    right.id = -1;
    if (left.next >= 0) {
      symbols[static_cast<std::size_t>(left.next)].previous = static_cast<std::int32_t>(top & 0xFFFFFFFFu);
    }
    offer(scratch, left.previous);
    offer(scratch, static_cast<std::int32_t>(top & 0xFFFFFFFFu));
  }
  for (const auto& symbol : symbols) {
    if (symbol.id >= 0) out.push_back(symbol.id);
  }
}

}  // namespace wring::text
