// See bpe.h. Symbols form a linked list over the word; a heap entry is stale if the pair at its position has
// another rank by now, and ranks belong to one pair each, so that is all there is to check.
#include "text/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"
#include "text/byte_level.h"

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

Bpe::Bpe(const Vocabulary& vocabulary, std::vector<Merge> merges, bool ignore_merges)
    : merges_(std::move(merges)) {
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const char b = static_cast<char>(byte);
    const auto id = vocabulary.find(to_byte_level({&b, 1}));
    byte_ids_[byte] = id && vocabulary.kind(*id) == TokenKind::kNormal ? *id : -1;
  }
  slots_.resize(std::bit_ceil(2 * merges_.size() + 2));
  for (std::size_t rank = 0; rank < merges_.size(); ++rank) {
    insert(merges_[rank].left, merges_[rank].right, static_cast<std::uint32_t>(rank));
  }
  if (!ignore_merges) return;
  Scratch scratch;
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.kind(id) != TokenKind::kNormal) continue;
    const std::string_view bytes = vocabulary.bytes(id);
    ids.clear();
    const bool encodable =
        std::ranges::all_of(bytes, [&](char b) { return byte_ids_[static_cast<unsigned char>(b)] >= 0; });
    if (encodable) merge_up(bytes, scratch, ids);
    if (ids != std::vector<TokenId>{id}) whole_words_.emplace(bytes, id);
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

void Bpe::insert(TokenId left, TokenId right, std::uint32_t rank) {
  const std::uint64_t key = pair_key(left, right);
  std::size_t i = spread(key) & (slots_.size() - 1);
  while (slots_[i].pair != Slot{}.pair && slots_[i].pair != key) i = (i + 1) & (slots_.size() - 1);
  slots_[i] = {key, rank};
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
  auto& symbols = scratch.symbols_;
  symbols.clear();
  scratch.heap_.clear();
  const auto n = static_cast<std::int32_t>(word.size());
  for (std::int32_t i = 0; i < n; ++i) {
    const auto byte = static_cast<unsigned char>(word[static_cast<std::size_t>(i)]);
    if (byte_ids_[byte] < 0) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("the tokenizer's vocabulary has no token for the byte 0x{:02X}", byte), {},
                  "remove this character from the text: it would be lost");
    }
    symbols.push_back({byte_ids_[byte], i - 1, i + 1 < n ? i + 1 : -1});
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
    left.id = merges_[slot->rank].result;
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
