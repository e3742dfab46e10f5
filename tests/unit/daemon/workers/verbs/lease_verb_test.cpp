#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/file.hpp"
#include "daemon/workers/verbs/verbs.hpp"
#include "daemon/workers/wire.hpp"
#include "staging/cache/cache.hpp"
#include "staging/cache/catalog/reserve.hpp"
#include "staging/leases/lease_json.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/temp_folder.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::workers {
namespace {

class LeaseVerbTest : public testing::Test {
 protected:
  json::object request(json::object request) const {
    config::CacheSettings settings;
    settings.path = folder_ / "cache";
    request["cache"] = to_json(settings, folder_ / "state");
    return request;
  }
  Result<json::object> ask(const std::string& op, json::object parts = {}) {
    json::object whole = request(std::move(parts));
    whole["op"] = op;
    return lease_verb(whole, [](const json::object&) {});
  }
  std::size_t listed() {
    const auto answer = ask("list");
    return answer ? get_array(*answer, "leases")->size() : 99;
  }

  test::TempFolder folder_;
};

// As with a full state folder.
class FullCatalogTest : public LeaseVerbTest {
 protected:
  FullCatalogTest() {
    EXPECT_TRUE(staging::Cache::open({folder_ / "cache", folder_ / "state", 0, 0}, clock_));
  }
  void take_away() {
    std::filesystem::rename(file_, aside_);
    std::filesystem::create_directory(file_);
  }
  void give_back() {
    std::filesystem::remove(file_);
    std::filesystem::rename(aside_, file_);
  }
  Result<json::object> add(const std::string& id, const char* dataset = "imagenet") {
    staging::Lease lease;
    lease.id = id;
    lease.dataset = dataset;
    return ask("add", to_json(lease));
  }
  Result<json::object> remove(json::array ids) { return ask("remove", {{"ids", std::move(ids)}}); }
  std::vector<std::string> datasets() {
    const auto answer = ask("list");
    std::vector<std::string> all;
    for (const json::value& one : answer ? *get_array(*answer, "leases") : json::array{})
      all.push_back(get_string(one.as_object(), "dataset").value_or("lost"));
    return all;
  }

