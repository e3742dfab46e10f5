#include "staging/cache/catalog/catalog.hpp"

#include "base/text.hpp"
#include "staging/cache/catalog/catalog_private.hpp"

namespace spark::staging {

Catalog::Catalog(std::unique_ptr<Database> database) : database_(std::move(database)) {}

Catalog::~Catalog() = default;

namespace {

constexpr std::int64_t kNotKnown = -1;

Result<> check_unleased(const GenerationRow& row, const std::vector<Lease>& leases, WallTime now) {
  std::vector<std::string> holders, ids;
  for (const Lease& lease : leases) {
    const bool is_of_row = lease.dataset == row.dataset && lease.generation == row.generation;
    if (!is_of_row || lease.is_soft || !is_live(lease, now)) continue;
    holders.push_back(printable(lease.holder));
    ids.push_back(lease.id);
  }
  if (holders.empty()) return {};
  return fail(Errc::Refused,
              "evicting " + printable(row.dataset) + ": it is leased by " + join(holders, " and by "),
              "wait for that to end, or release " + join(ids, ", "));
}

}  // namespace

Result<std::unique_ptr<Catalog>> Catalog::open(const std::filesystem::path& state_dir, IfMissing if_missing) {
  std::error_code error;
  if (if_missing == IfMissing::Make) std::filesystem::create_directories(state_dir, error);
  if (error) return fail_errno(error.value(), "making folder " + printable(state_dir.native()));
  const std::filesystem::path file = state_dir / "catalog.sqlite";
  const std::string shown = printable(file.native());
  auto opened = open_database(file, "opening the catalog " + shown, if_missing);
  if (!opened) return opened.take_error();
  auto database =
      std::make_unique<Database>(Database{std::move(*opened), "reading " + shown, "writing " + shown});
  return std::unique_ptr<Catalog>(new Catalog(std::move(database)));
}

bool Catalog::is_current() const {
  int has_moved = 0;
  sqlite3_file_control(database_->get(), "main", SQLITE_FCNTL_HAS_MOVED, &has_moved);
  return has_moved == 0 && !is_image(database_->get());
}

Result<std::string> Catalog::cache_id() {
  std::string id;
  auto read = database_->read("SELECT value FROM facts WHERE name = 'cache_id'",
                              [&](const Statement& row) { id = row.text(0); });
  return read ? Result<std::string>(std::move(id)) : read.take_error();
}

Result<> Catalog::set_cache_id(const std::string& id, Copies copies) {
  const auto set = [&]() -> Result<> {
    if (id.empty()) return database_->change("DELETE FROM facts WHERE name = 'cache_id'");
    return database_->change("INSERT OR REPLACE INTO facts VALUES ('cache_id', ?)", id);
  };
  if (copies == Copies::Known) return set();
  return exclusively([&]() -> Result<> {
    for (const char* table :
         {"lease_processes", "leases", "generations", "reservations", "troubles", "damage"}) {
      auto emptied = database_->change(std::string("DELETE FROM ") + table);
      if (!emptied) return emptied;
    }
    return set();
  });
}

Result<> Catalog::exclusively(const std::function<Result<>()>& work) {
  return transaction(database_->get(), database_->writing, work);
}

Result<std::uint64_t> Catalog::next_generation(const std::string& dataset) {
  Statement statement(
      database_->get(),
      "INSERT INTO datasets (name, last_generation) VALUES (?, 1) ON CONFLICT (name) DO UPDATE "
      "SET last_generation = last_generation + 1 RETURNING last_generation");
  if (statement.bind(dataset).step() != SQLITE_ROW) return sqlite_error(database_->get(), database_->writing);
  const std::uint64_t generation = statement.count(0);
  if (statement.step() != SQLITE_DONE) return sqlite_error(database_->get(), database_->writing);
  return generation;
}

Result<CopiedFrom> Catalog::copied_from(const std::string& dataset) {
  CopiedFrom from;
  const auto take = [&](const Statement& row) { from = {row.text(0), row.text(1), row.number(2) != 0}; };
  auto read =
      database_->read("SELECT source, file_system, had_files FROM datasets WHERE name = ?", take, dataset);
  return read ? Result<CopiedFrom>(std::move(from)) : read.take_error();
}

Result<> Catalog::put(const GenerationRow& row, const CopiedFrom& from) {
  auto counted = database_->change(
      "INSERT INTO datasets (name, last_generation) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE "
      "SET last_generation = max(last_generation, ?2)",
      row.dataset, row.generation);
  if (counted && !from.source.empty())
    counted =
        database_->change("UPDATE datasets SET source = ?2, file_system = ?3, had_files = ?4 WHERE name = ?1",
                          row.dataset, from.source, from.file_system, std::uint64_t{from.had_files});
  // Of jobs that read it through its live view: the daemon may be killed before it enters them.
  if (counted)
    counted = database_->change(
        "UPDATE leases SET generation = ?2 WHERE dataset = ?1 AND generation = 0 AND job_system = ''",
        row.dataset, row.generation);
  if (!counted) return counted;
  const std::int64_t from_volume = row.from ? static_cast<std::int64_t>(row.from->volume) : kNotKnown;
  const std::int64_t from_peers = row.from ? static_cast<std::int64_t>(row.from->peers) : kNotKnown;
  return database_->change(
      "INSERT OR REPLACE INTO generations "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      row.dataset, row.generation, std::string(row.state == GenerationState::Ready ? "ready" : "evicting"),
      row.bytes, row.allocated, row.files, row.hash, to_microseconds(row.staged_at),
      to_microseconds(row.last_used), row.inodes, row.stage_seconds, to_microseconds(row.scrubbed_at),
      row.source_generation, std::uint64_t{row.is_doubtful}, to_microseconds(row.good_at), row.source.key,
      row.source.notes, from_volume, from_peers, row.definition, row.model);
}

Result<std::vector<GenerationRow>> Catalog::generations() {
  std::vector<GenerationRow> rows;
  Result<> known;
  const auto take = [&](const Statement& statement) {
    GenerationRow& row = rows.emplace_back();
    row.dataset = statement.text(0);
    row.generation = statement.count(1);
    // Any other value is damage. Treating it as "evicting" would delete the dataset.
    const std::string state = statement.text(2);
    if (state != "ready" && state != "evicting") {
      known = fail(Errc::Failed, database_->reading + ": " + printable(row.dataset) + " is in no known state",
                   "`sudo spark-stage cache reset` rebuilds it from the cache folder");
    }
    row.state = state == "ready" ? GenerationState::Ready : GenerationState::Evicting;
    row.bytes = statement.count(3);
    row.allocated = statement.count(4);
    row.files = statement.count(5);
    row.hash = statement.text(6);
    row.staged_at = from_microseconds(statement.number(7));
    row.last_used = from_microseconds(statement.number(8));
    row.inodes = statement.count(9);
    row.stage_seconds = statement.real(10);
    if (!statement.is_null(11)) row.scrubbed_at = from_microseconds(statement.number(11));
    row.source_generation = statement.count(12);
    row.is_doubtful = statement.number(13) != 0;
    row.good_at = from_microseconds(statement.number(14));
    row.source = {statement.text(15), statement.text(16)};
    if (statement.number(17) != kNotKnown) row.from = BytesFrom{statement.count(17), statement.count(18)};
    row.definition = statement.text(19);
    row.model = statement.text(20);
  };
  auto read = database_->read("SELECT * FROM generations ORDER BY dataset, generation DESC", take);
  if (!known) return known.take_error();
  if (!read) return read.take_error();
  return rows;
}

Result<> Catalog::touch(const std::string& dataset, std::uint64_t generation, WallTime used_at,
                        std::uint64_t source_generation, const std::string& definition) {
  return database_->change(
      "UPDATE generations SET last_used_us = max(last_used_us, ?1), "
      "source_generation = iif(?4 > 0, ?4, source_generation), "
      "definition = iif(?5 <> '', ?5, definition) "
      "WHERE dataset = ?2 AND generation = ?3",
      to_microseconds(used_at), dataset, generation, source_generation, definition);
}

Result<> Catalog::note_source(const std::string& dataset, std::uint64_t generation,
                              const SourceState& source) {
  return database_->change(
      "UPDATE generations SET source_state = ?, source_notes = ? "
      "WHERE dataset = ? AND generation = ?",
      source.key, source.notes, dataset, generation);
}

Result<> Catalog::set_allocated(const std::string& dataset, std::uint64_t generation, Bytes allocated) {
  return database_->change("UPDATE generations SET allocated = ? WHERE dataset = ? AND generation = ?",
                           allocated, dataset, generation);
}

Result<> Catalog::set_scrubbed(const std::string& dataset, std::uint64_t generation, WallTime at) {
  return database_->change("UPDATE generations SET scrubbed_at_us = ? WHERE dataset = ? AND generation = ?",
                           to_microseconds(at), dataset, generation);
}

Result<> Catalog::begin_eviction(const std::vector<GenerationRow>& rows, WallTime now,
                                 const std::vector<Lease>& beside) {
  return exclusively([&]() -> Result<> {
    auto all = leases();
    if (!all) return all.take_error();
    all->insert(all->end(), beside.begin(), beside.end());
    for (const GenerationRow& row : rows) {
      if (auto free = check_unleased(row, *all, now); !free) return free;
      auto marked =
          database_->change("UPDATE generations SET state = 'evicting' WHERE dataset = ? AND generation = ?",
                            row.dataset, row.generation);
      if (!marked) return marked;
    }
    return {};
  });
}

Result<> Catalog::end_eviction(const std::string& dataset, std::uint64_t generation) {
  return database_->change("UPDATE generations SET state = 'ready' WHERE dataset = ? AND generation = ?",
                           dataset, generation);
}

Result<> Catalog::set_trouble(const std::string& key, const std::string& what) {
  if (what.empty()) return database_->change("DELETE FROM troubles WHERE key = ?", key);
  return database_->change("INSERT OR REPLACE INTO troubles VALUES (?, ?)", key, what);
}

Result<std::map<std::string, std::string>> Catalog::troubles() {
  std::map<std::string, std::string> all;
  auto read = database_->read("SELECT key, what FROM troubles",
                              [&](const Statement& row) { all[row.text(0)] = row.text(1); });
  if (!read) return read.take_error();
  return all;
}

Result<> Catalog::remove(const std::string& dataset, std::uint64_t generation, Holders holders) {
  return exclusively([&]() -> Result<> {
    auto released = holders == Holders::Stay
                        ? Result<>()
                        : database_->change("DELETE FROM leases WHERE dataset = ? AND generation = ?",
                                            dataset, generation);
    if (!released) return released;
    return database_->change("DELETE FROM generations WHERE dataset = ? AND generation = ?", dataset,
                             generation);
  });
}

}  // namespace spark::staging
