// Which build this is: evidence rows and `wring --version` name it.
#pragma once

#include <string>

namespace wring::cli {

/// "0.1.0 (commit abcdef0)"; the commit is that of the source tree when the build was configured.
std::string build_id();

/// The text of --version: build and CPU levels.
std::string version_text();

}  // namespace wring::cli
