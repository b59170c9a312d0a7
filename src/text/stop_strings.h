// Stop strings over a stream of text: what may be shown already, and where the text ends. Text that could
// still become a stop string is held back, so that no part of one is ever shown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wring::text {

class StopStrings {
 public:
  /// Errors: kUsage for an empty string.
  explicit StopStrings(std::vector<std::string> stops);

  /// Takes a piece of text and returns what may be shown now. A stop string is found with the byte that
  /// completes it, however the text is cut into pieces; of several completed by the same byte the longest
  /// counts. From then on all is empty.
  std::string push(std::string_view piece);

  bool stopped() const { return !found_.empty(); }
  /// The stop string that was found; empty before.
  const std::string& found() const { return found_; }

  /// What was held back, when the text ends for another reason; empty after a stop.
  std::string finish();

 private:
  std::size_t held_back() const;

  std::vector<std::string> stops_;
  std::string held_, found_;
};

}  // namespace wring::text
