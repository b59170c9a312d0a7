// How numbers look in a report. Signs of differences are always written; what is exactly 0 is "0", so that it
// can be told from what was rounded to it.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "evaluate/statistics.h"

namespace wring::report {

inline std::string fixed(double value, int digits) {
  return value == 0 ? "0" : fmt::format("{:.{}f}", value, digits);
}

inline std::string signed_fixed(double value, int digits) {
  return value == 0 ? "0" : fmt::format("{:+.{}f}", value, digits);
}

/// "+0.0230 [+0.0207, +0.0252]"
inline std::string with_interval(const evaluate::Interval& i, int digits = 4) {
  return fmt::format("{} [{}, {}]", signed_fixed(i.mean, digits), signed_fixed(i.low, digits),
                     signed_fixed(i.high, digits));
}

/// Three significant digits for divergences, which span orders of magnitude.
inline std::string significant(double value) {
  return value == 0 ? "0" : fmt::format("{:.3g}", value);
}

inline std::string megabytes(std::uint64_t bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / 1e6);
}

/// 130,944
inline std::string grouped(std::int64_t value) {
  std::string digits = fmt::format("{}", value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > (value < 0 ? 1 : 0); at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

}  // namespace wring::report
