// For libFuzzer's targets: the bytes become files where loaders look for them, and the only way out of a
// loader is its result or an Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/error.h"

namespace wring::fuzz {

/// One folder a process, where TMPDIR says.
inline const std::filesystem::path& folder() {
  static const std::filesystem::path made = [] {
    std::string name = std::filesystem::temp_directory_path() / "wring-fuzz-XXXXXX";  // mkdtemp fills the X
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    std::atexit([] { std::filesystem::remove_all(folder()); });
    return std::filesystem::path(name);
  }();
  return made;
}

inline std::filesystem::path write(std::string_view name, const std::uint8_t* data, std::size_t size) {
  const std::filesystem::path path = folder() / name;
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  return path;
}

/// What is not an Error (std::bad_alloc among them) reaches libFuzzer, which reports it. Always 0.
template <class F>
int expect_result_or_error(F&& f) {
  try {
    f();
  } catch (const Error&) {
  }
  return 0;
}

}  // namespace wring::fuzz
