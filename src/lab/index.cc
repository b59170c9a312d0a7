// The SQLite index. Written to a temporary file first and renamed, so that a reader never sees half of one.
#include "lab/index.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <unistd.h>

#include <system_error>

#include "base/error.h"
#include "formats/json.h"

namespace wring::lab {
namespace {

namespace fs = std::filesystem;

constexpr int kSchema = 1;  // raise it when the tables change: older files are rebuilt

// Calls f and turns SQLite's exceptions into ours.
template <class F>
auto with_sqlite(const fs::path& path, F&& f) {
  try {
    return f();
  } catch (const SQLite::Exception& e) {
    throw Error(ErrorCode::kIo, fmt::format("the ledger's index failed: {}", e.what()), path.string(),
                "remove the index, it is built again from the shards");
  }
}

bool is_current(const fs::path& path, const std::string& root_hash) {
  try {
    SQLite::Database db(path.string(), SQLite::OPEN_READONLY);
    SQLite::Statement query(db, "SELECT schema, root_hash FROM about");
    return query.executeStep() && query.getColumn(0).getInt() == kSchema &&
           query.getColumn(1).getString() == root_hash;
  } catch (const SQLite::Exception&) {
    return false;  // missing, of another kind, or damaged: all mended by building it anew
  }
}

void build(const fs::path& path, const Ledger& ledger) {
  SQLite::Database db(path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  db.exec("PRAGMA synchronous = OFF");  // made again at any time
  SQLite::Transaction transaction(db);
  db.exec("CREATE TABLE about (schema INTEGER NOT NULL, root_hash TEXT NOT NULL)");
  db.exec(
      "CREATE TABLE rows (id TEXT PRIMARY KEY, kind TEXT NOT NULL, value TEXT NOT NULL, checksum TEXT NOT "
      "NULL,"
      " shard TEXT NOT NULL, line INTEGER NOT NULL) WITHOUT ROWID");
  db.exec("CREATE INDEX rows_by_kind ON rows (kind, id)");
  SQLite::Statement insert(db, "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)");
  for (const LedgerRow& row : ledger.rows()) {
    insert.bind(1, row.id);
    insert.bind(2, row.kind);
    insert.bind(3, row.value.dump());
    insert.bind(4, fmt::format("{:016x}", row.checksum));
    insert.bind(5, row.shard);
    insert.bind(6, static_cast<std::int64_t>(row.line));
    insert.exec();
    insert.reset();
  }
  SQLite::Statement about(db, "INSERT INTO about VALUES (?, ?)");
  about.bind(1, kSchema);
  about.bind(2, ledger.root_hash());
  about.exec();
  transaction.commit();
}

LedgerRow row_of(SQLite::Statement& query) {
  LedgerRow row;
  row.id = query.getColumn(0).getString();
  row.kind = query.getColumn(1).getString();
  row.value = formats::parse_json(query.getColumn(2).getString(), "the ledger's index");
  row.checksum = std::stoull(query.getColumn(3).getString(), nullptr, 16);
  row.shard = query.getColumn(4).getString();
  row.line = query.getColumn(5).getInt64();
  return row;
}

constexpr const char* kColumns = "id, kind, value, checksum, shard, line";
// substr, not LIKE or GLOB: ids may hold their wildcards.
constexpr const char* kWhere = "kind = ?1 AND substr(id, 1, length(?2)) = ?2";

}  // namespace

struct LedgerIndex::State {
  fs::path path;
  std::unique_ptr<SQLite::Database> db;
};

LedgerIndex::LedgerIndex(fs::path path, const Ledger& ledger) : state_(std::make_unique<State>()) {
  state_->path = std::move(path);
  if (!is_current(state_->path, ledger.root_hash())) {
    const fs::path temporary = state_->path.string() + fmt::format(".{}.tmp", ::getpid());
    std::error_code fault;
    fs::remove(temporary, fault);
    with_sqlite(temporary, [&] { build(temporary, ledger); });
    fs::rename(temporary, state_->path, fault);
    if (fault) {
      std::error_code ignored;
      fs::remove(temporary, ignored);
      throw_errno(fault.value(), "writing the ledger's index", state_->path.string());
    }
    rebuilt_ = true;
  }
  state_->db = with_sqlite(state_->path, [&] {
    return std::make_unique<SQLite::Database>(state_->path.string(), SQLite::OPEN_READONLY);
  });
}

LedgerIndex::~LedgerIndex() = default;

std::optional<LedgerRow> LedgerIndex::find(std::string_view id) const {
  return with_sqlite(state_->path, [&]() -> std::optional<LedgerRow> {
    SQLite::Statement query(*state_->db, fmt::format("SELECT {} FROM rows WHERE id = ?", kColumns));
    query.bind(1, std::string(id));
    if (!query.executeStep()) return std::nullopt;
    return row_of(query);
  });
}

std::vector<LedgerRow> LedgerIndex::rows(std::string_view kind, std::string_view id_prefix) const {
  return with_sqlite(state_->path, [&] {
    SQLite::Statement query(*state_->db,
                            fmt::format("SELECT {} FROM rows WHERE {} ORDER BY id", kColumns, kWhere));
    query.bind(1, std::string(kind));
    query.bind(2, std::string(id_prefix));
    std::vector<LedgerRow> found;
    while (query.executeStep()) found.push_back(row_of(query));
    return found;
  });
}

}  // namespace wring::lab
