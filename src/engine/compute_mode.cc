#include "engine/compute_mode.h"

namespace wring::engine {

std::string_view compute_mode_name(ComputeMode mode) {
  switch (mode) {
    case ComputeMode::kExact:
      return "exact";
    case ComputeMode::kPacked:
      return "packed";
  }
  return "?";
}

}  // namespace wring::engine
