#include "cli/version.h"

#include <fmt/format.h>

#include "base/cpu.h"

namespace wring::cli {

std::string build_id() {
  return fmt::format("{} (commit {})", WRING_VERSION, WRING_COMMIT);
}

std::string version_text() {
  return fmt::format("wring {}, CPU levels scalar, avx2, avx512; best here: {}", build_id(),
                     isa_name(cpu_info().best));
}

}  // namespace wring::cli
