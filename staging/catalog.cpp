#include "staging/catalog.hpp"

#include <sqlite3.h>
#include <sys/stat.h>

#include <cerrno>
#include <functional>
#include <string_view>
#include <type_traits>

#include "base/text.hpp"

namespace spark::staging {
namespace {

constexpr int kSchema = 1;
constexpr int kBusyMilliseconds = 10'000;

constexpr char kTables[] = R"(
  CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
  CREATE TABLE datasets (name TEXT PRIMARY KEY, last_generation INTEGER NOT NULL) STRICT;
  CREATE TABLE generations (
    dataset TEXT NOT NULL, generation INTEGER NOT NULL, state TEXT NOT NULL, bytes INTEGER NOT NULL,
    allocated INTEGER NOT NULL, files INTEGER NOT NULL, hash TEXT NOT NULL, damage TEXT NOT NULL,
    staged_at_us INTEGER NOT NULL, last_used_us INTEGER NOT NULL, PRIMARY KEY (dataset, generation)) STRICT;
  CREATE TABLE leases (
    id TEXT PRIMARY KEY, dataset TEXT NOT NULL, generation INTEGER NOT NULL, holder TEXT NOT NULL,
    pid INTEGER NOT NULL, pid_start_time INTEGER NOT NULL, expires_us INTEGER) STRICT;
)";

std::int64_t to_microseconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

WallTime from_microseconds(std::int64_t count) {
  return WallTime(std::chrono::microseconds(count));
}

tl::unexpected<Error> sqlite_error(sqlite3* database, const std::string& doing) {
  const int code = sqlite3_errcode(database);
  const std::string what = doing + ": " + sqlite3_errmsg(database);
  if (code == SQLITE_FULL) return fail(Errc::NoSpace, what, "free some space there");
  if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
    return fail(Errc::Failed, what, "move the file away: the catalog is rebuilt from the cache folder");
  }
  return fail(Errc::Failed, what);
}

