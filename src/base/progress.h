// How long work tells what it has done and learns that it should stop. Library code never prints: the command
// line draws.
#pragma once

#include <cstdint>
#include <string_view>

namespace wring {

class ProgressSink {
 public:
  virtual ~ProgressSink() = default;

  /// `done` of `total` `unit`s of `task` are finished ("quantizing", 17, 210, "tensors"). Thread-safe, cheap
  /// to call often.
  virtual void update(std::string_view task, std::uint64_t done, std::uint64_t total,
                      std::string_view unit) = 0;

  /// True once the user asked to stop.
  virtual bool cancelled() const = 0;

  /// Throws Error{kCancelled} once the user asked to stop. Long loops call it where stopping leaves nothing
  /// half-done.
  void throw_if_cancelled() const;
};

/// Shows nothing and is never cancelled.
ProgressSink& silent_progress();

}  // namespace wring
