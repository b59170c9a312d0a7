// Finds texts that largely repeat an earlier one, so that no document is measured twice under two names and
// none of the calibration text comes back in the final set. Shingles of five words and containment, after
// Broder, "On the resemblance and containment of documents" (1997), but counted exactly: a corpus here is
// thousands of documents, which needs no sketch.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace wring::lab {

class NearDuplicates {
 public:
  /// The earlier text (by order of keeping, from 0) that shares at least half of the distinct shingles of the
  /// smaller of the two, the one sharing most; none if there is no such text, and then `text` is kept. Words
  /// are separated by ASCII blanks; a text of fewer than five words is one shingle.
  std::optional<std::size_t> keep_unless_repeated(std::string_view text);

 private:
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> texts_with_;  // by shingle
  std::vector<std::uint32_t> shingles_in_;                                    // by text
};

}  // namespace wring::lab
