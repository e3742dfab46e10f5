// What a repeated move deletes of an earlier one's copies.
#include <sys/syscall.h>

#include "staging/cache/place/begun.hpp"
#include "tests/support/failing_call.hpp"
#include "tests/unit/staging/cache/place/relocation_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

TEST_F(RelocationToADriveTest, AnEarlierCopyOfAnEarlierCallMakesRoom) {
  write_text(source_.path / "large", noise(2'600'000, 2));
  ASSERT_OK(stage());
  ASSERT_OK(move(new_));
  write_text(source_.path / "b", "c");
  ASSERT_OK(stage());
  ASSERT_OK(move(new_));
  expect_whole_with(new_, "c");
  EXPECT_FALSE(std::filesystem::exists(new_ / "data/set/1"));
}

// It would take room, and come back as if it had never been evicted.
TEST_F(RelocationToADriveTest, ADatasetThatWasEvictedSinceAnEarlierCallIsDeletedThere) {
  const Source kept = source_;
  source_ = Source{"gone", folder_ / "other", {}};
  write_text(source_.path / "large", noise(2'600'000, 2));
  ASSERT_OK(stage());
  ASSERT_OK(move(new_));
  ASSERT_TRUE(std::filesystem::exists(new_ / "data/gone"));
  ASSERT_OK(open()->evict("gone"));
  source_ = kept;
  write_text(source_.path / "large", noise(2'600'000, 3));
  ASSERT_OK(stage());
  ASSERT_OK(move(new_));  // there is room for one of them
  EXPECT_FALSE(std::filesystem::exists(new_ / "data/gone"));
  expect_whole(new_);
}

