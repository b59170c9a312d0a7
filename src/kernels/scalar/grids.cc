// Lists of patterns from the sets that grid_members.h holds, made by the compiler.
#include "kernels/scalar/grids.h"

#include <string_view>

#include "kernels/scalar/grid_members.h"

namespace wring::kernels::scalar {
namespace {

constexpr unsigned hex_value(char digit) {
  return static_cast<unsigned>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

// A set of more than kPatterns has no list: at() is no constant expression then. One of fewer leaves the last
// entry 0.
template <std::size_t kPatterns, unsigned kLevels>
consteval Grid<kPatterns> list_of(std::string_view members) {
  constexpr unsigned kWeights = kLevels == 3 ? 8 : 4;
  constexpr unsigned kBits = kLevels == 3 ? 2 : 3;
  Grid<kPatterns> list{};
  std::size_t found = 0;
  for (unsigned number = 0; number < 4 * members.size(); ++number) {
    if ((hex_value(members[number / 4]) >> number % 4 & 1) == 0) continue;
    unsigned pattern = 0;
    for (unsigned weight = 0, rest = number; weight < kWeights; ++weight, rest /= kLevels)
      pattern |= rest % kLevels << (kBits * weight);
    list.at(found++) = static_cast<std::uint16_t>(pattern);
  }
  return list;
}

}  // namespace

constexpr Grid<2048> kIq1Grid = list_of<2048, 3>(kIq1Members);
constexpr Grid<256> kIq2XxsGrid = list_of<256, 3>(kIq2XxsMembers);
constexpr Grid<512> kIq2XsGrid = list_of<512, 3>(kIq2XsMembers);
constexpr Grid<1024> kIq2SGrid = list_of<1024, 3>(kIq2SMembers);
constexpr Grid<256> kIq3XxsGrid = list_of<256, 8>(kIq3XxsMembers);
constexpr Grid<512> kIq3SGrid = list_of<512, 8>(kIq3SMembers);

static_assert(kIq1Grid.back() != 0 && kIq2XxsGrid.back() != 0 && kIq2XsGrid.back() != 0 &&
              kIq2SGrid.back() != 0 && kIq3XxsGrid.back() != 0 && kIq3SGrid.back() != 0);

}  // namespace wring::kernels::scalar
