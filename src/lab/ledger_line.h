// One line of a shard, as text: composing and checking it. Shared by the ledger's reader and writer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lab/ledger.h"

namespace wring::lab {

inline constexpr std::string_view kHeaderKind = "header";

/// The row's line without newline. Errors: kBadInput naming the id for non-finite numbers and text that is
/// not UTF-8.
std::string compose_line(std::string_view id, std::string_view kind, const nlohmann::json& value);

/// Whether `line` has the form of a line and its checksum fits.
bool is_whole_line(std::string_view line);

/// Errors: kBadInput naming shard, line and, where it can be made out, the id.
LedgerRow parse_line(std::string_view line, const std::string& shard, std::int64_t line_number);

struct ShardContent {
  std::vector<LedgerRow> rows;     // headers too
  std::uint64_t whole_bytes = 0;   // up to the end of the last whole line, without its missing newline
  bool torn = false;               // bytes after that were dropped
  bool ends_with_newline = false;  // of the whole part
};

/// Reads one shard. Errors: those of parse_line.
ShardContent read_shard(const std::filesystem::path& path);

LedgerHeader header_of(const LedgerRow& row);
nlohmann::json header_value(const LedgerHeader& header);

/// Refuses headers that must not be mixed. `where` names the shard.
void require_same_study(const LedgerHeader& found, const LedgerHeader& expected, std::string_view where);

}  // namespace wring::lab
