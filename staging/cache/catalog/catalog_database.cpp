#include "staging/cache/catalog/catalog_database.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "base/access/locks.hpp"
#include "staging/cache/catalog/reserve.hpp"
#include "staging/files/times.hpp"

namespace spark::staging {
namespace {

constexpr std::chrono::milliseconds kBusy{10'000};

// Each entry migrates a catalog from the schema of its index to the next one; a new file starts with the
// first.
constexpr std::array kSteps = {
    R"(
  CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
  CREATE TABLE datasets (name TEXT PRIMARY KEY, last_generation INTEGER NOT NULL) STRICT;
  CREATE TABLE generations (
    dataset TEXT NOT NULL, generation INTEGER NOT NULL, state TEXT NOT NULL, bytes INTEGER NOT NULL,
    allocated INTEGER NOT NULL, files INTEGER NOT NULL, hash TEXT NOT NULL, damage TEXT NOT NULL,
    staged_at_us INTEGER NOT NULL, last_used_us INTEGER NOT NULL, PRIMARY KEY (dataset, generation)) STRICT;
  CREATE TABLE leases (
    id TEXT PRIMARY KEY, dataset TEXT NOT NULL, generation INTEGER NOT NULL, holder TEXT NOT NULL,
    pid INTEGER NOT NULL, pid_start_time INTEGER NOT NULL, expires_us INTEGER) STRICT;
)",
    // The input of evictions, the time of the last full read-back, leases by cgroup, reservations.
    R"(
  ALTER TABLE generations ADD COLUMN inodes INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE generations ADD COLUMN stage_seconds REAL NOT NULL DEFAULT 0;
  ALTER TABLE generations ADD COLUMN scrubbed_at_us INTEGER;
  UPDATE generations SET inodes = files;
  ALTER TABLE leases ADD COLUMN cgroup TEXT NOT NULL DEFAULT '';
  ALTER TABLE leases ADD COLUMN cgroup_id INTEGER NOT NULL DEFAULT 0;
  CREATE TABLE reservations (
    dataset TEXT PRIMARY KEY, bytes INTEGER NOT NULL, inodes INTEGER NOT NULL, pid INTEGER NOT NULL,
    pid_start_time INTEGER NOT NULL) STRICT;
)",
    // The state of the volume that a copy was made from.
    R"(
  ALTER TABLE generations ADD COLUMN source_generation INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE generations ADD COLUMN doubtful INTEGER NOT NULL DEFAULT 0;
)",
    // Age of the oldest content: the last read-back of any file, also of files shared with an earlier
    // generation.
    R"(
  ALTER TABLE generations ADD COLUMN good_at_us INTEGER NOT NULL DEFAULT 0;
  UPDATE generations SET good_at_us = staged_at_us;
)",
    // Parts that could not be recovered or deleted; the task of a reservation.
    R"(
  CREATE TABLE troubles (key TEXT PRIMARY KEY, what TEXT NOT NULL) STRICT;
  ALTER TABLE reservations ADD COLUMN task INTEGER NOT NULL DEFAULT 0;
)",
    // Leases of a scheduler's jobs, and the processes that such a job registered.
    R"(
  ALTER TABLE leases ADD COLUMN job_system TEXT NOT NULL DEFAULT '';
  ALTER TABLE leases ADD COLUMN job_id TEXT NOT NULL DEFAULT '';
  ALTER TABLE leases ADD COLUMN job_user TEXT NOT NULL DEFAULT '';
  ALTER TABLE leases ADD COLUMN job_boot TEXT NOT NULL DEFAULT '';
  CREATE TABLE lease_processes (
    lease TEXT NOT NULL REFERENCES leases (id) ON DELETE CASCADE, pid INTEGER NOT NULL,
    pid_start_time INTEGER NOT NULL, PRIMARY KEY (lease, pid)) STRICT;
)",
    // Leases of prefetched copies.
    R"(
  ALTER TABLE leases ADD COLUMN soft INTEGER NOT NULL DEFAULT 0;
)",
    // The state of the source that a copy equals.
    R"(
  ALTER TABLE generations ADD COLUMN source_state TEXT NOT NULL DEFAULT '';
  ALTER TABLE generations ADD COLUMN source_notes TEXT NOT NULL DEFAULT '';
)",
    // The sources of a copy's content; -1 means unknown.
    R"(
  ALTER TABLE generations ADD COLUMN volume_bytes INTEGER NOT NULL DEFAULT -1;
  ALTER TABLE generations ADD COLUMN peer_bytes INTEGER NOT NULL DEFAULT -1;
)",
    // Damage belongs to a dataset's files, which its generations share: one record of it, see DamageRecords.
    R"(
  CREATE TABLE damage (dataset TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT;
  INSERT INTO damage
    SELECT dataset, 'revision 1' || char(10) ||
           group_concat('found ' || generation || ' ' || replace(damage, char(10), ' ') || char(10), '')
    FROM generations WHERE damage <> '' GROUP BY dataset;
  ALTER TABLE generations DROP COLUMN damage;
)",
    // What the newest copy was made from; kept when no copy is left.
    R"(
  ALTER TABLE datasets ADD COLUMN source TEXT NOT NULL DEFAULT '';
  ALTER TABLE datasets ADD COLUMN file_system TEXT NOT NULL DEFAULT '';
  ALTER TABLE datasets ADD COLUMN had_files INTEGER NOT NULL DEFAULT 0;
)",
    // What the configuration said of the dataset.
    R"(
  ALTER TABLE generations ADD COLUMN definition TEXT NOT NULL DEFAULT '';
)",
    // Of a model: its revision, and the folder that jobs get.
    R"(
  ALTER TABLE generations ADD COLUMN model TEXT NOT NULL DEFAULT '';
)"};