// The cache may have been in the new place before, where jobs still have copies.
TEST_F(RelocationToADriveTest, BeforeItDeletesInTheNewPlaceItEndsTheMountThereOrKeepsTheCopy) {
  ASSERT_OK(move(new_));
  ASSERT_OK(move(new_));
  EXPECT_TRUE(stopped_.empty()) << "nothing is deleted";
  ASSERT_OK(settle_in(new_));
  write_text(source_.path / "b", "c");
  ASSERT_OK(stage());
  const auto allow = hooks_of_move_.stop_serving;
  hooks_of_move_.stop_serving = [](const std::filesystem::path&) -> Result<> {
    return fail(Errc::Refused, "leased by a job");
  };
  const auto leased = move(new_);
  ASSERT_OK(leased);
  EXPECT_EQ(leased->kept, std::vector<std::string>{"set: an earlier copy of it stays in " + new_.native() +
                                                   ": leased by a job"});
  EXPECT_TRUE(std::filesystem::exists(new_ / "data/set/1/b"));
  EXPECT_TRUE(std::filesystem::exists(new_ / "data/set/2/b")) << "what was staged meanwhile is copied";
  hooks_of_move_.stop_serving = allow;
  const auto moved = move(new_);
  ASSERT_OK(moved);
  EXPECT_EQ(stopped_, std::vector<std::filesystem::path>{new_ / "data"});
  ASSERT_EQ(moved->deleted.size(), 1U);
  EXPECT_EQ(moved->deleted.front().dataset, "set");
  EXPECT_GT(moved->deleted.front().bytes, 100'000U);
  expect_whole_with(new_, "c");
}

// It was never the cache: no job can have its copies.
TEST_F(RelocationToADriveTest, ALeaseDoesNotKeepWhatIsInANewPlaceThatWasNeverInForce) {
  ASSERT_OK(move(new_));
  write_text(source_.path / "b", "c");
  ASSERT_OK(stage());
  hooks_of_move_.stop_serving = [](const std::filesystem::path&) -> Result<> {
    return fail(Errc::Refused, "leased by a job");
  };
  const auto moved = move(new_);
  ASSERT_OK(moved);
  EXPECT_EQ(moved->deleted.size(), 1U);
  expect_whole_with(new_, "c");
}

// The path was set, datasets were staged there, and the path was set back.
TEST_F(RelocationToADriveTest, WhatWasStagedInTheNewPlaceStaysThere) {
  ASSERT_OK(move(new_));
  const Source set = source_;
  config_.path = new_;
  ASSERT_NE(open(), nullptr);
  ASSERT_OK(settle_in(new_));
  write_text(source_.path / "b", "there");
  ASSERT_OK(stage());
  source_ = Source{"two", folder_ / "two", {}};
  write_text(source_.path / "g", "two");
  ASSERT_OK(stage());
  config_.path = old_;
  ASSERT_NE(open(), nullptr);
  const auto moved = move(new_);
  ASSERT_OK(moved);
  EXPECT_TRUE(moved->deleted.empty());
  EXPECT_EQ(moved->kept.size(), 2U);
  config_.path = new_;
  ASSERT_NE(open(), nullptr);
  EXPECT_EQ(read_text(link() / "g"), "two");
  source_ = set;
  EXPECT_EQ(read_text(link() / "b"), "there");
}

TEST_F(RelocationToADriveTest, AReadOnlyMountInTheNewPlaceIsEndedBeforeACopyIsMadeThere) {
  ASSERT_OK(move(new_));
  const std::filesystem::path data = new_ / "data";
  std::filesystem::remove_all(data / "set");
  ASSERT_EQ(::mount(data.c_str(), data.c_str(), nullptr, MS_BIND, nullptr), 0);
  ASSERT_EQ(::mount(nullptr, data.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr), 0);
  hooks_of_move_.stop_serving = [this](const std::filesystem::path& folder) -> Result<> {
    stopped_.push_back(folder);
    return ::umount(folder.c_str()) == 0 ? Result<>() : fail_errno(errno, "unmounting");
  };
  ASSERT_OK(move(new_));
  EXPECT_EQ(stopped_, std::vector<std::filesystem::path>{data});
  expect_whole(new_);
}

TEST_F(RelocationToADriveTest, ACopyInTheNewPlaceThatAProgramHasOpenIsNamed) {
  ASSERT_OK(move(new_));
  UniqueFd open(::open((new_ / "data/set/1/b").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_OK(this->open()->evict("set"));
  auto moved = move(new_);
  ASSERT_OK(moved);
  EXPECT_TRUE(moved->deleted.empty());
  EXPECT_EQ(moved->kept,
            std::vector<std::string>{"set: an earlier copy of it stays in " + new_.native() +
                                     ": its file b is open - repeat the command before the next steps"});
  open = UniqueFd();
  moved = move(new_);
  ASSERT_OK(moved);
  EXPECT_EQ(moved->deleted.size(), 1U);
  EXPECT_TRUE(moved->kept.empty());
  EXPECT_FALSE(std::filesystem::exists(new_ / "data/set"));
}

// After a catalog that was lost.
TEST_F(RelocationToADriveTest, AnotherCopyOfItsNumberThatAProgramHasOpenStays) {
  ASSERT_OK(move(new_));
  std::filesystem::remove_all(old_ / "data/set");
  std::filesystem::remove_all(config_.state_dir);
  write_text(source_.path / "b", "another");
  ASSERT_OK(stage());
  UniqueFd open(::open((new_ / "data/set/1/b").c_str(), O_RDONLY | O_CLOEXEC));
  const auto moved = move(new_);
  ASSERT_OK(moved);
  EXPECT_EQ(moved->kept.size(), 1U);
  EXPECT_EQ(moved->left.size(), 1U);
  EXPECT_EQ(read_text(new_ / "data/set/1/b"), "b");
  open = UniqueFd();
  ASSERT_OK(move(new_));
  expect_whole_with(new_, "another");
}

// It is whole, and the damaged one is not moved.
TEST_F(RelocationToADriveTest, ACopyOfAnEarlierCallStaysIfTheOldOneWasDamagedSince) {
  ASSERT_OK(move(new_));
  corrupt(link() / "train/a");
  EXPECT_FALSE(open()->verify("set", {}, kQuiet, stop_));
  const auto again = move(new_);
  ASSERT_OK(again);
  EXPECT_EQ(again->left.size(), 1U);
  expect_whole(new_);
}

// It may be the last one.
TEST_F(RelocationToADriveTest, AnEarlierCopyStaysUntilTheLaterOneIsWhole) {
  ASSERT_OK(move(new_));
  write_text(source_.path / "b", "later");
  ASSERT_OK(stage());
  corrupt(link() / "train/a");
  const auto moved = move(new_);
  ASSERT_OK(moved);
  EXPECT_EQ(moved->left.size(), 1U);
  EXPECT_EQ(moved->kept.size(), 1U);
  EXPECT_EQ(read_text(new_ / "data/set/1/b"), "b");
}

// A drive that begins to die is a reason to move.
TEST_F(RelocationToADriveTest, ACopyThatTheDriveCannotReadIsLeftBehindAndNamed) {
  for (const char* name : {"aaa", "zzz"}) {
    source_ = Source{name, folder_ / name, {}};
    write_text(source_.path / "f", name);
    ASSERT_OK(stage());
  }
  options_.io = IoKind::Threads;
  static std::uint64_t bad = 0;
  struct stat info {};
  ASSERT_EQ(::stat((old_ / "set/train/a").c_str(), &info), 0);
  bad = info.st_ino;
  const auto moves = [&] {
    static constexpr int kCalls[] = {SYS_pread64};
    const auto fail_bad = [](const spark::test::FileCall& call) -> std::optional<long> {
      struct stat file {};
      if (::fstat(static_cast<int>(call.arguments[0]), &file) == 0 && file.st_ino == bad) return -EIO;
      return std::nullopt;
    };
    if (!spark::test::intercept_calls(kCalls, fail_bad).empty()) return 10;
    const auto moved = move(new_);
    if (!moved) return 11;
    if (moved->left.size() != 1 || !moved->left[0].starts_with("set: ")) return 12;
    return moved->datasets == 2 ? 0 : 13;
  };
  EXPECT_EQ(run_and_kill(moves, std::chrono::seconds(60)), 0);
  EXPECT_EQ(read_text(new_ / "data/zzz/1/f"), "zzz");
  EXPECT_NE(CacheFolder(new_).id().value(), "");
}

// A catalog that was lost begins its numbers again, and the newest is the one that is served.
TEST_F(RelocationToADriveTest, ALaterGenerationOfAnEarlierCallDoesNotHideTheWantedOne) {
  write_text(source_.path / "b", "later");
  ASSERT_OK(stage());
  ASSERT_OK(move(new_));
  ASSERT_TRUE(std::filesystem::exists(new_ / "data/set/2"));
  std::filesystem::remove_all(old_ / "data/set");
  std::filesystem::remove_all(config_.state_dir);
  write_text(source_.path / "b", "another");
  ASSERT_OK(stage());
  ASSERT_OK(move(new_));
  EXPECT_FALSE(std::filesystem::exists(new_ / "data/set/2"));
  expect_whole_with(new_, "another");
}

// Between two calls the cache was renamed on its own drive: the copies are in another folder than before.
TEST_F(RelocationToADriveTest, TheCopiesAreDeletedWhereTheCacheWasLast) {
  const std::filesystem::path between = folder_ / "between";
  ASSERT_OK(move(new_));
  ASSERT_OK(move(between));
  std::filesystem::remove(old_);
  config_.path = between;
  ASSERT_OK(move(new_));
  config_.path = new_;
  const auto cleared = move(new_);
  ASSERT_OK(cleared);
  EXPECT_EQ(cleared->how, Relocated::OldDeleted);
  EXPECT_FALSE(std::filesystem::exists(between));
  expect_whole(new_);
}

}  // namespace
}  // namespace spark::staging
