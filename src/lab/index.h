// SQLite over the ledger, for questions over many rows. The index is never the
// record: it carries the root hash of the rows it was made from and is rebuilt whenever that differs, or the
// file is missing or damaged.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "lab/ledger.h"

namespace wring::lab {

class LedgerIndex {
 public:
  /// Opens the index at `path`, rebuilding it from `ledger` unless it already holds exactly its rows. Errors:
  /// kIo.
  LedgerIndex(std::filesystem::path path, const Ledger& ledger);
  ~LedgerIndex();
  LedgerIndex(const LedgerIndex&) = delete;
  LedgerIndex& operator=(const LedgerIndex&) = delete;

  std::optional<LedgerRow> find(std::string_view id) const;

  /// Rows of a kind whose ids begin with `id_prefix`, in the order of ids.
  std::vector<LedgerRow> rows(std::string_view kind, std::string_view id_prefix = {}) const;

  /// True if the constructor had to build it anew.
  bool was_rebuilt() const { return rebuilt_; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  bool rebuilt_ = false;
};

}  // namespace wring::lab
