// Damage belongs to files, which generations share.
#include "staging/cache/cache.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <optional>
#include <set>

#include "tests/support/failing_call.hpp"
#include "tests/support/skip.hpp"
#include "tests/unit/staging/cache/cache_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

// Calls that change something, counted once `is_armed`: the process ends before number `end_at`.
std::atomic<bool> is_armed{false};
std::atomic<int> changes{0};
int end_at = 0;
constexpr int kChanges[] = {SYS_write,     SYS_pwrite64, SYS_fsync,    SYS_fdatasync, SYS_rename,
                            SYS_renameat2, SYS_unlink,   SYS_unlinkat, SYS_linkat,    SYS_mkdir,
                            SYS_symlink,   SYS_rmdir,    SYS_openat,   SYS_fchmod,    SYS_ftruncate};

std::optional<long> end_in_time(const spark::test::FileCall& call) {
  const long* a = call.arguments;
  const bool is_change = call.number != SYS_openat || (a[2] & O_CREAT) != 0;
  if (is_armed && is_change && ++changes == end_at) ::_exit(137);
  return std::nullopt;
}

// The drive can't read the record, until it is replaced.
std::optional<long> lose_record(const spark::test::FileCall& call) {
  static std::atomic<bool> is_replaced{false};
  if (!std::string_view(reinterpret_cast<const char*>(call.arguments[1])).ends_with(".spark-damage"))
    return std::nullopt;
  if (call.number == SYS_rename) is_replaced = true;
  return is_replaced ? std::nullopt : std::optional<long>(-EIO);
}

