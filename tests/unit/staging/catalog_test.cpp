#include "staging/catalog.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include "support.hpp"

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
  ASSERT_OK(catalog_->put(row(name, 4)));
  ASSERT_OK(catalog_->touch(name, 4, kNow + hours(1)));
  ASSERT_OK(catalog_->set_damage(name, 3, "f has other content"));
  ASSERT_OK(catalog_->set_cache_id("id"));
  catalog_ = open();
  const auto rows = catalog_->generations();
  ASSERT_OK(rows);
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_EQ((*rows)[0].dataset, name);
  EXPECT_EQ((*rows)[0].generation, 4U);
  EXPECT_EQ((*rows)[0].last_used, kNow + hours(1));
  EXPECT_EQ((*rows)[0].staged_at, kNow);
  EXPECT_EQ((*rows)[0].allocated, 4096U);
  EXPECT_EQ((*rows)[1].damage, "f has other content");
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

TEST_F(CatalogTest, WhatIsLeasedIsNotEvictedAndWhatIsEvictedIsNotLeased) {
  ASSERT_OK(catalog_->put(row("a", 1)));
  ASSERT_OK(catalog_->add_lease(lease("l1", "a", 1)));
  const auto refused = catalog_->begin_eviction("a", 1, kNow);
  EXPECT_KIND(refused, Errc::Refused);
  EXPECT_NE(refused.error().what.find("pid 1 (init)"), std::string::npos);
  EXPECT_EQ(*catalog_->remove_lease("l1"), Change::Done);
  EXPECT_EQ(*catalog_->remove_lease("l1"), Change::AlreadyThere);
  ASSERT_OK(catalog_->begin_eviction("a", 1, kNow));
  EXPECT_KIND(catalog_->add_lease(lease("l2", "a", 1)), Errc::NotFound);
  EXPECT_KIND(catalog_->add_lease(lease("l2", "b", 1)), Errc::NotFound);
}

TEST_F(CatalogTest, LeasesSurviveAReopenAndGoWithTheirGeneration) {
  ASSERT_OK(catalog_->put(row("a", 1)));
  Lease given = lease("l1", "a", 1);
  given.pid = 42;
  given.pid_start_time = 4711;
  given.expires = kNow + hours(2);
  ASSERT_OK(catalog_->add_lease(given));
  catalog_ = open();
  const auto leases = catalog_->leases();
  ASSERT_OK(leases);
  ASSERT_EQ(leases->size(), 1U);
  EXPECT_EQ((*leases)[0].pid, 42);
  EXPECT_EQ((*leases)[0].pid_start_time, 4711U);
  EXPECT_EQ((*leases)[0].expires, given.expires);
  ASSERT_OK(catalog_->remove("a", 1));
  EXPECT_TRUE(catalog_->leases()->empty());
}

TEST_F(CatalogTest, AnotherProcessSeesWhatWasWritten) {
  ASSERT_OK(catalog_->put(row("a", 1)));
  const auto other = open();
  ASSERT_OK(other->put(row("b", 1)));
  EXPECT_EQ(catalog_->generations()->size(), 2U);
}

TEST_F(CatalogTest, WhatIsNoCatalogIsAnErrorNotAnEmptyOne) {
  write_text(folder_ / "other/catalog.sqlite", std::string(8192, 'x'));
  const auto catalog = Catalog::open(folder_ / "other");
  ASSERT_FALSE(catalog);
  EXPECT_NE(catalog.error().what.find("opening the catalog"), std::string::npos);
  EXPECT_NE(catalog.error().hint.find("rebuilt"), std::string::npos) << catalog.error().message();
  write_text(folder_ / "file", "x");
  EXPECT_FALSE(Catalog::open(folder_ / "file"));
}

TEST(LeaseLife, EndsWithItsTimeOrItsProcess) {
  Lease timed = lease("l", "a", 1);
  EXPECT_TRUE(is_live(timed, kNow));
  timed.expires = kNow;
  EXPECT_FALSE(is_live(timed, kNow));
  timed.expires = kNow + std::chrono::seconds(1);
  EXPECT_TRUE(is_live(timed, kNow));

  Lease bound = lease("l", "a", 1);
  bound.pid = ::getpid();
  bound.pid_start_time = process_start_time(bound.pid).value();
  EXPECT_TRUE(is_live(bound, kNow));
  ++bound.pid_start_time;  // the same number, another process
  EXPECT_FALSE(is_live(bound, kNow));

  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(process_start_time(child)) << "ended, not reaped";
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(process_start_time(child));
}

}  // namespace
}  // namespace spark::staging
