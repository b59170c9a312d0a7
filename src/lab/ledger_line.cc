// The text form of ledger rows. Checks are strict because a report can be no better than its rows.
#include "lab/ledger_line.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "base/utf8.h"
#include "formats/json.h"

namespace wring::lab {
namespace {

// {"xxh3":"0123456789abcdef","row":…}
constexpr std::string_view kOpen = R"({"xxh3":")";
constexpr std::string_view kMiddle = R"(","row":)";
constexpr std::size_t kDigits = 16;
constexpr std::size_t kRowAt = kOpen.size() + kDigits + kMiddle.size();
constexpr std::size_t kMaxShardBytes = std::size_t{4} << 30;

std::string checksum_hex(std::string_view row) {
  return fmt::format("{:016x}", xxh3_64(row));
}

bool has_line_form(std::string_view line) {
  return line.size() > kRowAt + 1 && line.starts_with(kOpen) &&
         line.substr(kOpen.size() + kDigits, kMiddle.size()) == kMiddle && line.back() == '}';
}

std::string_view row_text(std::string_view line) {
  return line.substr(kRowAt, line.size() - kRowAt - 1);
}

std::string_view stored_checksum(std::string_view line) {
  return line.substr(kOpen.size(), kDigits);
}

// The id of a line that may be damaged, for messages.
std::string guess_id(std::string_view line) {
  constexpr std::string_view kKey = R"("id":")";
  const std::size_t at = line.find(kKey);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = at + kKey.size(), end = line.find('"', begin);
  if (end == std::string_view::npos) return {};
  return fmt::format(" (id {})", printable(line.substr(begin, end - begin)));
}

void require_finite(const nlohmann::json& value, std::string_view id, const std::string& field) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} is {}, a ledger holds finite numbers only", field, value.get<double>()),
                fmt::format("ledger row {}", printable(id)));
  }
  if (value.is_object()) {
    for (const auto& [key, child] : value.items())
      require_finite(child, id, fmt::format("{}.{}", field, key));
  } else if (value.is_array()) {
    for (const nlohmann::json& child : value) require_finite(child, id, field + "[]");
  }
}

}  // namespace

std::string compose_line(std::string_view id, std::string_view kind, const nlohmann::json& value) {
  require_finite(value, id, "value");
  try {
    const nlohmann::json row = {{"id", id}, {"kind", kind}, {"value", value}};
    const std::string text = row.dump();
    return fmt::format("{}{}{}{}}}", kOpen, checksum_hex(text), kMiddle, text);
  } catch (const nlohmann::json::exception& e) {
    throw Error(ErrorCode::kBadInput, fmt::format("cannot write as JSON: {}", e.what()),
                fmt::format("ledger row {}", printable(id)));
  }
}

bool is_whole_line(std::string_view line) {
  return has_line_form(line) && checksum_hex(row_text(line)) == stored_checksum(line);
}

LedgerRow parse_line(std::string_view line, const std::string& shard, std::int64_t line_number) {
  const std::string where = fmt::format("{} line {}{}", shard, line_number, guess_id(line));
  constexpr const char* kTodo = "restore the file, or move it away to measure its rows again";
  if (!has_line_form(line)) {
    throw Error(ErrorCode::kBadInput, "damaged ledger: not a ledger line", where, kTodo);
  }
  const std::string computed = checksum_hex(row_text(line));
  if (computed != stored_checksum(line)) {
    throw Error(ErrorCode::kBadInput, "damaged ledger: checksum does not fit",
                fmt::format("{}: stored {}, computed {}", where, printable(stored_checksum(line)), computed),
                kTodo);
  }
  // Strict JSON has no NaN and no Infinity: a row that holds one is refused here, with its id.
  const nlohmann::json json = formats::parse_json(row_text(line), where);
  LedgerRow row;
  if (!json.is_object() || json.size() != 3 || !json.contains("value")) {
    throw Error(ErrorCode::kBadInput, "damaged ledger: a row needs id, kind and value", where, kTodo);
  }
  row.id = formats::json_string_or(json, "id", "", where);
  row.kind = formats::json_string_or(json, "kind", "", where);
  if (row.id.empty() || row.kind.empty()) {
    throw Error(ErrorCode::kBadInput, "damaged ledger: a row needs id, kind and value", where, kTodo);
  }
  row.value = json.at("value");
  require_finite(row.value, row.id, "value");
  row.checksum = xxh3_64(row_text(line));
  row.shard = shard;
  row.line = line_number;
  return row;
}

ShardContent read_shard(const std::filesystem::path& path) {
  const std::string text = read_text_file(path, kMaxShardBytes);
  const std::string shard = path.filename().string();
  ShardContent content;
  std::size_t at = 0;
  for (std::int64_t number = 1; at < text.size(); ++number) {
    const std::size_t newline = text.find('\n', at);
    const bool last = newline == std::string::npos;
    const std::string_view line = std::string_view(text).substr(at, last ? text.size() - at : newline - at);
    if (last && !is_whole_line(line)) {
      content.torn = true;
      break;
    }
    content.rows.push_back(parse_line(line, shard, number));
    if (number == 1 && content.rows.back().kind != kHeaderKind) {
      throw Error(ErrorCode::kBadInput, "damaged ledger: the first row is not a header",
                  fmt::format("{} line 1", shard));
    }
    at += line.size() + (last ? 0 : 1);
    content.whole_bytes = at;
    content.ends_with_newline = !last;
  }
  return content;
}

LedgerHeader header_of(const LedgerRow& row) {
  const std::string where = fmt::format("{} line {} (header)", row.shard, row.line);
  const auto text = [&](const char* key) { return formats::json_string_or(row.value, key, "", where); };
  if (!row.value.is_object()) throw Error(ErrorCode::kBadInput, "damaged ledger: bad header", where);
  return {text("protocol"), text("model"), text("build"), text("cpu_level"), text("compute_mode")};
}

nlohmann::json header_value(const LedgerHeader& header) {
  return {{"protocol", header.protocol},
          {"model", header.model_hash},
          {"build", header.build},
          {"cpu_level", header.cpu_level},
          {"compute_mode", header.compute_mode}};
}

void require_same_study(const LedgerHeader& found, const LedgerHeader& expected, std::string_view where) {
  const auto check = [&](const char* field, const std::string& have, const std::string& want) {
    if (have == want) return;
    throw Error(
        ErrorCode::kBadInput, fmt::format("the ledger was measured with another {}", field),
        fmt::format("{}: {} differs: found {}, expected {}", where, field, printable(have), printable(want)),
        "choose another folder, or remove this one to start over");
  };
  check("model", found.model_hash, expected.model_hash);
  check("protocol", found.protocol, expected.protocol);
  check("compute mode", found.compute_mode, expected.compute_mode);
}

}  // namespace wring::lab