Result<int> schema_of(sqlite3* database, const std::string& doing) {
  Statement statement(database, "PRAGMA user_version");
  if (statement.step() != SQLITE_ROW) return sqlite_error(database, doing);
  return static_cast<int>(statement.number(0));
}

// All steps or none: a crash in between leaves the catalog unchanged. A catalog that needs none is opened
// while another process writes.
Result<> prepare_schema(sqlite3* database, const std::string& doing) {
  constexpr int kNewest = static_cast<int>(kSteps.size());
  const auto now = schema_of(database, doing);
  if (!now) return now.take_error();
  if (*now == kNewest) return {};
  return transaction(database, doing, [&]() -> Result<> {
    const auto schema = schema_of(database, doing);
    if (!schema) return schema.take_error();
    if (*schema < 0 || *schema > kNewest) {
      return fail(Error{Errc::Unsupported, doing + ": it was written by another version of spark-stage",
                        "use that version; `sudo spark-stage cache reset` rebuilds it from the cache folder",
                        EBADMSG});
    }
    if (*schema == kNewest) return {};
    std::string script;
    for (int step = *schema; step < kNewest; ++step) script += kSteps[static_cast<std::size_t>(step)];
    script += "PRAGMA user_version = " + std::to_string(kNewest);
    if (sqlite3_exec(database, script.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
      return sqlite_error(database, doing);
    return {};
  });
}

}  // namespace

bool is_unusable_catalog(const Error& error) {
  return error.number == EBADMSG;  // no call on a file gives that
}

bool is_image(sqlite3* database) {
  const char* name = sqlite3_db_filename(database, "main");
  return name == nullptr || *name == '\0';
}

namespace {

// Two of them are locked: the database itself, and the index.
std::vector<std::filesystem::path> files_of(const std::filesystem::path& file) {
  return {file, file.native() + "-shm", file.native() + "-wal"};
}

}  // namespace

tl::unexpected<Error> sqlite_error(sqlite3* database, const std::string& doing) {
  const int code = sqlite3_errcode(database);
  const bool is_locked = code == SQLITE_BUSY || code == SQLITE_PROTOCOL;
  const bool is_full_image = code == SQLITE_READONLY && is_image(database);
  const std::string what = doing + ": " +
                           (is_locked       ? sqlite3_errstr(SQLITE_BUSY)
                            : is_full_image ? sqlite3_errstr(SQLITE_FULL)
                                            : sqlite3_errmsg(database));
  // The number is that of the last failed call, whenever that was.
  const bool is_of_call = code == SQLITE_IOERR || code == SQLITE_CANTOPEN;
  const char* name = code == SQLITE_CANTOPEN ? sqlite3_db_filename(database, "main") : nullptr;
  const bool lacks_a_file = name != nullptr && lacks_inodes(std::filesystem::path(name).parent_path());
  if (code == SQLITE_FULL || is_full_image || lacks_a_file ||
      (is_of_call && sqlite3_system_errno(database) == ENOSPC) ||
      sqlite3_extended_errcode(database) == SQLITE_IOERR_SHMSIZE)
    return fail(Error{Errc::NoSpace, what, "free some space there", ENOSPC});
  if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
    return fail(Error{Errc::Failed, what, "`sudo spark-stage cache reset` rebuilds it from the cache folder",
                      EBADMSG});
  if (!is_locked || is_image(database)) return fail(Error{Errc::Failed, what, "", is_locked ? EBUSY : 0});
  const std::string holders =
      lock_holders_in_words(SystemRoot{}, files_of(sqlite3_db_filename(database, "main")));
  return fail(Error{Errc::Failed, holders.empty() ? what : what + " by " + holders, "", EBUSY});
}

Result<> transaction(sqlite3* database, const std::string& doing, const std::function<Result<>()>& work) {
  if (auto begun = change(database, doing, "BEGIN IMMEDIATE"); !begun) return begun;
  Result<> done = work();
  if (done) done = change(database, doing, "COMMIT");
  if (!done) sqlite3_exec(database, "ROLLBACK", nullptr, nullptr, nullptr);
  return done;
}

namespace {

enum class Access { Shared, Alone };

// Whoever can open one of its files can also lock it. SQLite gives the other two the mode of the first. It is
// not opened here: closing it would end this process's locks on it.
void close_to_others(const std::filesystem::path& file, IfMissing if_missing) {
  if (if_missing == IfMissing::Make) static_cast<void>(::mknod(file.c_str(), S_IFREG | 0600, 0));
  for (const std::filesystem::path& one : files_of(file)) static_cast<void>(restrict_to(one, 0600));
}

// Without a file for the index that several processes share, if alone.
Result<DatabasePtr> open_as(const std::filesystem::path& file, const std::string& doing, IfMissing if_missing,
                            Access access) {
  if (access == Access::Shared && lacks_blocks_of_index(file.native() + "-shm"))
    return fail_errno(ENOSPC, doing, "free some space there");
  sqlite3* opened = nullptr;
  close_to_others(file, if_missing);
  const int making = if_missing == IfMissing::Make ? SQLITE_OPEN_CREATE : 0;
  const int code =
      sqlite3_open_v2(file.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX | making, nullptr);
  DatabasePtr database(opened);
  if (code != SQLITE_OK && ::access(file.c_str(), F_OK) != 0 && errno == ENOENT)
    return fail(Error{Errc::Unavailable, doing + ": it is gone",
                      "restart spark-staged: it makes a new one from the cache folder", ENOENT});
  if (code != SQLITE_OK) return sqlite_error(opened, doing);
  if (access == Access::Alone) {
    sqlite3_busy_timeout(opened, kBusy.count());
    if (auto set = change(opened, doing, "PRAGMA locking_mode = EXCLUSIVE"); !set) return set.take_error();
  }
  for (const char* setting :
       {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON"}) {
    if (auto set = change(opened, doing, setting); !set) return set.take_error();
  }
  if (auto ready = prepare_schema(opened, doing); !ready) return ready.take_error();
  sqlite3_busy_timeout(opened, kBusy.count());
  return database;
}

// Without a log it has all of its content, and is read without making one, which takes an inode.
struct ClosedDatabase {
  static std::optional<ClosedDatabase> find(const std::filesystem::path& file) {
    struct stat info {};
    if (::access((file.native() + "-wal").c_str(), F_OK) == 0 || ::stat(file.c_str(), &info) != 0)
      return std::nullopt;
    return ClosedDatabase{info.st_size, nanoseconds(info.st_ctim)};
  }
  static Result<DatabasePtr> open(const std::filesystem::path& file, const std::string& doing) {
    std::string name = "file:";
    for (const char c : file.native()) {
      const bool is_plain = c != '%' && c != '?' && c != '#';
      name += is_plain ? std::string(1, c) : (c == '%' ? "%25" : c == '?' ? "%3f" : "%23");
    }
    sqlite3* opened = nullptr;
    constexpr int kFlags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_FULLMUTEX;
    const int code = sqlite3_open_v2((name + "?immutable=1").c_str(), &opened, kFlags, nullptr);
    DatabasePtr database(opened);
    if (code != SQLITE_OK) return sqlite_error(opened, doing);
    return database;
  }
  bool operator==(const ClosedDatabase&) const = default;

  off_t size = 0;
  std::int64_t changed_ns = 0;
};

// Its content, which can't be changed. Others are locked out only while it is read.
Result<DatabasePtr> image_of(const std::filesystem::path& file, const std::string& doing,
                             IfMissing if_missing) {
  auto read = open_as(file, doing, if_missing, Access::Alone);
  const bool is_full = !read && read.error().kind == Errc::NoSpace;
  const auto closed = is_full ? ClosedDatabase::find(file) : std::nullopt;
  if (closed) read = ClosedDatabase::open(file, doing);
  if (!read) return read.take_error();
  sqlite3* opened = nullptr;
  const int code = sqlite3_open(":memory:", &opened);
  DatabasePtr image(opened);
  if (code != SQLITE_OK) return sqlite_error(opened, doing);
  sqlite3_backup* copying = sqlite3_backup_init(opened, "main", read->get(), "main");
  if (copying != nullptr) sqlite3_backup_step(copying, -1);
  if (copying == nullptr || sqlite3_backup_finish(copying) != SQLITE_OK) return sqlite_error(opened, doing);
  if (closed && closed != ClosedDatabase::find(file))
    return fail(Error{Errc::Failed, doing + ": it was changed while it was read", "try again", EBUSY});
  if (auto set = change(opened, doing, "PRAGMA query_only = ON"); !set) return set.take_error();
  return image;
}

}  // namespace

Result<DatabasePtr> open_database(const std::filesystem::path& file, const std::string& doing,
                                  IfMissing if_missing) {
  // Here, not in SQLite: it does not wait for a process that makes the file, or its index, at this moment.
  constexpr std::chrono::milliseconds kPause{20};
  const SystemClock clock;
  const SteadyTime give_up = clock.steady() + kBusy;
  auto database = open_as(file, doing, if_missing, Access::Shared);
  while (!database && database.error().number == EBUSY && clock.steady() < give_up) {
    std::this_thread::sleep_for(kPause);
    database = open_as(file, doing, if_missing, Access::Shared);
  }
  if (database || database.error().kind != Errc::NoSpace) return database;
  return image_of(file, doing, if_missing);  // on a full drive, cached data is still served
}

}  // namespace spark::staging
