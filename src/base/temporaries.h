// Names of temporary files and folders that must not outlive the process, in a table that a signal handler
// may read: for the ends at which no destructor runs (a file cut under its mapping, a second Ctrl-C).
#pragma once

#include <filesystem>

namespace wring {

/// Enters `path` in the table while it lives. A path that finds no place (more than 64 at a time, or 4,096
/// bytes) is left to the next process that writes the same target.
class RegisteredTemporary {
 public:
  explicit RegisteredTemporary(const std::filesystem::path& path);
  ~RegisteredTemporary() { release(); }
  RegisteredTemporary(const RegisteredTemporary&) = delete;
  RegisteredTemporary& operator=(const RegisteredTemporary&) = delete;

  /// Takes the path out of the table: it has its final name, or is gone.
  void release();

 private:
  int slot_ = -1;
};

/// Removes every entry: files, then folders that are empty by then. Async-signal-safe; for a process that is
/// about to end.
void remove_registered_temporaries() noexcept;

}  // namespace wring
