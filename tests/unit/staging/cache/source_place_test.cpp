// What must not replace, delete or hide a good copy.
#include "staging/cache/cache.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <future>
#include <thread>

#include "base/file.hpp"
#include "staging/cache/catalog/spare_leases.hpp"
#include "tests/support/failing_call.hpp"
#include "tests/support/skip.hpp"
#include "tests/unit/staging/cache/cache_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

class SourcePlaceTest : public CacheTest {};

// As of a mount point after its file system is gone.
TEST_F(SourcePlaceTest, AnEmptySourceDoesNotReplaceACopy) {
  options_.replaces = Replaces::SameSource;
  write_text(source_.path / "f", "one");
  ASSERT_OK(stage());
  std::filesystem::remove(source_.path / "f");
  EXPECT_KIND(stage(), Errc::Refused);
  EXPECT_EQ(read_text(link() / "f"), "one");
  options_.replaces = Replaces::Anything;
  ASSERT_OK(stage());
  EXPECT_FALSE(std::filesystem::exists(link() / "f"));
}

TEST_F(SourcePlaceTest, ASourceOnAnotherFileSystemDoesNotReplaceACopy) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount";
  options_.replaces = Replaces::SameSource;
  write_text(source_.path / "f", "one");
  ASSERT_OK(stage());
  const SmallTmpfs other(source_.path, "size=1m");
  write_text(source_.path / "f", "other");
  EXPECT_KIND(stage(), Errc::Refused);
  EXPECT_EQ(read_text(link() / "f"), "one");
  options_.replaces = Replaces::Anything;
  ASSERT_OK(stage());
  EXPECT_EQ(read_text(link() / "f"), "other");
}

TEST_F(SourcePlaceTest, ASourceThatWasUnmountedWhileItWasCopiedIsStillToldFromAnother) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount";
  options_.replaces = Replaces::SameSource;
  const SmallTmpfs right(source_.path, "size=1m");
  write_text(source_.path / "f", "one");
  hooks_.before_read = [this](const std::string&, Bytes) { ::umount2(source_.path.c_str(), MNT_DETACH); };
  ASSERT_OK(stage());
  hooks_.before_read = {};
  write_text(source_.path / "f", "other");
  EXPECT_KIND(stage(), Errc::Refused);
  EXPECT_EQ(read_text(link() / "f"), "one");
}

TEST_F(SourcePlaceTest, TemporaryFilesInTheSourceMakeNoNewGeneration) {
  write_text(source_.path / "folder/f", "one");
  ASSERT_OK(stage());
  write_text(source_.path / "folder/temporary", "x");
  std::filesystem::remove(source_.path / "folder/temporary");
  const auto again = stage();
  ASSERT_OK(again);
  EXPECT_EQ(again->served_from, ServedFrom::Cache);
}