  const SystemClock clock_;
  const std::filesystem::path file_ = folder_ / "state/catalog.sqlite", aside_ = folder_ / "aside";
};

// As after it was moved away: an empty one would hide all copies.
TEST_F(FullCatalogTest, AMissingCatalogIsNotMadeByALease) {
  std::filesystem::rename(file_, aside_);
  EXPECT_TRUE(add("1f")) << "on the cache's drive";
  EXPECT_FALSE(remove({json::value("2e")})) << "the catalog may have it";
  EXPECT_FALSE(ask("serve", {{"id", "request-1"}, {"path", folder_.path().native()}}));
  EXPECT_EQ(listed(), 1U) << "a daemon that starts makes the catalog again after that";
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(FullCatalogTest, ACatalogThatTheDaemonHasSeenIsNotMadeAgain) {
  std::filesystem::rename(file_, aside_);
  for (const auto verb : {stage_verb, recover_verb}) {
    const auto answer =
        verb(request({{"dataset", "set"}, {"path", folder_.path().native()}, {"knows_catalog", true}}),
             [](const json::object&) {});
    ASSERT_FALSE(answer);
    EXPECT_NE(answer.error().message().find("is gone"), std::string::npos) << answer.error().message();
    EXPECT_FALSE(std::filesystem::exists(file_));
  }
}

TEST_F(FullCatalogTest, AMissingCatalogIsMadeByARecoveryOnly) {
  std::filesystem::rename(file_, aside_);
  for (const auto verb : {verify_verb, evict_verb, catalog_verb}) {
    const auto answer = verb(request({{"dataset", "set"}}), [](const json::object&) {});
    EXPECT_FALSE(answer);
    EXPECT_FALSE(std::filesystem::exists(file_));
    if (!answer) {
      EXPECT_NE(answer.error().message().find("is gone"), std::string::npos) << answer.error().message();
    }
  }
  EXPECT_TRUE(recover_verb(request({}), [](const json::object&) {}));
  EXPECT_TRUE(std::filesystem::exists(file_));
  ::umount2((folder_ / "cache/data").c_str(), MNT_DETACH);
}

// A job's lease has one ID from its request on.
TEST_F(FullCatalogTest, TheNewerOfTwoLeasesWithOneIdCounts) {
  ASSERT_TRUE(add("1f", "first"));
  take_away();
  ASSERT_TRUE(add("1f", "second"));
  give_back();
  EXPECT_EQ(datasets(), std::vector<std::string>{"second"});
  ASSERT_TRUE(add("1f", "third"));
  EXPECT_EQ(datasets(), std::vector<std::string>{"third"});
}

TEST_F(FullCatalogTest, AllLeasesEndOnTheCachesDrive) {
  take_away();
  ASSERT_TRUE(add("1"));
  ASSERT_TRUE(add("2"));
  EXPECT_FALSE(remove({json::value("1"), json::value("2")})) << "the catalog may have them";
  give_back();
  EXPECT_EQ(listed(), 0U);
}

TEST_F(FullCatalogTest, ALeaseOfADatasetWithTheNameOfATemporaryFileIsKnown) {
  take_away();
  ASSERT_TRUE(add("job:slurm:7:x.new"));
  give_back();
  EXPECT_EQ(listed(), 1U);
}

TEST_F(FullCatalogTest, ALeaseThatIsLostHidesNoOther) {
  ASSERT_TRUE(add("1"));
  std::filesystem::create_directory(folder_ / "cache/.leases");
  ASSERT_TRUE(write_file_atomically(folder_ / "cache/.leases/2.json", "{"));
  const std::vector<std::string> both{"lost", "imagenet"};
  EXPECT_TRUE(std::ranges::is_permutation(datasets(), both));
}

// Nothing could be evicted otherwise, and the lease would be back after a restart.
TEST_F(LeaseVerbTest, OnAFullDriveAReleaseIsWrittenWithTheReserve) {
  if (::geteuid() != 0) SPARK_SKIP("only root can mount");
  const staging::test::SmallTmpfs drive(folder_ / "state", "size=20m");
  const SystemClock clock;
  ASSERT_TRUE(staging::Cache::open({folder_ / "cache", folder_ / "state", 0, 0}, clock));
  staging::Lease lease;
  lease.id = "1f";
  lease.dataset = "imagenet";
  ASSERT_TRUE(ask("add", to_json(lease)));
  staging::make_reserve(folder_ / "state");
  {
    std::ofstream fill(folder_ / "state/fill");
    const std::string block(4096, 'x');
    while (fill << block << std::flush) {
    }
  }
  ASSERT_TRUE(ask("remove", {{"ids", json::array{json::value("1f")}}}));
  EXPECT_EQ(listed(), 0U);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "state/.reserve")) << "for the next time";
}

TEST_F(LeaseVerbTest, ALeaseThatTheCatalogCannotTakeIsKeptOnTheCachesDrive) {
  const SystemClock clock;
  const staging::CacheConfig config{folder_ / "cache", folder_ / "state", 0, 0};
  ASSERT_TRUE(staging::Cache::open(config, clock));
  const auto file = folder_ / "state/catalog.sqlite", aside = folder_ / "aside";
  std::filesystem::rename(file, aside);
  std::filesystem::create_directory(file);
  staging::Lease lease;
  lease.id = "1f";
  lease.dataset = "imagenet";
  lease.generation = 3;
  lease.process = staging::process_with(::getpid());
  const auto added = ask("add", to_json(lease));
  EXPECT_TRUE(added) << added.error().message();
  EXPECT_FALSE(ask("list")) << "a daemon that starts waits for the catalog";
  std::filesystem::remove(file);
  std::filesystem::rename(aside, file);
  ASSERT_EQ(listed(), 1U);
  const auto answer = ask("list");
  const staging::Lease kept = staging::lease_from_json(get_array(*answer, "leases")->front().as_object());
  EXPECT_EQ(kept.id, "1f");
  EXPECT_EQ(kept.generation, 3U);
  EXPECT_EQ(kept.process, lease.process);
  EXPECT_TRUE(ask("remove", {{"ids", json::array{json::value("1f")}}}));
  EXPECT_EQ(listed(), 0U);
}

}  // namespace
}  // namespace spark::workers
