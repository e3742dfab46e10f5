// Leases and reservations in the catalog.
#include <algorithm>

#include "base/text.hpp"
#include "staging/cache/catalog/catalog_private.hpp"

namespace spark::staging {

Result<> Catalog::add_lease(const Lease& lease) {
  return exclusively([&]() -> Result<> {
    auto added = database_->change(
        "INSERT OR REPLACE INTO leases SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14 "
        "WHERE "
        "?3 = 0 OR EXISTS (SELECT 1 FROM generations WHERE dataset = ?2 AND generation = ?3 AND state = "
        "'ready')",
        lease.id, lease.dataset, lease.generation, lease.holder, lease.process.pid, lease.process.start_time,
        to_microseconds(lease.expires), lease.cgroup.path.native(), lease.cgroup.id, lease.job.system,
        lease.job.id, lease.job.user, lease.job.boot, std::uint64_t{lease.is_soft});
    if (!added) return added;
    if (sqlite3_changes(database_->get()) == 0) {
      return fail(Errc::NotFound,
                  "leasing " + printable(lease.dataset) + " generation " + std::to_string(lease.generation) +
                      ": it is not in the cache",
                  "stage it first");
    }
    for (const ProcessId& process : lease.job.processes) {
      added = database_->change("INSERT OR REPLACE INTO lease_processes VALUES (?, ?, ?)", lease.id,
                                process.pid, process.start_time);
      if (!added) return added;
    }
    return {};
  });
}

Result<Change> Catalog::remove_lease(const std::string& id) {
  auto removed = database_->change("DELETE FROM leases WHERE id = ?", id);
  if (!removed) return removed.take_error();
  return sqlite3_changes(database_->get()) > 0 ? Change::Done : Change::AlreadyThere;
}

Result<std::vector<Lease>> Catalog::leases() {
  std::vector<Lease> all;
  const auto take = [&](const Statement& statement) {
    Lease& lease = all.emplace_back();
    lease.id = statement.text(0);
    lease.dataset = statement.text(1);
    lease.generation = statement.count(2);
    lease.holder = statement.text(3);
    lease.process = {static_cast<pid_t>(statement.number(4)), statement.count(5)};
    if (!statement.is_null(6)) lease.expires = from_microseconds(statement.number(6));
    lease.cgroup = {statement.text(7), statement.count(8)};
    lease.job = {statement.text(9), statement.text(10), statement.text(11), {}, statement.text(12)};
    lease.is_soft = statement.number(13) != 0;
  };
  const auto take_process = [&](const Statement& statement) {
    const auto lease = std::ranges::lower_bound(all, statement.text(0), {}, &Lease::id);
    if (lease == all.end() || lease->id != statement.text(0)) return;
    lease->job.processes.push_back({static_cast<pid_t>(statement.number(1)), statement.count(2)});
  };
  auto read = database_->read("SELECT * FROM leases ORDER BY id", take);
  if (read) read = database_->read("SELECT * FROM lease_processes ORDER BY lease, pid", take_process);
  if (!read) return read.take_error();
  return all;
}

Result<> Catalog::reserve(const Reservation& reservation) {
  return database_->change("INSERT OR REPLACE INTO reservations VALUES (?, ?, ?, ?, ?, ?)",
                           reservation.dataset, reservation.bytes, reservation.inodes,
                           reservation.process.pid, reservation.process.start_time, reservation.task);
}

Result<> Catalog::drop_reservation(const std::string& dataset) {
  return database_->change("DELETE FROM reservations WHERE dataset = ?", dataset);
}

Result<> Catalog::drop_ended_reservations(const std::vector<std::uint64_t>& in_progress,
                                          std::uint64_t newest) {
  const auto all = reservations();
  if (!all) return all.take_error();
  for (const Reservation& one : *all) {
    if (one.task > newest || std::ranges::find(in_progress, one.task) != in_progress.end()) continue;
    // Selected by task as well: the dataset may have a later reservation by now.
    auto dropped =
        database_->change("DELETE FROM reservations WHERE dataset = ? AND task = ?", one.dataset, one.task);
    if (!dropped) return dropped;
  }
  return {};
}

Result<std::vector<Reservation>> Catalog::reservations() {
  std::vector<Reservation> all;
  const auto take = [&](const Statement& statement) {
    Reservation one;
    one.dataset = statement.text(0);
    one.bytes = statement.count(1);
    one.inodes = statement.count(2);
    one.process = {static_cast<pid_t>(statement.number(3)), statement.count(4)};
    one.task = statement.count(5);
    if (is_running(one.process)) all.push_back(std::move(one));
  };
  auto read = database_->read("SELECT * FROM reservations ORDER BY dataset", take);
  if (!read) return read.take_error();
  return all;
}

}  // namespace spark::staging