TEST_F(SourcePlaceTest, ACopyWithAnOpenFileIsNeitherEvictedNorSuperseded) {
  write_text(source_.path / "f", "one");
  auto cache = open();
  const auto first = stage(*cache);
  ASSERT_OK(first);
  UniqueFd job(::open((first->path / "f").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_KIND(cache->evict("set"), Errc::Refused);
  write_text(source_.path / "f", "two!");
  ASSERT_OK(stage(*cache));
  EXPECT_EQ(read_text(first->path / "f"), "one");
  job.reset();
  ASSERT_OK(stage(*cache));
  EXPECT_FALSE(std::filesystem::exists(first->path));
  ASSERT_OK(cache->evict("set"));
}

TEST_F(SourcePlaceTest, ACopyThatAProgramOpensJustBeforeItsEvictionStays) {
  write_text(source_.path / "f", "one");
  const auto first = stage();
  ASSERT_OK(first);
  UniqueFd job;
  hooks_.step = [&](const char* step) -> Result<> {
    if (std::string_view(step) == "unlinked")
      job.reset(::open((first->path / "f").c_str(), O_RDONLY | O_CLOEXEC));
    return {};
  };
  auto cache = open();
  EXPECT_KIND(cache->evict("set"), Errc::Refused);
  EXPECT_EQ(read_text(first->path / "f"), "one");
  EXPECT_EQ(read_text(link() / "f"), "one");
  write_text(source_.path / "f", "two!");
  const auto second = stage(*cache);
  ASSERT_OK(second);
  EXPECT_TRUE(second->report.warnings.empty()) << second->report.warnings.front();
  EXPECT_EQ(read_text(first->path / "f"), "one");
  hooks_.step = {};
  job.reset();
  ASSERT_OK(stage());
  EXPECT_FALSE(std::filesystem::exists(first->path));
}

// As with a catalog that is locked, or a full state folder, when the lease was granted.
TEST_F(SourcePlaceTest, ALeaseBesideTheCatalogKeepsACopy) {
  write_text(source_.path / "f", "one");
  const auto first = stage();
  ASSERT_OK(first);
  Lease lease;
  lease.id = "job:slurm:1:set";
  lease.dataset = "set";
  lease.generation = first->generation;
  lease.process = process_with(::getpid());
  const SpareLeases spare(config_.path);
  ASSERT_OK(spare.add(lease));
  EXPECT_KIND(open()->evict("set"), Errc::Refused);
  write_text(source_.path / "f", "two!");
  ASSERT_OK(stage());
  EXPECT_EQ(read_text(first->path / "f"), "one");
  ASSERT_OK(spare.remove(lease.id));
  ASSERT_OK(stage());
  EXPECT_FALSE(std::filesystem::exists(first->path));
}

// The open file is in a folder that is looked at later.
TEST_F(SourcePlaceTest, ACopyThatCannotBeLookedThroughIsNotEvicted) {
  write_text(source_.path / "bad", "x");
  write_text(source_.path / "folder/f", "one");
  auto cache = open();
  const auto staged = stage(*cache);
  ASSERT_OK(staged);
  const UniqueFd job(::open((staged->path / "folder/f").c_str(), O_RDONLY | O_CLOEXEC));
  const auto child = [&] {
    static constexpr int kCalls[] = {SYS_statx};
    const auto fail_bad = [](const spark::test::FileCall& call) -> std::optional<long> {
      if (std::string_view(reinterpret_cast<const char*>(call.arguments[1])) == "bad") return -EIO;
      return std::nullopt;
    };
    if (!spark::test::intercept_calls(kCalls, fail_bad).empty()) return 10;
    return cache->evict("set") ? 1 : 0;
  };
  EXPECT_EQ(run_and_kill(child, std::chrono::seconds(60)), 0);
  EXPECT_EQ(read_text(staged->path / "folder/f"), "one");
}

TEST_F(SourcePlaceTest, ParallelFirstOpensMakeOneCache) {
  for (int round = 0; round < 10; ++round) {
    std::filesystem::remove_all(config_.path);
    std::filesystem::remove_all(config_.state_dir);
    std::vector<std::future<std::string>> opened;
    for (int i = 0; i < 6; ++i) {
      opened.push_back(std::async(std::launch::async, [this] {
        const auto cache = Cache::open(config_, clock_);
        return cache ? "" : cache.error().message();
      }));
    }
    for (auto& one : opened) EXPECT_EQ(one.get(), "");
    ASSERT_TRUE(Cache::open(config_, clock_));
  }
}

// Also its catalog can't be opened in the usual way: there is no space for an index that processes share. It
// was locked until the first who opened it had ended, as a verification of hours.
TEST_F(SourcePlaceTest, AFullStateFolderDoesNotKeepACopyFromBeingServed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount";
  const SmallTmpfs state(config_.state_dir, "size=1m");
  write_text(source_.path / "f", "one");
  ASSERT_OK(stage());
  {
    std::ofstream fill(config_.state_dir / "fill");
    const std::string block(4096, 'x');
    while (fill << block << std::flush) {
    }
  }
  const auto other = open();
  ASSERT_OK(other->list());
  source_.hold = "request-1";
  const auto again = stage();
  ASSERT_OK(again);
  EXPECT_FALSE(again->is_held);
  EXPECT_KIND(other->evict("set"), Errc::NoSpace);
  EXPECT_EQ(again->served_from, ServedFrom::Cache);
}

TEST_F(SourcePlaceTest, ACacheDriveThatIsGoneIsNoDamage) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount";
  std::filesystem::create_directories(config_.path);
  ASSERT_EQ(::mount("tmpfs", config_.path.c_str(), "tmpfs", 0, "size=1m"), 0);
  write_text(source_.path / "f", "one");
  ASSERT_OK(stage());
  const auto cache = open();
  ASSERT_EQ(::umount2(config_.path.c_str(), MNT_DETACH), 0);
  EXPECT_KIND(cache->verify("set", {}, kQuiet, stop_), Errc::Unavailable);
  const auto listed = cache->list();
  ASSERT_OK(listed);
  EXPECT_EQ(listed->front().damage, "");
}

TEST_F(SourcePlaceTest, AnEmptySourceIsRefusedAlsoAfterAnEviction) {
  options_.replaces = Replaces::SameSource;
  write_text(source_.path / "f", "one");
  ASSERT_OK(stage());
  ASSERT_OK(open()->evict("set"));
  std::filesystem::remove(source_.path / "f");
  EXPECT_KIND(stage(), Errc::Refused);
  options_.replaces = Replaces::Anything;
  ASSERT_OK(stage());
  options_.replaces = Replaces::SameSource;
  ASSERT_OK(stage());
}

TEST_F(SourcePlaceTest, ASetOfSymbolicLinksAloneIsKeptAsOneOfFiles) {
  options_.replaces = Replaces::SameSource;
  for (const char* folder : {"2026-01", "2026-02"})
    std::filesystem::create_directories(source_.path / folder);
  const auto link_to = [&](const char* target) {
    std::filesystem::remove(source_.path / "newest");
    std::filesystem::create_symlink(target, source_.path / "newest");
  };
  for (const bool is_evicted : {false, true}) {
    link_to("2026-01");
    ASSERT_OK(stage());
    if (is_evicted) {
      ASSERT_OK(open()->evict("set"));
    }
    std::filesystem::remove(source_.path / "newest");
    EXPECT_KIND(stage(), Errc::Refused) << is_evicted;
    EXPECT_EQ(std::filesystem::is_symlink(link() / "newest"), !is_evicted);
    link_to("2026-02");
    ASSERT_OK(stage());
    EXPECT_EQ(std::filesystem::read_symlink(link() / "newest"), "2026-02");
  }
}

TEST_F(SourcePlaceTest, AFullStateFolderHidesNoDamage) {
  if (::geteuid() != 0) SPARK_SKIP("mounting needs root");
  const SmallTmpfs state(config_.state_dir, "size=1m");
  write_text(source_.path / "f", noise(100'000, 1));
  ASSERT_OK(stage());
  const auto early = open();
  {
    std::ofstream fill(config_.state_dir / "fill");
    const std::string block(4096, 'x');
    while (fill << block << std::flush) {
    }
  }
  ASSERT_OK(open()->verify("set", {}, kQuiet, stop_));  // only its time can't be noted
  corrupt(link() / "f");
  const auto late = open();
  for (const auto* cache : {&early, &late}) {
    const auto damaged = (*cache)->verify("set", {}, kQuiet, stop_);
    EXPECT_KIND(damaged, Errc::Mismatch);
    EXPECT_EQ(damaged.error().what.find("not recorded"), std::string::npos) << damaged.error().what;
    EXPECT_NE(open()->list()->front().damage, "");
  }
  EXPECT_TRUE(SpareLeases(config_.path).all()->leases.empty());
  std::filesystem::remove(config_.state_dir / "fill");
  EXPECT_NE(open()->list()->front().damage, "");
  const auto staged = stage();
  ASSERT_OK(staged);
  EXPECT_EQ(staged->served_from, ServedFrom::Copied);
}

// `chmod -R u+rw` or a restore with the old times gives every file a new ctime.
TEST_F(SourcePlaceTest, FilesThatOnlyLookChangedAreComparedAndNotCopied) {
  for (const char* name : {"a", "b", "c"}) write_text(source_.path / name, noise(100'000, name[0]));
  std::filesystem::create_hard_link(source_.path / "a", source_.path / "z");
  const auto first = stage();
  ASSERT_OK(first);
  const auto touch_all = [&] {
    for (const char* name : {"a", "b", "c"}) EXPECT_EQ(::chmod((source_.path / name).c_str(), 0644), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // see unsettled_for()
  };
  touch_all();
  const auto second = stage();
  ASSERT_OK(second);
  EXPECT_EQ(second->served_from, ServedFrom::Cache);
  EXPECT_EQ(second->generation, first->generation);
  ASSERT_OK(open()->verify("set", {}, kQuiet, stop_));
  // One was really changed, with its old size and times; the others are shared.
  const auto time = std::filesystem::last_write_time(source_.path / "b");
  write_text(source_.path / "b", noise(100'000, 77));
  std::filesystem::last_write_time(source_.path / "b", time);
  touch_all();
  const auto third = stage();
  ASSERT_OK(third);
  EXPECT_EQ(third->served_from, ServedFrom::Copied);
  EXPECT_EQ(third->report.unchanged_bytes, 200'000u);
  EXPECT_EQ(differences_by_rsync(source_.path, third->path), "");
}

// A job may use the copy, and files are shared between generations.
TEST_F(SourcePlaceTest, OtherPermissionsMakeANewGenerationAndLeaveTheCopyAsItIs) {
  for (const char* name : {"a", "b"}) write_text(source_.path / "folder" / name, noise(100'000, name[0]));
  source_.hold = "request-1";
  const auto first = stage();
  ASSERT_OK(first);
  source_.hold.clear();
  const auto mode_of = [](const Staged& staged) {
    struct stat info {};
    EXPECT_EQ(::stat((staged.path / "folder/a").c_str(), &info), 0);
    return info.st_mode & 07777;
  };
  const mode_t before = mode_of(*first);
  EXPECT_EQ(::chmod((source_.path / "folder/a").c_str(), 0640), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));  // see unsettled_for()
  const auto newer = stage();
  ASSERT_OK(newer);
  EXPECT_EQ(newer->served_from, ServedFrom::Copied);
  EXPECT_EQ(mode_of(*newer), 0640U);
  EXPECT_EQ(differences_by_rsync(source_.path, newer->path), "");
  EXPECT_EQ(mode_of(*first), before);
}

// ACLs among them.
TEST_F(SourcePlaceTest, ChangedAttributesOfAFolderAreNoticed) {
  std::filesystem::create_directories(source_.path / "part");
  write_text(source_.path / "part/f", "one");
  ASSERT_OK(stage());
  const std::string folder = source_.path / "part";
  if (::setxattr(folder.c_str(), "user.note", "a", 1, 0) != 0) GTEST_SKIP() << "no user attributes here";
  for (const ssize_t length : {ssize_t{1}, ssize_t{-1}}) {
    if (length < 0) {
      ASSERT_EQ(::removexattr(folder.c_str(), "user.note"), 0);
    }
    const auto staged = stage();
    ASSERT_OK(staged);
    EXPECT_EQ(staged->served_from, ServedFrom::Copied);
    char copied[8];
    EXPECT_EQ(::getxattr((link() / "part").c_str(), "user.note", copied, sizeof copied), length);
    write_text(source_.path / "part/new", "");
    std::filesystem::remove(source_.path / "part/new");
    const auto again = stage();
    ASSERT_OK(again);
    EXPECT_EQ(again->served_from, ServedFrom::Cache) << "only its times changed";
  }
}

// They change the ctime alone, too.
TEST_F(SourcePlaceTest, ChangedAttributesAreNotTakenForATouch) {
  write_text(source_.path / "f", "one");
  const auto note = [&](const char* value) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // see unsettled_for()
    const std::string file = source_.path / "f";
    return value == nullptr ? ::removexattr(file.c_str(), "user.note")
                            : ::setxattr(file.c_str(), "user.note", value, std::strlen(value), 0);
  };
  if (note("a") != 0) GTEST_SKIP() << "no user attributes here";
  ASSERT_OK(stage());
  for (const char* value : {"b", static_cast<const char*>(nullptr)}) {
    ASSERT_EQ(note(value), 0);
    ASSERT_OK(stage());
    char copied[8];
    const ssize_t length = ::getxattr((link() / "f").c_str(), "user.note", copied, sizeof copied);
    EXPECT_EQ(length, value == nullptr ? -1 : 1);
    EXPECT_TRUE(value == nullptr || copied[0] == *value);
  }
  // A touch of a file that has attributes changes nothing.
  ASSERT_EQ(note("c"), 0);
  const auto noted = stage();
  ASSERT_OK(noted);
  ASSERT_EQ(note("c"), 0);
  const auto touched = stage();
  ASSERT_OK(touched);
  EXPECT_EQ(touched->generation, noted->generation);
}

}  // namespace
}  // namespace spark::staging