// In memory, if that can be mounted: hundreds of copies are made, and a killed process loses nothing that it
// has written, on any drive.
class DamageTest : public CacheTest {
 protected:
  DamageTest() {
    if (::geteuid() == 0) memory_.emplace(folder_ / "memory", "size=64m");
    config_.path = folder_ / "memory/cache";
    config_.state_dir = folder_ / "memory/state";
    source_.path = folder_ / "memory/source";
  }
  // A leased generation and a newer one that share the file "same".
  void make_two_generations() {
    write_text(source_.path / "same", noise(100'000, 1));
    write_text(source_.path / "f", "one");
    ASSERT_OK(stage());
    Lease lease;
    lease.id = "job";
    lease.dataset = "set";
    lease.generation = 1;
    ASSERT_OK(catalog()->add_lease(lease));
    write_text(source_.path / "f", "two!");
    ASSERT_OK(stage());
  }
  // In a child that is killed before its call number `end_at`. False: it has ended by itself.
  static bool is_killed_at(int nth, const std::function<void()>& work) {
    const auto child = [&] {
      end_at = nth;
      if (!spark::test::intercept_calls(kChanges, end_in_time).empty()) return 10;
      work();
      return 0;
    };
    const int status = run_and_kill(child, std::chrono::seconds(60));
    EXPECT_TRUE(status == 0 || status == 137) << status;
    return status == 137;
  }
  void start_again() {
    std::filesystem::remove_all(config_.path);
    std::filesystem::remove_all(config_.state_dir);
  }
  std::set<std::string> kinds_of_damage() {
    const auto rows = open()->list();
    std::set<std::string> kinds;
    if (!rows) kinds.insert(rows.error().message());
    for (const DatasetRow& row : rows ? *rows : std::vector<DatasetRow>{}) kinds.insert(row.damage);
    return kinds;
  }

 private:
  std::optional<SmallTmpfs> memory_;
};

// A verification that is killed has found damage, or has never been: nothing in between.
TEST_F(DamageTest, AKilledVerificationLeavesNoHalfOfWhatItFound) {
  int nth = 1, found = 0;
  for (bool goes_on = true; goes_on && !HasFailure(); ++nth) {
    SCOPED_TRACE("killed at change " + std::to_string(nth));
    start_again();
    make_two_generations();
    corrupt(link() / "same");
    goes_on = is_killed_at(nth, [&] {
      const auto cache = open_cache_with(hooks_, config_, clock_);
      is_armed = true;
      static_cast<void>((*cache)->verify("set", {}, kQuiet, stop_));
    });
    const bool is_known = kinds_of_damage() != std::set<std::string>{""};
    if (!goes_on) {
      EXPECT_TRUE(is_known);
    }
    const auto staged = stage();
    ASSERT_OK(staged);
    if (!is_known) {
      EXPECT_EQ(staged->served_from, ServedFrom::Cache);
      continue;
    }
    ++found;
    EXPECT_EQ(staged->report.unchanged_bytes, 0u);
    ASSERT_OK(open()->verify("set", {}, kQuiet, stop_));
    EXPECT_EQ(differences_by_rsync(source_.path, staged->path), "");
  }
  EXPECT_GT(found, 2);
  EXPECT_GT(nth, 5);
}

// Damage is found while a copy takes over the damaged file, and then that copy's process dies.
TEST_F(DamageTest, AKilledCopyDoesNotForgetDamageThatWasFoundMeanwhile) {
  int nth = 1;
  for (bool goes_on = true; goes_on && !HasFailure(); ++nth) {
    SCOPED_TRACE("killed at change " + std::to_string(nth));
    start_again();
    write_text(source_.path / "same", noise(100'000, 1));
    write_text(source_.path / "f", "one");
    hooks_ = {};
    ASSERT_OK(stage());
    write_text(source_.path / "f", "two!");
    hooks_.before_read = [&](const std::string& path, Bytes) {
      if (path != "f" || is_armed) return;
      corrupt(config_.path / "data/set/1/same");
      const auto other = Cache::open(config_, clock_);
      EXPECT_KIND((*other)->verify("set", {}, kQuiet, stop_), Errc::Mismatch);
      is_armed = true;
    };
    goes_on = is_killed_at(nth, [&] { EXPECT_KIND(stage(), Errc::Mismatch); });
    hooks_ = {};
    auto cache = open();
    EXPECT_NE(kinds_of_damage(), std::set<std::string>{""});
    const auto staged = stage(*cache);
    ASSERT_OK(staged);
    EXPECT_EQ(differences_by_rsync(source_.path, staged->path), "");
    ASSERT_OK(cache->verify("set", {}, kQuiet, stop_));
    EXPECT_EQ(kinds_of_damage(), std::set<std::string>{""});
  }
  EXPECT_GT(nth, 5);
}

// The next attempt may continue the copy that was in progress.
TEST_F(DamageTest, AnUnfinishedCopyIsNotContinuedAfterDamageWasFound) {
  write_text(source_.path / "same", noise(100'000, 1));
  write_text(source_.path / "f", "one");
  ASSERT_OK(stage());
  write_text(source_.path / "f", "two!");
  hooks_.step = [](const char* step) -> Result<> {
    return std::string_view(step) == "manifest" ? fail(Errc::Failed, "the power went") : Result<>();
  };
  EXPECT_FALSE(stage());
  hooks_ = {};
  corrupt(config_.path / "data/set/1/same");
  EXPECT_KIND(open()->verify("set", {}, kQuiet, stop_), Errc::Mismatch);
  int nth = 1;
  for (bool goes_on = true; goes_on && !HasFailure(); ++nth) {
    goes_on = is_killed_at(nth, [&] {
      is_armed = true;
      static_cast<void>(stage());
    });
    auto cache = open();
    const auto rows = cache->list();
    ASSERT_OK(rows);
    if (rows->front().generation == 1) {
      EXPECT_NE(rows->front().damage, "");
    } else {
      EXPECT_EQ(differences_by_rsync(source_.path, rows->front().path), "");
    }
  }
  const auto staged = stage();
  ASSERT_OK(staged);
  EXPECT_EQ(differences_by_rsync(source_.path, staged->path), "");
}

// A drive that fails often takes no more writes.
TEST_F(DamageTest, ADriveThatTakesNoWritesDoesNotMakeDamageForgotten) {
  make_two_generations();
  corrupt(link() / "same");
  static constexpr int kCalls[] = {SYS_openat, SYS_open, SYS_creat};
  const auto read_only = [](const spark::test::FileCall& call) -> std::optional<long> {
    const auto* path =
        reinterpret_cast<const char*>(call.number == SYS_openat ? call.arguments[1] : call.arguments[0]);
    const long flags = call.number == SYS_openat ? call.arguments[2] : call.arguments[1];
    const std::string_view name(path);
    if ((flags & O_CREAT) == 0 || name.find("/cache/") == name.npos) return std::nullopt;
    return -EROFS;
  };
  const auto child = [&] {
    const auto cache = open_cache_with(hooks_, config_, clock_);
    if (!spark::test::intercept_calls(kCalls, read_only).empty()) return 10;
    const auto verified = (*cache)->verify("set", {}, kQuiet, stop_);
    if (verified || verified.error().kind != Errc::Mismatch) return 11;
    if (verified.error().what.find("not recorded") == std::string::npos) return 12;
    return verified.error().hint.starts_with("it is no longer served") ? 0 : 13;
  };
  EXPECT_EQ(run_and_kill(child, std::chrono::seconds(60)), 0) << "12: it has to be said; 13: by the catalog";
  EXPECT_NE(kinds_of_damage(), std::set<std::string>{""});
  const auto staged = stage();
  ASSERT_OK(staged);
  EXPECT_EQ(staged->report.unchanged_bytes, 0u);
  EXPECT_EQ(differences_by_rsync(source_.path, staged->path), "");
}

TEST_F(DamageTest, AFullDriveDoesNotMakeDamageForgottenOnceTheCatalogIsLost) {
  if (::geteuid() != 0) SPARK_SKIP("mounting needs root");
  config_.state_dir = folder_ / "state";
  for (const bool is_lost : {false, true}) {
    start_again();
    make_two_generations();
    corrupt(link() / "same");
    const auto filler = folder_ / "memory/filler";
    {
      std::ofstream file(filler);
      while (file << std::string(4096, 'x') << std::flush) {
      }
    }
    EXPECT_KIND((*open_cache_with(hooks_, config_, clock_))->verify("set", {}, kQuiet, stop_),
                Errc::Mismatch);
    std::filesystem::remove(filler);
    if (is_lost) std::filesystem::remove_all(config_.state_dir);
    EXPECT_FALSE(kinds_of_damage().contains(""));
    const auto staged = stage();
    ASSERT_OK(staged);
    EXPECT_EQ(staged->report.unchanged_bytes, 0u);
    EXPECT_EQ(differences_by_rsync(source_.path, staged->path), "");
    ASSERT_OK(open()->verify("set", {}, kQuiet, stop_));
    const auto again = stage();
    ASSERT_OK(again);
    EXPECT_EQ(again->served_from, ServedFrom::Cache);
  }
}

TEST_F(DamageTest, AnEvictedDatasetLeavesNothing) {
  write_text(source_.path / "f", noise(100'000, 1));
  ASSERT_OK(stage());
  corrupt(link() / "f");
  EXPECT_KIND(open()->verify("set", {}, kQuiet, stop_), Errc::Mismatch);
  ASSERT_OK(open()->evict("set"));
  EXPECT_FALSE(std::filesystem::exists(config_.path / "data/set"));
  ASSERT_OK(stage());
  EXPECT_EQ(kinds_of_damage(), std::set<std::string>{""});
}

TEST_F(DamageTest, ARecordThatCannotBeReadMakesAllCopiesSuspectAndIsReplaced) {
  for (const bool is_evicted : {false, true}) {
    start_again();
    write_text(source_.path / "f", noise(100'000, 1));
    ASSERT_OK(stage());
    corrupt(link() / "f");
    EXPECT_KIND(open()->verify("set", {}, kQuiet, stop_), Errc::Mismatch);
    ASSERT_OK(stage());
    const auto child = [&] {
      constexpr int kCalls[] = {SYS_openat, SYS_rename};
      if (!spark::test::intercept_calls(kCalls, lose_record).empty()) return 3;
      const auto cache = Cache::open(config_, clock_);
      if (is_evicted) return cache && (*cache)->evict("set") ? 0 : 1;
      const auto staged = cache ? stage(**cache) : fail(cache.error());
      return staged && staged->served_from == ServedFrom::Copied ? 0 : 2;
    };
    EXPECT_EQ(run_and_kill(child, std::chrono::seconds(60)), 0);
    ASSERT_OK(stage());
    EXPECT_EQ(kinds_of_damage(), std::set<std::string>{""});
  }
}

TEST_F(DamageTest, DamageOfAFileThatGenerationsShareIsNotPassedOn) {
  write_text(source_.path / "same", noise(100'000, 1));
  write_text(source_.path / "f", "one");
  auto cache = open();
  const auto first = stage(*cache);
  ASSERT_OK(first);
  Lease lease;
  lease.id = "job";
  lease.dataset = "set";
  lease.generation = first->generation;
  ASSERT_OK(catalog()->add_lease(lease));
  write_text(source_.path / "f", "two!");
  const auto second = stage(*cache);
  ASSERT_OK(second);
  ASSERT_EQ(second->report.unchanged_bytes, 100'000u);
  corrupt(second->path / "same");
  EXPECT_KIND(cache->verify("set", {}, kQuiet, stop_), Errc::Mismatch);
  EXPECT_FALSE(std::filesystem::exists(link()));  // the leased one may share the damaged file
  const auto third = stage(*cache);
  ASSERT_OK(third);
  EXPECT_EQ(third->report.unchanged_bytes, 0u);
  EXPECT_EQ(differences_by_rsync(source_.path, third->path), "");
  ASSERT_OK(cache->verify("set", {}, kQuiet, stop_));
}

TEST_F(DamageTest, DamageFoundDuringACopyIsNotPublishedAsSound) {
  write_text(source_.path / "same", noise(100'000, 1));
  write_text(source_.path / "f", "one");
  ASSERT_OK(stage());
  write_text(source_.path / "f", "two!");
  hooks_.before_read = [&](const std::string& path, Bytes) {
    if (path != "f") return;
    corrupt(config_.path / "data/set/1/same");
    const auto other = Cache::open(config_, clock_);
    EXPECT_KIND((*other)->verify("set", {}, kQuiet, stop_), Errc::Mismatch);
  };
  EXPECT_KIND(stage(), Errc::Mismatch);
  hooks_ = {};
  const auto staged = stage();
  ASSERT_OK(staged);
  EXPECT_EQ(differences_by_rsync(source_.path, staged->path), "");
}

TEST_F(DamageTest, ARebuiltCatalogKnowsDamage) {
  write_text(source_.path / "f", noise(100'000, 1));
  ASSERT_OK(stage());
  corrupt(link() / "f");
  EXPECT_KIND(open()->verify("set", {}, kQuiet, stop_), Errc::Mismatch);
  std::filesystem::remove_all(config_.state_dir);
  auto cache = open();
  const auto rows = cache->list();
  ASSERT_OK(rows);
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_NE((*rows)[0].damage, "");
  EXPECT_FALSE(std::filesystem::exists(link()));
  const auto staged = stage(*cache);
  ASSERT_OK(staged);
  EXPECT_EQ(staged->served_from, ServedFrom::Copied);
  EXPECT_EQ(differences_by_rsync(source_.path, staged->path), "");
}

}  // namespace
}  // namespace spark::staging
