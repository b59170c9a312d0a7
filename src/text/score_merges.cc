// See score_merges.h.
#include "text/score_merges.h"

#include <algorithm>

#include "base/utf8.h"

namespace wring::text {

std::vector<Merge> merges_from_scores(const Vocabulary& vocabulary, std::span<const double> scores) {
  const auto score_of = [&](TokenId id) { return scores[static_cast<std::size_t>(id)]; };
  std::vector<Merge> merges;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string_view text = vocabulary.text(id);
    if (vocabulary.kind(id) != TokenKind::kNormal || byte_of_token(text)) continue;
    for (std::size_t cut = text.empty() ? 0 : character_bytes(text); cut < text.size();
         cut += character_bytes(text.substr(cut))) {
      const auto left = vocabulary.find(text.substr(0, cut)), right = vocabulary.find(text.substr(cut));
      if (left && right) merges.push_back({*left, *right, id, 0});
    }
  }
  std::ranges::stable_sort(merges, [&](const Merge& a, const Merge& b) {
    const double sa = score_of(a.result), sb = score_of(b.result);
    if (sa != sb) return sa > sb;
    if (a.result != b.result) return a.result < b.result;
    return vocabulary.text(a.left).size() > vocabulary.text(b.left).size();
  });
  for (std::size_t i = 1; i < merges.size(); ++i) {
    const bool equal = score_of(merges[i].result) == score_of(merges[i - 1].result);
    merges[i].rank = merges[i - 1].rank + (equal ? 0 : 1);
  }
  return merges;
}

}  // namespace wring::text
