// What local users and peers can do to a cache.
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "staging/cache/folder/cache_folder.hpp"
#include "staging/copy/exchange.hpp"
#include "tests/support/skip.hpp"
#include "tests/unit/staging/cache/cache_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

constexpr uid_t kBob = 4002;
constexpr char kNeedsRoot[] = "only root can make files of other users";

unsigned mode_of(const std::filesystem::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

class CacheNeighboursTest : public CacheTest {
 protected:
  std::filesystem::path manifest() const { return config_.path / "data/set/.1.spark-manifest"; }
};

TEST_F(CacheNeighboursTest, OthersEnterByNameAloneAndReadNoManifest) {
  write_text(source_.path / "f", "x");
  ASSERT_OK(stage());
  for (const char* name : {"", "data", "data/set"}) EXPECT_EQ(mode_of(config_.path / name), 0711U) << name;
  EXPECT_EQ(mode_of(manifest()), 0600U);
  EXPECT_EQ(mode_of(config_.state_dir / "catalog.sqlite"), 0600U);
}

TEST_F(CacheNeighboursTest, WhatEarlierVersionsLeftOpenIsClosedAtTheStart) {
  write_text(source_.path / "f", "x");
  ASSERT_OK(stage());
  for (const char* name : {"", "data", "data/set"}) ::chmod((config_.path / name).c_str(), 0755);
  for (const auto& file : {manifest(), config_.state_dir / "catalog.sqlite"}) ::chmod(file.c_str(), 0644);
  ASSERT_TRUE(open());
  for (const char* name : {"", "data", "data/set"}) EXPECT_EQ(mode_of(config_.path / name), 0711U) << name;
  EXPECT_EQ(mode_of(manifest()), 0600U);
  EXPECT_EQ(mode_of(config_.state_dir / "catalog.sqlite"), 0600U);
}

// As a user could take them before the folders were closed.
TEST_F(CacheNeighboursTest, LocksOnTheFoldersOfCopiesHoldNothingUp) {
  write_text(source_.path / "f", "x");
  auto cache = open();
  ASSERT_OK(stage(*cache));
  std::vector<UniqueFd> locks;
  for (const char* name : {"", "data", "data/set", "data/set/1"}) {
    locks.emplace_back(::open((config_.path / name).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_EQ(::flock(locks.back().get(), LOCK_SH), 0);
  }
  corrupt(config_.path / "data/set/1/f");
  EXPECT_KIND(cache->verify("set", options_, kQuiet, stop_), Errc::Mismatch);
  ASSERT_OK(stage(*cache));
  ASSERT_OK(cache->evict("set"));
}

TEST_F(CacheNeighboursTest, NotesNameNothingInAFolderThatIsClosedToOthers) {
  write_text(source_.path / "private/f", "x");
  write_text(source_.path / "open/f", "x");
  for (const char* folder : {"private", "open"}) {
    ASSERT_EQ(::mkfifo((source_.path / folder / "merger").c_str(), 0666), 0);
    std::filesystem::create_symlink("/nowhere/plan", source_.path / folder / "link");
    std::filesystem::create_symlink("nothing", source_.path / folder / "dangling");
  }
  ASSERT_EQ(::chmod((source_.path / "private").c_str(), 0700), 0);
  ASSERT_EQ(::chmod((source_.path / "open").c_str(), 0755), 0);
  const auto staged = stage();
  ASSERT_OK(staged);
  EXPECT_THAT(staged->report.skipped,
              testing::UnorderedElementsAre("open/merger (FIFO)", "private/… (FIFO)"));
  std::string warnings;
  for (const std::string& warning : staged->report.warnings) warnings += warning + "\n";
  EXPECT_THAT(warnings, testing::AllOf(testing::HasSubstr("open/link -> /nowhere/plan"),
                                       testing::HasSubstr("open/dangling -> nothing, private/…"),
                                       testing::Not(testing::HasSubstr("private/link"))));
}

// The daemon keeps the results of a user's last hundred jobs.
TEST_F(CacheNeighboursTest, ASetWithManyFifosHasFewOfTheirNamesInItsResult) {
  write_text(source_.path / "f", "x");
  for (int i = 0; i < 1'500; ++i)
    ASSERT_EQ(::mkfifo((source_.path / std::to_string(10'000 + i)).c_str(), 0666), 0);
  for (int times = 0; times < 2; ++times) {
    const auto staged = stage();
    ASSERT_OK(staged);
    ASSERT_EQ(staged->report.skipped.size(), 1'000U);
    EXPECT_EQ(staged->report.skipped.back(), "and 501 more");
  }
  WalkNotes sent;
  for (int i = 0; i < 3'000; ++i) sent.skipped.push_back(std::string(i % 100, 'x'));
  const auto once = parse_walk_notes(to_text(sent));
  EXPECT_EQ(to_text(*parse_walk_notes(to_text(*once))), to_text(*once))
      << "as the catalog and peers keep them";
  sent.warnings = {std::string(100'000, 'x'), "\x1b[2J"};
  const auto notes = parse_walk_notes(to_text(sent));
  ASSERT_TRUE(notes) << "of a peer";
  EXPECT_EQ(notes->warnings, std::vector<std::string>{"and 2 more"});
  sent.warnings.erase(sent.warnings.begin());
  EXPECT_EQ(parse_walk_notes(to_text(sent))->warnings, std::vector<std::string>{"\\x1b[2J"});
}

TEST_F(CacheNeighboursTest, AUsersLinkInASetIsFollowedOnlyWhereThatUserMayGo) {
  if (::geteuid() != 0) GTEST_SKIP() << kNeedsRoot;
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  write_text(folder_ / "closed/secret", "secret");
  write_text(folder_ / "open/file", "open");
  write_text(source_.path / "f", "x");
  ASSERT_EQ(::chmod((folder_ / "closed").c_str(), 0700), 0);
  options_.links = OutsideLinks::Copy;
  write_text(folder_ / "open/key", "key");
  ASSERT_EQ(::chmod((folder_ / "open/key").c_str(), 0600), 0);
  for (const char* name : {"open/file", "closed/secret", "open/key"}) {
    const auto link = source_.path / std::filesystem::path(name).filename();
    std::filesystem::create_symlink(folder_ / name, link);
    ASSERT_EQ(::lchown(link.c_str(), kBob, kBob), 0);
  }
  const auto refused = stage();
  EXPECT_KIND(refused, Errc::Mismatch);
  EXPECT_THAT(refused.error().what,
              testing::HasSubstr("closed/secret (its owner may not go there, or read it)"));
  EXPECT_THAT(refused.error().what, testing::HasSubstr("open/key (its owner may not go there, or read it)"));
  for (const char* name : {"secret", "key"}) std::filesystem::remove(source_.path / name);
  ASSERT_OK(stage());
  EXPECT_EQ(read_text(link() / "file"), "open");
}

// The links' owner may not read the hub's blobs, so their size is unknown.
TEST_F(CacheNeighboursTest, ASetOfAlmostOnlyLinksToWhatTheirOwnerMayNotReadIsRefused) {
  if (::geteuid() != 0) SPARK_SKIP(kNeedsRoot);
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  write_text(folder_ / "blobs/weights", std::string(100, 'w'));
  ASSERT_EQ(::chmod((folder_ / "blobs/weights").c_str(), 0600), 0);
  for (int i = 0; i < 3; ++i) write_text(source_.path / ("config-" + std::to_string(i)), "{}");
  std::filesystem::create_symlink(folder_ / "blobs/weights", source_.path / "model");
  ASSERT_EQ(::lchown((source_.path / "model").c_str(), kBob, kBob), 0);
  for (const bool is_closed : {false, true}) {
    ASSERT_EQ(::chmod((folder_ / "blobs").c_str(), is_closed ? 0700 : 0755), 0);
    const auto refused = stage();
    EXPECT_KIND(refused, Errc::Mismatch);
    EXPECT_THAT(refused.error().what, testing::HasSubstr("a copy would have 6 B of an unknown size"));
  }
  write_text(source_.path / "own", "");
  ASSERT_EQ(::truncate((source_.path / "own").c_str(), off_t{30} << 20), 0);
  ASSERT_OK(stage());
}

// The root of a drive on which users have folders of their own.
TEST_F(CacheNeighboursTest, AFolderThatTheCacheHasNotForItselfStaysOpen) {
  std::filesystem::create_directories(folder_ / "drive/bob");
  ASSERT_EQ(::chmod((folder_ / "drive").c_str(), 02775), 0);
  ASSERT_OK(CacheFolder(folder_ / "drive").make());
  EXPECT_EQ(mode_of(folder_ / "drive"), 02775U);
  EXPECT_EQ(mode_of(folder_ / "drive/.trash") & 0777U, 0700U);
  std::filesystem::remove_all(folder_ / "drive/bob");
  ASSERT_OK(CacheFolder(folder_ / "drive").make());
  EXPECT_EQ(mode_of(folder_ / "drive") & 077U, 011U);
}

// The copy was published and its content changed since: its manifest tells that, and a forged one could claim
// it.
TEST_F(CacheNeighboursTest, AManifestThatAnotherUserPutBesideACopyKeepsNobodyFromIt) {
  if (::geteuid() != 0) GTEST_SKIP() << kNeedsRoot;
  write_text(folder_ / "original/f", "content");
  ASSERT_OK(copy(folder_ / "original", source_.path, options_, kQuiet, stop_));
  corrupt(source_.path / "f");
  EXPECT_KIND(stage(), Errc::Mismatch);
  ASSERT_EQ(::lchown((folder_ / ".source.spark-manifest").c_str(), kBob, kBob), 0);
  ASSERT_OK(stage());
}

// A host's walk of a volume whose files are root's there.
struct PeersWalk final : Exchange {
  void begin(const SetOrigin&) override {}
  Result<Walked> walk(const Walk& own) override {
    auto walked = own();
    for (Entry& entry : walked->entries)
      if (entry.type == EntryType::File) entry.mode = 06755;
    return walked;
  }
  Result<> copy(ExchangeJob&) override { return {}; }
  bool is_published_elsewhere(const std::string&) override { return true; }
};

TEST_F(CacheNeighboursTest, NoFileThatAPeerNamesIsSetuid) {
  write_text(source_.path / "small", "x");
  write_text(source_.path / "large", noise(3 << 20, 1));
  ASSERT_EQ(::chmod((source_.path / "small").c_str(), 04755), 0);
  PeersWalk walk;
  options_.exchange = &walk;
  ASSERT_OK(stage());
  for (const char* name : {"small", "large"}) EXPECT_EQ(mode_of(link() / name) & 06000U, 0U) << name;
}

}  // namespace
}  // namespace spark::staging
