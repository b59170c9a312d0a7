// The record of everything that was measured. Rows are lines of append-only JSONL shards in one folder, one
// writer each; a line carries the XXH3 of its row, and counts as written once fsync has returned. Whatever
// else a study keeps (SQLite index, reports, caches) can be made again from these lines.
//
//   {"xxh3":"<16 hex digits>","row":{"id":…,"kind":…,"value":{…}}}
//
// The checksum covers the bytes after "row": up to the last brace. A shard's first row is its header (kind
// "header"). A process may be killed at any time: a last line that is not whole was never acknowledged and is
// dropped; damage anywhere else is refused, never skipped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace wring::lab {

/// Under which conditions the rows of a shard were measured.
struct LedgerHeader {
  std::string protocol;    // id of the frozen plan: documents, positions, settings
  std::string model_hash;  // of the model that the study is about (its reference)
  std::string build;
  std::string cpu_level;
  std::string compute_mode;

  bool operator==(const LedgerHeader&) const = default;
};

struct LedgerRow {
  std::string id;    // "eval/q4_k/ko-0017": unique within a ledger
  std::string kind;  // "document", "speed", "quantize"
  nlohmann::json value;
  std::uint64_t checksum = 0;
  std::string shard;  // file name
  std::int64_t line = 0;
};

/// All shards of a folder, read and checked.
class Ledger {
 public:
  /// Reads every "rows-*.jsonl" of `folder`; a missing folder is an empty ledger. Errors: kBadInput naming
  /// file, line and id for a damaged line, a value that is not finite, or an id that stands twice with
  /// different values; naming both values for shards that differ in protocol, model or compute mode.
  static Ledger read(const std::filesystem::path& folder);

  /// Refuses (kBadInput, both values named) a ledger measured on another model, protocol or compute mode.
  void require(const LedgerHeader& expected) const;

  /// In the order of shard names and lines; identical duplicates once; headers left out.
  const std::vector<LedgerRow>& rows() const { return rows_; }
  /// Null if there is none.
  const LedgerRow* find(std::string_view id) const;

  /// Distinct headers, in the order met: more than one where builds or CPU levels differ.
  const std::vector<LedgerHeader>& headers() const { return headers_; }
  /// Last lines that were not whole and were dropped.
  int torn_lines() const { return torn_lines_; }

  /// SHA-256 over the distinct row checksums, headers included, as 16 hex digits and a newline each, sorted:
  /// what a report names to be checkable. Depends neither on shards nor on the order of writing.
  std::string root_hash() const;

 private:
  std::vector<LedgerRow> rows_;
  std::unordered_map<std::string, std::size_t> by_id_;
  std::vector<LedgerHeader> headers_;
  std::vector<std::uint64_t> checksums_;
  int torn_lines_ = 0;
};

/// Appends to one shard. Thread-safe. A row reaches the operating system in append() (so killing the process
/// loses none) and the disk within 100 ms or in flush() (so cutting the power loses no acknowledged one).
class LedgerWriter {
 public:
  /// Opens or makes folder/rows-<writer>.jsonl. The torn last line of a killed writer is cut off; a whole one
  /// without newline is kept. Errors: kUsage for a writer id with other characters than letters, digits, -
  /// and _, or a shard that another process is writing; those of Ledger::read and Ledger::require; kIo.
  LedgerWriter(const std::filesystem::path& folder, const std::string& writer, const LedgerHeader& header);
  /// Flushes; a failure to do so was or will be seen by whoever called flush().
  ~LedgerWriter();
  LedgerWriter(const LedgerWriter&) = delete;
  LedgerWriter& operator=(const LedgerWriter&) = delete;

  /// Errors: kBadInput naming the id for a value that is not finite or text that is not UTF-8; kIo (then the
  /// shard is as before).
  void append(std::string_view id, std::string_view kind, const nlohmann::json& value);

  /// Returns once every row appended so far is on disk. Errors: kIo.
  void flush();

  /// Rows appended through this object that are known to be on disk.
  std::uint64_t acknowledged() const;

  const std::filesystem::path& path() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wring::lab
