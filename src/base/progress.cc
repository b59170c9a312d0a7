#include "base/progress.h"

#include "base/error.h"

namespace wring {
namespace {

class SilentProgress final : public ProgressSink {
 public:
  void update(std::string_view, std::uint64_t, std::uint64_t, std::string_view) override {}
  bool cancelled() const override { return false; }
};

}  // namespace

void ProgressSink::throw_if_cancelled() const {
  if (cancelled()) throw Error(ErrorCode::kCancelled, "cancelled");
}

ProgressSink& silent_progress() {
  static SilentProgress sink;
  return sink;
}

}  // namespace wring
