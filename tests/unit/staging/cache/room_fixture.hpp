// A small cache, and datasets of one file.
#pragma once

#include <sqlite3.h>

#include "tests/unit/staging/cache/cache_fixture.hpp"

namespace spark::staging::test {

inline constexpr Bytes kMB = 1'000'000;

class RoomTest : public CacheTest {
 protected:
  // A dataset of one file.
  Source make(const std::string& name, Bytes bytes) {
    Source source{name, folder_ / ("source-" + name), {}, {}, 0};
    write_text(source.path / "f", noise(bytes, bytes));
    return source;
  }
  Result<Staged> stage(const Source& source) {
    auto cache = open_cache_with(hooks_, config_, clock_);
    if (!cache) return cache.take_error();
    return (*cache)->stage(source, options_, kQuiet, stop_);
  }
  Result<Staged> stage(const std::string& name, Bytes bytes) { return stage(make(name, bytes)); }
  std::vector<std::string> there() {
    std::vector<std::string> names;
    auto cache = open();
    const auto rows = cache->list();
    for (const DatasetRow& row : *rows) names.push_back(row.name);
    return names;
  }
  void lease(const std::string& dataset, std::uint64_t generation, bool is_soft = false) {
    Lease lease;
    lease.id = "l-" + dataset;
    lease.dataset = dataset;
    lease.generation = generation;
    lease.holder = "slurm job 12";
    lease.is_soft = is_soft;
    ASSERT_OK(catalog()->add_lease(lease));
  }
  // Simulates the time of the staging and of the last use.
  void set_cost(const std::string& dataset, double seconds, std::chrono::hours idle) {
    const auto rows = catalog()->generations();
    ASSERT_OK(rows);
    for (GenerationRow row : *rows) {
      if (row.dataset != dataset) continue;
      row.stage_seconds = seconds;
      row.last_used = clock_.wall() - idle;
      ASSERT_OK(catalog()->put(row));
    }
  }
  // From now on this change fails: "UPDATE ON generations".
  void fail_in_catalog(const std::string& change) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open((config_.state_dir / "catalog.sqlite").c_str(), &database), SQLITE_OK);
    const std::string trigger = "CREATE TRIGGER on_" + change.substr(0, change.find(' ')) + " BEFORE " +
                                change + " BEGIN SELECT RAISE(ABORT, 'it is full'); END";
    EXPECT_EQ(sqlite3_exec(database, trigger.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
  }
};

using Names = std::vector<std::string>;

class SmallDriveTest : public RoomTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "mounting a small tmpfs needs root";
  }
};

}  // namespace spark::staging::test
