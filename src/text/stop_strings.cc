// See stop_strings.h. A handful of short strings: comparing ends is enough.
#include "text/stop_strings.h"

#include <algorithm>

#include "base/error.h"

namespace wring::text {

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  if (std::ranges::any_of(stops_, &std::string::empty)) {
    throw Error(ErrorCode::kUsage, "a stop string is empty");
  }
  std::ranges::sort(stops_, std::greater<>{}, &std::string::size);  // the longest first
}

std::string StopStrings::push(std::string_view piece) {
  if (stopped()) return {};
  std::size_t end = held_.size();
  held_ += piece;
  while (end < held_.size()) {
    const std::string_view so_far = std::string_view(held_).substr(0, ++end);
    for (const std::string& stop : stops_) {
      if (!so_far.ends_with(stop)) continue;
      found_ = stop;
      std::string shown(so_far.substr(0, end - stop.size()));
      held_.clear();
      return shown;
    }
  }
  const std::size_t free = held_.size() - held_back();
  std::string shown = held_.substr(0, free);
  held_.erase(0, free);
  return shown;
}

std::size_t StopStrings::held_back() const {
  std::size_t most = 0;
  for (const std::string& stop : stops_) {
    for (std::size_t n = std::min(stop.size() - 1, held_.size()); n > most; --n) {
      if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, n))) most = n;
    }
  }
  return most;
}

std::string StopStrings::finish() {
  std::string rest;
  rest.swap(held_);
  return rest;
}

}  // namespace wring::text
