// The state of a cache after a crash at any step, or at any moment.
#include "tests/unit/staging/cache/cache_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

// --- a crash after each step

class CacheCrash : public CacheTest, public testing::WithParamInterface<const char*> {
 protected:
  void crash_at_step() {
    hooks_.step = [](const char* step) -> Result<> {
      if (std::string_view(step) == GetParam()) return fail(Errc::Failed, "the power went");
      return {};
    };
  }
  // All datasets in the cache's list exist, are verified, and are linked.
  void expect_sound() {
    auto cache = open();
    const auto rows = cache->list();
    ASSERT_OK(rows);
    for (const DatasetRow& row : *rows) {
      ASSERT_OK(cache->verify(row.name, {}, kQuiet, stop_));
      EXPECT_EQ(std::filesystem::canonical(link()), std::filesystem::canonical(row.path));
    }
    EXPECT_EQ(rows->empty(), !std::filesystem::exists(std::filesystem::symlink_status(link())));
    EXPECT_TRUE(std::filesystem::is_empty(config_.path / ".trash"));
  }
};

TEST_P(CacheCrash, TheCacheIsConsistentAndStagingContinues) {
  for (const bool replaces : {false, true}) {
    source_.dataset = replaces ? "replaced" : "new";
    hooks_.step = {};
    write_text(source_.path / "f", "old!");
    write_text(source_.path / "g", noise(100'000, 1));
    if (replaces) {
      ASSERT_OK(stage());
    }
    write_text(source_.path / "f", "new!");
    crash_at_step();
    const bool crashed = !stage();
    hooks_.step = {};
    // A first staging has nothing to evict, and leftovers of an eviction do not fail a staging.
    const std::string_view step = GetParam();
    const bool evicts = step == "marked" || step == "unlinked" || step == "trashed" || step == "forgotten";
    EXPECT_EQ(crashed, !evicts);
    expect_sound();
    const auto staged = stage();
    ASSERT_OK(staged);
    EXPECT_EQ(read_text(link() / "f"), "new!");
    expect_sound();
    auto cache = open();
    ASSERT_OK(cache->evict(source_.dataset));
    EXPECT_FALSE(std::filesystem::exists(config_.path / "data" / source_.dataset));
  }
}

TEST_P(CacheCrash, AnOpenCacheContinuesAfterAnotherProcessCrashes) {
  write_text(source_.path / "f", "old!");
  auto cache = open();
  ASSERT_OK(stage(*cache));
  write_text(source_.path / "f", "new!");
  crash_at_step();
  static_cast<void>(stage());  // plays another process
  hooks_.step = {};
  write_text(source_.path / "f", "next");
  ASSERT_OK(stage(*cache));
  EXPECT_EQ(read_text(link() / "f"), "next");
  expect_sound();
  int generations = 0;
  for (const auto& entry : std::filesystem::directory_iterator(config_.path / "data/set")) {
    generations += entry.is_directory() ? 1 : 0;
  }
  EXPECT_EQ(generations, 1) << "nothing is left behind";
}

TEST_P(CacheCrash, AnEvictionIsCompletedAtTheNextOpen) {
  write_text(source_.path / "f", "x");
  ASSERT_OK(stage());
  crash_at_step();
  if (open()->evict("set")) return;  // this step is not part of an eviction
  hooks_.step = {};
  expect_sound();
  EXPECT_TRUE(open()->list()->empty());
  EXPECT_FALSE(std::filesystem::exists(config_.path / "data/set"));
  ASSERT_OK(stage());
  expect_sound();
}
INSTANTIATE_TEST_SUITE_P(Steps, CacheCrash,
                         testing::Values("manifest", "rename", "flush", "published", "committed", "linked",
                                         "marked", "unlinked", "trashed", "forgotten"));

TEST_F(CacheTest, ListedDatasetsVerifyAfterAKillAtAnyMoment) {
  for (int i = 0; i < 40; ++i)
    write_text(source_.path / std::to_string(i % 4) / std::to_string(i), noise(150'000, 7));
  std::mt19937_64 random(std::random_device{}());
  const auto work = [&] { return stage() ? 0 : 1; };
  const auto began = std::chrono::steady_clock::now();
  ASSERT_EQ(run_and_kill(work, std::chrono::seconds(30)), 0);
  const auto whole =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - began);
  int killed = 0;
  for (int round = 0; round < 200 && killed < 10; ++round) {
    write_text(source_.path / "1/changing", noise(1'000'000, random()));
    const auto moment = std::chrono::microseconds(random() % static_cast<std::uint64_t>(whole.count()));
    const int status = run_and_kill(work, moment);
    ASSERT_TRUE(status == 0 || status == 137) << status;
    killed += status == 137 ? 1 : 0;
    auto cache = open();
    const auto rows = cache->list();
    ASSERT_OK(rows);
    for (const DatasetRow& row : *rows) {
      ASSERT_OK(cache->verify(row.name, {}, kQuiet, stop_));
    }
  }
  EXPECT_GT(killed, 0);
  const auto staged = stage();
  ASSERT_OK(staged);
  EXPECT_EQ(differences_by_rsync(source_.path, staged->path), "");
}

}  // namespace
}  // namespace spark::staging
