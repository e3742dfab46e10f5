#include "staging/cache/catalog/catalog.hpp"

#include <sqlite3.h>
#include <unistd.h>

#include <fstream>

#include "staging/cache/catalog/damage.hpp"
#include "staging/cache/catalog/reserve.hpp"
#include "tests/support/skip.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

using namespace test;
using std::chrono::hours;

const WallTime kNow = WallTime(hours(500'000));

GenerationRow row(const std::string& dataset, std::uint64_t generation) {
  GenerationRow row;
  row.dataset = dataset;
  row.generation = generation;
  row.bytes = 5;
  row.allocated = 4096;
  row.files = 1;
  row.inodes = 2;
  row.stage_seconds = 1.5;
  row.hash = "abc";
  row.staged_at = row.last_used = kNow;
  return row;
}

Lease lease(const std::string& id, const std::string& dataset, std::uint64_t generation) {
  Lease lease;
  lease.id = id;
  lease.dataset = dataset;
  lease.generation = generation;
  lease.holder = "pid 1 (init)";
  return lease;
}

class CatalogTest : public testing::Test {
 protected:
  TempFolder folder_;
  std::unique_ptr<Catalog> catalog_ = open();

  std::unique_ptr<Catalog> open() {
    auto catalog = Catalog::open(folder_ / "state");
    EXPECT_TRUE(catalog) << catalog.error().message();
    return catalog ? std::move(*catalog) : nullptr;
  }
};

TEST_F(CatalogTest, RemembersAcrossAReopen) {
  const std::string name = "vol:a\n\xff";
  ASSERT_OK(catalog_->put(row(name, 3)));
  GenerationRow from_peers = row(name, 4);
  from_peers.from = BytesFrom{2, 3};
  ASSERT_OK(catalog_->put(from_peers));
  from_peers.definition = "a";
  ASSERT_OK(catalog_->put(from_peers));
  ASSERT_OK(catalog_->touch(name, 3, kNow, 0, "b"));
  ASSERT_OK(catalog_->touch(name, 4, kNow + hours(1)));
  ASSERT_OK(catalog_->set_scrubbed(name, 3, kNow + hours(2)));
  ASSERT_OK(catalog_->set_cache_id("id"));
  catalog_ = open();
  const auto rows = catalog_->generations();
  ASSERT_OK(rows);
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_EQ((*rows)[0].dataset, name);
  EXPECT_EQ((*rows)[0].generation, 4U);
  EXPECT_EQ((*rows)[0].last_used, kNow + hours(1));
  EXPECT_EQ((*rows)[0].definition, "a");
  EXPECT_EQ((*rows)[1].definition, "b");
  ASSERT_TRUE((*rows)[0].from);
  EXPECT_EQ((*rows)[0].from->volume, 2U);
  EXPECT_EQ((*rows)[0].from->peers, 3U);
  EXPECT_FALSE((*rows)[1].from);
  EXPECT_EQ((*rows)[0].staged_at, kNow);
  EXPECT_EQ((*rows)[0].allocated, 4096U);
  EXPECT_EQ((*rows)[0].inodes, 2U);
  EXPECT_EQ((*rows)[0].stage_seconds, 1.5);
  EXPECT_FALSE((*rows)[0].scrubbed_at);
  EXPECT_EQ((*rows)[1].scrubbed_at, kNow + hours(2));
  EXPECT_EQ(*catalog_->cache_id(), "id");
  EXPECT_EQ(*catalog_->next_generation(name), 5U);
}

TEST_F(CatalogTest, GenerationNumbersAreNeverUsedTwice) {
  EXPECT_EQ(*catalog_->next_generation("a"), 1U);
  ASSERT_OK(catalog_->put(row("a", 1)));
  ASSERT_OK(catalog_->remove("a", 1));
  EXPECT_EQ(*catalog_->next_generation("a"), 2U);
  EXPECT_EQ(*catalog_->next_generation("b"), 1U);
}

TEST_F(CatalogTest, ALeasedCopyIsNotEvictedAndAnEvictedOneIsNotLeased) {
  ASSERT_OK(catalog_->put(row("a", 1)));
  ASSERT_OK(catalog_->put(row("b", 1)));
  ASSERT_OK(catalog_->add_lease(lease("l1", "a", 1)));
  EXPECT_KIND(catalog_->begin_eviction({row("b", 1), row("a", 1)}, kNow), Errc::Refused);
  ASSERT_OK(catalog_->add_lease(lease("b1", "b", 1)));  // all or none: the eviction of b did not begin either
  const auto refused = catalog_->begin_eviction({row("a", 1)}, kNow);
  EXPECT_KIND(refused, Errc::Refused);
  EXPECT_NE(refused.error().what.find("pid 1 (init)"), std::string::npos);
  EXPECT_EQ(*catalog_->remove_lease("l1"), Change::Done);
  EXPECT_EQ(*catalog_->remove_lease("l1"), Change::AlreadyThere);
  ASSERT_OK(catalog_->begin_eviction({row("a", 1)}, kNow));
  EXPECT_KIND(catalog_->add_lease(lease("l2", "a", 1)), Errc::NotFound);
  EXPECT_KIND(catalog_->add_lease(lease("l2", "c", 1)), Errc::NotFound);
}

TEST_F(CatalogTest, LeasesSurviveAReopenAndEndWithTheirGeneration) {
  ASSERT_OK(catalog_->put(row("a", 1)));
  Lease given = lease("l1", "a", 1);
  given.process = {42, 4711};
  given.cgroup = {"/sys/fs/cgroup/a.slice/b\xff", 77};
  given.expires = kNow + hours(2);
  ASSERT_OK(catalog_->add_lease(given));
  catalog_ = open();
  const auto leases = catalog_->leases();
  ASSERT_OK(leases);
  ASSERT_EQ(leases->size(), 1U);
  EXPECT_EQ((*leases)[0].process.pid, 42);
  EXPECT_EQ((*leases)[0].process.start_time, 4711U);
  EXPECT_EQ((*leases)[0].cgroup.path, given.cgroup.path);
  EXPECT_EQ((*leases)[0].cgroup.id, 77U);
  EXPECT_EQ((*leases)[0].expires, given.expires);
  ASSERT_OK(catalog_->remove("a", 1));
  EXPECT_TRUE(catalog_->leases()->empty());
}

TEST_F(CatalogTest, AnotherConnectionSeesTheChanges) {
  ASSERT_OK(catalog_->put(row("a", 1)));
  const auto other = open();
  ASSERT_OK(other->put(row("b", 1)));
  EXPECT_EQ(catalog_->generations()->size(), 2U);
}

TEST_F(CatalogTest, AnInvalidCatalogIsAnErrorNotAnEmptyOne) {
  write_text(folder_ / "other/catalog.sqlite", std::string(8192, 'x'));
  const auto catalog = Catalog::open(folder_ / "other");
  ASSERT_FALSE(catalog);
  EXPECT_NE(catalog.error().what.find("opening the catalog"), std::string::npos);
  EXPECT_NE(catalog.error().hint.find("rebuilds"), std::string::npos) << catalog.error().message();
  write_text(folder_ / "file", "x");
  EXPECT_FALSE(Catalog::open(folder_ / "file"));
}

TEST_F(CatalogTest, ReservationsEndWithTheirProcess) {
  ASSERT_OK(catalog_->reserve({"a", 5, 1, process_with(::getpid())}));
  ASSERT_OK(catalog_->reserve({"a", 7, 2, process_with(::getpid())}));
  ASSERT_OK(catalog_->reserve({"b", 9, 3, {::getpid(), 1}}));  // an earlier process with that PID
  const auto all = catalog_->reservations();
  ASSERT_OK(all);
  ASSERT_EQ(all->size(), 1U);
  EXPECT_EQ(all->front().bytes, 7U);
  EXPECT_EQ(all->front().inodes, 2U);
  ASSERT_OK(catalog_->drop_reservation("a"));
  EXPECT_TRUE(catalog_->reservations()->empty());
}

Lease lease_of_a_job(std::uint64_t generation) {
  Lease lease;
  lease.id = "job:slurm:7:a";
  lease.dataset = "a";
  lease.generation = generation;
  lease.holder = "slurm job 7 (alice)";
  lease.job = {"slurm", "7", "alice", {{41, 1}, {42, 2}}, "boot"};
  return lease;
}

TEST_F(CatalogTest, LeasesOfJobsHaveTheirProcesses) {
  ASSERT_OK(catalog_->add_lease(lease_of_a_job(0)));
  auto leases = catalog_->leases();
  ASSERT_OK(leases);
  ASSERT_EQ(leases->size(), 1U);
  const SchedulerJob& job = leases->front().job;
  EXPECT_EQ(job.key(), "slurm:7");
  EXPECT_EQ(job.user, "alice");
  EXPECT_EQ(job.boot, "boot");
  EXPECT_EQ(job.processes, (std::vector<ProcessId>{{41, 1}, {42, 2}}));

  Lease renewed = lease_of_a_job(0);
  renewed.job.processes = {{43, 3}};
  ASSERT_OK(catalog_->add_lease(renewed));
  leases = catalog_->leases();
  ASSERT_OK(leases);
  ASSERT_EQ(leases->size(), 1U);
  EXPECT_EQ(leases->front().job.processes, (std::vector<ProcessId>{{43, 3}})) << "of the renewed one alone";

  ASSERT_OK(catalog_->remove_lease("job:slurm:7:a"));
  ASSERT_OK(catalog_->add_lease([] {
    Lease another = lease_of_a_job(0);
    another.job.processes.clear();
    return another;
  }()));
  EXPECT_TRUE(catalog_->leases()->front().job.processes.empty()) << "a removed lease leaves none behind";
}

// As by a worker while the state folder is full.
TEST_F(CatalogTest, ACatalogThatAnotherProcessKeepsIsWaitedForALimitedTime) {
  catalog_.reset();
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open((folder_ / "state/catalog.sqlite").c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT", nullptr, nullptr,
                         nullptr),
            SQLITE_OK);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(Catalog::open(folder_ / "state"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(25));
  sqlite3_close(other);
  EXPECT_TRUE(Catalog::open(folder_ / "state"));
}

TEST_F(CatalogTest, AJobThatWaitsForADatasetDoesNotBlockEviction) {
  ASSERT_OK(catalog_->add_lease(lease_of_a_job(0)));
  EXPECT_KIND(catalog_->add_lease(lease_of_a_job(1)), Errc::NotFound);
  GenerationRow row;
  row.dataset = "a";
  row.generation = 1;
  ASSERT_OK(catalog_->put(row));
  EXPECT_TRUE(catalog_->begin_eviction({row}, WallTime{})) << "of an older copy, by a newer one";
}

TEST_F(CatalogTest, AnErrorAfterAFullDriveIsNotCalledAFullDrive) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount";
  const SmallTmpfs full(folder_ / "full", "size=1m");
  const auto catalog = Catalog::open(folder_ / "full");
  ASSERT_OK(catalog);
  GenerationRow large = row("a", 1);
  large.hash = std::string(100'000, 'x');
  {
    std::ofstream fill(folder_ / "full/fill");
    while (fill << large.hash << std::flush) {
    }
  }
  EXPECT_KIND((*catalog)->put(large), Errc::NoSpace);
  std::filesystem::remove(folder_ / "full/fill");
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open((folder_ / "full/catalog.sqlite").c_str(), &other), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(other, "DROP TABLE troubles", nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(other);
  sqlite3_close(other);
  EXPECT_KIND((*catalog)->troubles(), Errc::Failed);
}

TEST_F(CatalogTest, OnAFullDriveItsReserveIsEnoughForAnEviction) {
  if (::geteuid() != 0) SPARK_SKIP("only root can mount");
  const SmallTmpfs drive(folder_ / "full", "size=20m");
  const auto file = folder_ / "full/.reserve/0";
  ASSERT_OK((*Catalog::open(folder_ / "full"))->put(row("a", 1)));
  write_text(file, "");  // an interrupted call
  make_reserve(folder_ / "full");
  EXPECT_EQ(std::filesystem::file_size(file), kMiB);
  {
    std::ofstream fill(folder_ / "full/fill");
    const std::string block(4096, 'x');
    while (fill << block << std::flush) {
    }
  }
  int tries = 0;
  const auto evict = [&] {
    EXPECT_EQ(std::filesystem::exists(file), ++tries == 1);
    return (*Catalog::open(folder_ / "full"))->begin_eviction({row("a", 1)}, kNow);
  };
  ASSERT_OK(Reserve({folder_ / "full"}).with(evict));
  EXPECT_EQ(tries, 2);
  EXPECT_TRUE(std::filesystem::exists(file)) << "for the next time";
}

// Its log and its index would be new files.
TEST_F(CatalogTest, WithoutInodesItIsRead) {
  if (::geteuid() != 0) SPARK_SKIP("only root can mount");
  const SmallTmpfs drive(folder_ / "full?%20#", "size=20m,nr_inodes=20");
  ASSERT_OK((*Catalog::open(folder_ / "full?%20#"))->put(row("a", 1)));
  for (int i = 0; std::ofstream(folder_ / "full?%20#" / std::to_string(i)); ++i) {
  }
  const auto catalog = Catalog::open(folder_ / "full?%20#");
  ASSERT_OK(catalog);
  EXPECT_EQ((*catalog)->generations()->size(), 1U);
  EXPECT_KIND((*catalog)->put(row("b", 1)), Errc::NoSpace);
}

// As written by the first release.
constexpr char kFirstSchema[] = R"(
  CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
  CREATE TABLE datasets (name TEXT PRIMARY KEY, last_generation INTEGER NOT NULL) STRICT;
  CREATE TABLE generations (
    dataset TEXT NOT NULL, generation INTEGER NOT NULL, state TEXT NOT NULL, bytes INTEGER NOT NULL,
    allocated INTEGER NOT NULL, files INTEGER NOT NULL, hash TEXT NOT NULL, damage TEXT NOT NULL,
    staged_at_us INTEGER NOT NULL, last_used_us INTEGER NOT NULL, PRIMARY KEY (dataset, generation)) STRICT;
  CREATE TABLE leases (
    id TEXT PRIMARY KEY, dataset TEXT NOT NULL, generation INTEGER NOT NULL, holder TEXT NOT NULL,
    pid INTEGER NOT NULL, pid_start_time INTEGER NOT NULL, expires_us INTEGER) STRICT;
  INSERT INTO facts VALUES ('cache_id', 'id');
  INSERT INTO datasets VALUES ('a', 3);
  INSERT INTO generations VALUES ('a', 3, 'ready', 50, 40, 9, 'abc', '', 1000000, 2000000);
  INSERT INTO leases VALUES ('l1', 'a', 3, 'pid 42', 42, 4711, NULL);
  PRAGMA user_version = 1;
)";

class OldCatalogTest : public testing::Test {
 protected:
  TempFolder folder_;
  void write(const std::string& script) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open((folder_ / "catalog.sqlite").c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, script.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_close(database);
  }
};

TEST_F(OldCatalogTest, ACatalogOfTheFirstReleaseIsUpgradedWithAllItsData) {
  write(kFirstSchema);
  for (int opened = 0; opened < 2; ++opened) {
    const auto catalog = Catalog::open(folder_.path());
    ASSERT_OK(catalog);
    const auto rows = (*catalog)->generations();
    ASSERT_OK(rows);
    ASSERT_EQ(rows->size(), 1U);
    EXPECT_EQ((*rows)[0].allocated, 40U);
    EXPECT_EQ((*rows)[0].inodes, 9U) << "the files at least";
    EXPECT_EQ((*rows)[0].stage_seconds, 0);
    EXPECT_FALSE((*rows)[0].scrubbed_at);
    ASSERT_EQ((*catalog)->leases()->size(), 1U);
    EXPECT_EQ((*catalog)->leases()->front().process.start_time, 4711U);
    EXPECT_EQ((*catalog)->leases()->front().cgroup.path, "");
    EXPECT_EQ(*(*catalog)->cache_id(), "id");
  }
}

// Additions of version 0.1, up to its last schema.
constexpr char kSchemaOf01[] = R"(
  ALTER TABLE generations ADD COLUMN inodes INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE generations ADD COLUMN stage_seconds REAL NOT NULL DEFAULT 0;
  ALTER TABLE generations ADD COLUMN scrubbed_at_us INTEGER;
  ALTER TABLE leases ADD COLUMN cgroup TEXT NOT NULL DEFAULT '';
  ALTER TABLE leases ADD COLUMN cgroup_id INTEGER NOT NULL DEFAULT 0;
  CREATE TABLE reservations (
    dataset TEXT PRIMARY KEY, bytes INTEGER NOT NULL, inodes INTEGER NOT NULL, pid INTEGER NOT NULL,
    pid_start_time INTEGER NOT NULL) STRICT;
  ALTER TABLE generations ADD COLUMN source_generation INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE generations ADD COLUMN doubtful INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE generations ADD COLUMN good_at_us INTEGER NOT NULL DEFAULT 0;
  CREATE TABLE troubles (key TEXT PRIMARY KEY, what TEXT NOT NULL) STRICT;
  ALTER TABLE reservations ADD COLUMN task INTEGER NOT NULL DEFAULT 0;
  INSERT INTO leases VALUES ('l2', 'a', 3, 'a unit', 0, 0, NULL, '/sys/fs/cgroup/a.service', 99);
  PRAGMA user_version = 5;
)";

TEST_F(OldCatalogTest, ACatalogOfVersion01KeepsItsLeasesAndAcceptsJobLeases) {
  write(std::string(kFirstSchema) + kSchemaOf01);
  for (int opened = 0; opened < 2; ++opened) {
    const auto catalog = Catalog::open(folder_.path());
    ASSERT_OK(catalog);
    const auto leases = (*catalog)->leases();
    ASSERT_OK(leases);
    ASSERT_EQ(leases->size(), opened == 0 ? 2U : 3U);
    EXPECT_EQ(leases->back().id, "l2");
    EXPECT_EQ(leases->back().cgroup.id, 99U);
    EXPECT_FALSE(leases->back().job.is_set());
    EXPECT_FALSE(leases->back().is_soft);
    ASSERT_OK((*catalog)->add_lease(lease_of_a_job(3)));
  }
}

TEST_F(OldCatalogTest, ACatalogOfALaterReleaseIsRefused) {
  write(std::string(kFirstSchema) + "PRAGMA user_version = 99;");
  EXPECT_KIND(Catalog::open(folder_.path()), Errc::Unsupported);
}

TEST_F(OldCatalogTest, DamageThatWasFoundStaysKnown) {
  write(std::string(kFirstSchema) + "UPDATE generations SET damage = 'f has other' || char(10) || 'content'");
  const auto catalog = Catalog::open(folder_.path());
  ASSERT_OK(catalog);
  const DamageRecords records(folder_ / "data", **catalog);
  EXPECT_EQ(records.of("a")->found.at(3), "f has other content");
  EXPECT_TRUE(records.of("a")->makes_suspect(3));
  EXPECT_FALSE(records.of("b")->makes_suspect(3));
}

TEST_F(OldCatalogTest, ACatalogThatCannotBeUpgradedStaysUnchanged) {
  write(std::string(kFirstSchema) + "CREATE TABLE reservations (other TEXT);");
  EXPECT_FALSE(Catalog::open(folder_.path()));
  write("DROP TABLE reservations");
  ASSERT_OK(Catalog::open(folder_.path()));
}

}  // namespace
}  // namespace spark::staging
