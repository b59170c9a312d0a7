// Reading a ledger: all shards, checked line by line, merged by row id.
#include "lab/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/error.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "lab/ledger_line.h"

namespace wring::lab {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> shard_paths(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code fault;
  if (!fs::exists(folder, fault)) return paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, fault)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("rows-") && name.ends_with(".jsonl")) paths.push_back(entry.path());
  }
  if (fault) throw_errno(fault.value(), "reading the ledger", folder.string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

Ledger Ledger::read(const fs::path& folder) {
  Ledger ledger;
  for (const fs::path& path : shard_paths(folder)) {
    ShardContent content = with_context(folder.string(), [&] { return read_shard(path); });
    ledger.torn_lines_ += content.torn ? 1 : 0;
    for (LedgerRow& row : content.rows) {
      ledger.checksums_.push_back(row.checksum);
      if (row.kind == kHeaderKind) {
        const LedgerHeader header = header_of(row);
        if (!ledger.headers_.empty()) {
          require_same_study(header, ledger.headers_.front(), path.string());
        }
        if (std::find(ledger.headers_.begin(), ledger.headers_.end(), header) == ledger.headers_.end()) {
          ledger.headers_.push_back(header);
        }
        continue;
      }
      const auto [known, added] = ledger.by_id_.emplace(row.id, ledger.rows_.size());
      if (added) {
        ledger.rows_.push_back(std::move(row));
        continue;
      }
      const LedgerRow& first = ledger.rows_[known->second];
      if (first.kind != row.kind || first.value != row.value) {
        throw Error(ErrorCode::kBadInput,
                    fmt::format("duplicate ledger id {} with different values", printable(row.id)),
                    fmt::format("{}: {} line {} and {} line {}", folder.string(), first.shard, first.line,
                                row.shard, row.line),
                    "move one of the two shards away to measure its rows again");
      }
    }
  }
  return ledger;
}

void Ledger::require(const LedgerHeader& expected) const {
  for (const LedgerHeader& header : headers_) require_same_study(header, expected, "ledger");
}

const LedgerRow* Ledger::find(std::string_view id) const {
  const auto found = by_id_.find(std::string(id));
  return found == by_id_.end() ? nullptr : &rows_[found->second];
}

std::string Ledger::root_hash() const {
  std::vector<std::uint64_t> sorted = checksums_;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  Sha256 hash;
  for (const std::uint64_t checksum : sorted) hash.update(fmt::format("{:016x}\n", checksum));
  return hash.finish_hex();
}

}  // namespace wring::lab