// One prepared statement. Text is bound as the bytes it is: names need not be UTF-8.
class Statement {
 public:
  Statement(sqlite3* database, std::string_view sql) {
    sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  template <class... Values>
  Statement& bind(const Values&... values) {
    int index = 0;
    (bind_one(++index, values), ...);
    return *this;
  }

  // SQLITE_ROW, SQLITE_DONE, or an error code.
  int step() { return statement_ == nullptr ? SQLITE_ERROR : sqlite3_step(statement_); }

  std::int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }
  std::uint64_t count(int column) const { return static_cast<std::uint64_t>(number(column)); }
  bool is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  std::string text(int column) const {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
    return {bytes == nullptr ? "" : bytes,
            static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
  }

 private:
  sqlite3_stmt* statement_ = nullptr;

  void bind_one(int index, const std::string& value) {
    sqlite3_bind_text(statement_, index, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
  }
  void bind_one(int index, const std::optional<std::int64_t>& value) {
    if (value) sqlite3_bind_int64(statement_, index, *value);
  }
  template <class Number>
  requires std::is_integral_v<Number>
  void bind_one(int index, Number value) {
    sqlite3_bind_int64(statement_, index, static_cast<std::int64_t>(value));
  }
};

template <class... Values>
Result<> change(sqlite3* database, const std::string& doing, std::string_view sql, const Values&... values) {
  Statement statement(database, sql);
  const int code = statement.bind(values...).step();
  if (code != SQLITE_DONE && code != SQLITE_ROW) return sqlite_error(database, doing);
  return {};
}

// All or nothing, and alone: other processes wait.
Result<> transaction(sqlite3* database, const std::string& doing, const std::function<Result<>()>& work) {
  if (auto begun = change(database, doing, "BEGIN IMMEDIATE"); !begun) return begun;
  Result<> done = work();
  if (done) done = change(database, doing, "COMMIT");
  if (!done) sqlite3_exec(database, "ROLLBACK", nullptr, nullptr, nullptr);
  return done;
}

Result<int> schema_of(sqlite3* database, const std::string& doing) {
  Statement statement(database, "PRAGMA user_version");
  if (statement.step() != SQLITE_ROW) return sqlite_error(database, doing);
  return static_cast<int>(statement.number(0));
}

Result<> prepare_schema(sqlite3* database, const std::string& doing) {
  return transaction(database, doing, [&]() -> Result<> {
    const auto schema = schema_of(database, doing);
    if (!schema) return tl::unexpected<Error>(schema.error());
    if (*schema == kSchema) return {};
    if (*schema != 0) {
      return fail(Errc::Unsupported, doing + ": it was written by another version of spark-stage",
                  "use that version, or move the file away: it is rebuilt from the cache folder");
    }
    std::string script(kTables);
    script += "PRAGMA user_version = " + std::to_string(kSchema);
    if (sqlite3_exec(database, script.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
      return sqlite_error(database, doing);
    }
    return {};
  });
}

}  // namespace

void Catalog::Close::operator()(sqlite3* database) const {
  sqlite3_close_v2(database);
}

Catalog::Catalog(std::unique_ptr<sqlite3, Close> database, std::string shown)
    : database_(std::move(database)), shown_(std::move(shown)) {}

Catalog::~Catalog() = default;

Result<std::unique_ptr<Catalog>> Catalog::open(const std::filesystem::path& state_dir) {
  std::error_code error;
  std::filesystem::create_directories(state_dir, error);
  if (error) return fail_errno(error.value(), "making folder " + printable(state_dir.native()));
  const std::filesystem::path file = state_dir / "catalog.sqlite";
  const std::string doing = "opening the catalog " + printable(file.native());
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(
      file.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  std::unique_ptr<sqlite3, Close> database(opened);
  if (code != SQLITE_OK) return sqlite_error(opened, doing);
  sqlite3_busy_timeout(opened, kBusyMilliseconds);
  for (const char* setting : {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL"}) {
    if (auto set = change(opened, doing, setting); !set) return tl::unexpected<Error>(std::move(set.error()));
  }
  if (auto ready = prepare_schema(opened, doing); !ready)
    return tl::unexpected<Error>(std::move(ready.error()));
  return std::unique_ptr<Catalog>(new Catalog(std::move(database), printable(file.native())));
}

Result<std::string> Catalog::cache_id() {
  Statement statement(database_.get(), "SELECT value FROM facts WHERE name = 'cache_id'");
  const int code = statement.step();
  if (code == SQLITE_DONE) return std::string();
  if (code != SQLITE_ROW) return sqlite_error(database_.get(), "reading " + shown_);
  return statement.text(0);
}

Result<> Catalog::set_cache_id(const std::string& id) {
  return change(database_.get(), "writing " + shown_, "INSERT OR REPLACE INTO facts VALUES ('cache_id', ?)",
                id);
}

Result<std::uint64_t> Catalog::next_generation(const std::string& dataset) {
  Statement statement(database_.get(),
                      "INSERT INTO datasets VALUES (?, 1) ON CONFLICT (name) DO UPDATE "
                      "SET last_generation = last_generation + 1 RETURNING last_generation");
  if (statement.bind(dataset).step() != SQLITE_ROW) return sqlite_error(database_.get(), "writing " + shown_);
  const std::uint64_t generation = statement.count(0);
  if (statement.step() != SQLITE_DONE) return sqlite_error(database_.get(), "writing " + shown_);
  return generation;
}

Result<> Catalog::put(const GenerationRow& row) {
  const std::string doing = "writing " + shown_;
  return transaction(database_.get(), doing, [&]() -> Result<> {
    auto counted = change(database_.get(), doing,
                          "INSERT INTO datasets VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE "
                          "SET last_generation = max(last_generation, ?2)",
                          row.dataset, row.generation);
    if (!counted) return counted;
    return change(database_.get(), doing,
                  "INSERT OR REPLACE INTO generations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row.dataset,
                  row.generation, std::string(row.state == GenerationState::Ready ? "ready" : "evicting"),
                  row.bytes, row.allocated, row.files, row.hash, row.damage, to_microseconds(row.staged_at),
                  to_microseconds(row.last_used));
  });
}

Result<std::vector<GenerationRow>> Catalog::generations() {
  Statement statement(database_.get(), "SELECT * FROM generations ORDER BY dataset, generation DESC");
  std::vector<GenerationRow> rows;
  int code = SQLITE_DONE;
  while ((code = statement.step()) == SQLITE_ROW) {
    GenerationRow row;
    row.dataset = statement.text(0);
    row.generation = statement.count(1);
    row.state = statement.text(2) == "ready" ? GenerationState::Ready : GenerationState::Evicting;
    row.bytes = statement.count(3);
    row.allocated = statement.count(4);
    row.files = statement.count(5);
    row.hash = statement.text(6);
    row.damage = statement.text(7);
    row.staged_at = from_microseconds(statement.number(8));
    row.last_used = from_microseconds(statement.number(9));
    rows.push_back(std::move(row));
  }
  if (code != SQLITE_DONE) return sqlite_error(database_.get(), "reading " + shown_);
  return rows;
}

Result<> Catalog::touch(const std::string& dataset, std::uint64_t generation, WallTime used_at) {
  return change(
      database_.get(), "writing " + shown_,
      "UPDATE generations SET last_used_us = max(last_used_us, ?) WHERE dataset = ? AND generation = ?",
      to_microseconds(used_at), dataset, generation);
}

Result<> Catalog::set_damage(const std::string& dataset, std::uint64_t generation,
                             const std::string& damage) {
  return change(database_.get(), "writing " + shown_,
                "UPDATE generations SET damage = ? WHERE dataset = ? AND generation = ?", damage, dataset,
                generation);
}

Result<> Catalog::begin_eviction(const std::string& dataset, std::uint64_t generation, WallTime now) {
  const std::string doing = "writing " + shown_;
  return transaction(database_.get(), doing, [&]() -> Result<> {
    const auto held = leases();
    if (!held) return tl::unexpected<Error>(held.error());
    for (const Lease& lease : *held) {
      if (lease.dataset != dataset || lease.generation != generation || !is_live(lease, now)) continue;
      return fail(Errc::Refused,
                  "evicting " + printable(dataset) + ": it is leased by " + printable(lease.holder),
                  "wait for it to end, or release lease " + lease.id);
    }
    return change(database_.get(), doing,
                  "UPDATE generations SET state = 'evicting' WHERE dataset = ? AND generation = ?", dataset,
                  generation);
  });
}

Result<> Catalog::remove(const std::string& dataset, std::uint64_t generation) {
  const std::string doing = "writing " + shown_;
  return transaction(database_.get(), doing, [&]() -> Result<> {
    auto released = change(database_.get(), doing, "DELETE FROM leases WHERE dataset = ? AND generation = ?",
                           dataset, generation);
    if (!released) return released;
    return change(database_.get(), doing, "DELETE FROM generations WHERE dataset = ? AND generation = ?",
                  dataset, generation);
  });
}

Result<> Catalog::add_lease(const Lease& lease) {
  std::optional<std::int64_t> expires;
  if (lease.expires) expires = to_microseconds(*lease.expires);
  auto added = change(
      database_.get(), "writing " + shown_,
      "INSERT OR REPLACE INTO leases SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE EXISTS (SELECT 1 FROM "
      "generations WHERE dataset = ?2 AND generation = ?3 AND state = 'ready')",
      lease.id, lease.dataset, lease.generation, lease.holder, lease.pid, lease.pid_start_time, expires);
  if (!added) return added;
  if (sqlite3_changes(database_.get()) > 0) return {};
  return fail(Errc::NotFound,
              "leasing " + printable(lease.dataset) + " generation " + std::to_string(lease.generation) +
                  ": it is not in the cache",
              "stage it first");
}

Result<Change> Catalog::remove_lease(const std::string& id) {
  auto removed = change(database_.get(), "writing " + shown_, "DELETE FROM leases WHERE id = ?", id);
  if (!removed) return tl::unexpected<Error>(std::move(removed.error()));
  return sqlite3_changes(database_.get()) > 0 ? Change::Done : Change::AlreadyThere;
}

Result<std::vector<Lease>> Catalog::leases() {
  Statement statement(database_.get(), "SELECT * FROM leases ORDER BY id");
  std::vector<Lease> all;
  int code = SQLITE_DONE;
  while ((code = statement.step()) == SQLITE_ROW) {
    Lease lease;
    lease.id = statement.text(0);
    lease.dataset = statement.text(1);
    lease.generation = statement.count(2);
    lease.holder = statement.text(3);
    lease.pid = static_cast<pid_t>(statement.number(4));
    lease.pid_start_time = statement.count(5);
    if (!statement.is_null(6)) lease.expires = from_microseconds(statement.number(6));
    all.push_back(std::move(lease));
  }
  if (code != SQLITE_DONE) return sqlite_error(database_.get(), "reading " + shown_);
  return all;
}

}  // namespace spark::staging
