#include "lab/near_duplicates.h"

#include <algorithm>
#include <string>

#include "base/hash.h"

namespace wring::lab {
namespace {

constexpr std::size_t kWords = 5;

std::vector<std::uint64_t> distinct_shingles(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; (at = text.find_first_not_of(" \t\r\n\v\f", at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(" \t\r\n\v\f", at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  std::vector<std::uint64_t> shingles;
  std::string joined;
  for (std::size_t i = 0; i == 0 || i + kWords <= words.size(); ++i) {
    joined.clear();
    for (std::size_t j = i; j < std::min(i + kWords, words.size()); ++j) joined.append(words[j]) += ' ';
    shingles.push_back(xxh3_64(joined));
  }
  std::sort(shingles.begin(), shingles.end());
  shingles.erase(std::unique(shingles.begin(), shingles.end()), shingles.end());
  return shingles;
}

}  // namespace

std::optional<std::size_t> NearDuplicates::keep_unless_repeated(std::string_view text) {
  const std::vector<std::uint64_t> shingles = distinct_shingles(text);
  std::unordered_map<std::uint32_t, std::size_t> shared;
  for (const std::uint64_t s : shingles) {
    const auto found = texts_with_.find(s);
    if (found == texts_with_.end()) continue;
    for (const std::uint32_t t : found->second) ++shared[t];
  }
  std::optional<std::size_t> best;
  std::size_t best_shared = 0;
  for (const auto& [t, n] : shared) {
    const std::size_t smaller = std::min<std::size_t>(shingles.size(), shingles_in_[t]);
    const bool better = n > best_shared || (n == best_shared && best && t < *best);
    if (2 * n >= smaller && better) {
      best = t;
      best_shared = n;
    }
  }
  if (best) return best;
  const auto index = static_cast<std::uint32_t>(shingles_in_.size());
  for (const std::uint64_t s : shingles) texts_with_[s].push_back(index);
  shingles_in_.push_back(static_cast<std::uint32_t>(shingles.size()));
  return std::nullopt;
}

}  // namespace wring::lab
