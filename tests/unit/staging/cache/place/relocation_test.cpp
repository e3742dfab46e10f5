// A cache that is moved to another folder.
#include "tests/unit/staging/cache/place/relocation_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

TEST_F(RelocationTest, OnOneFileSystemTheOldPathBecomesALinkToTheNewOne) {
  const auto moved = move(new_);
  ASSERT_OK(moved);
  EXPECT_EQ(moved->how, Relocated::Renamed);
  expect_whole(old_);
  expect_whole(new_);
  EXPECT_EQ(std::filesystem::read_symlink(old_), new_);
  EXPECT_EQ(move(new_).value().how, Relocated::AlreadyThere);
  std::filesystem::remove(old_);
  expect_whole(new_);
}

TEST_F(RelocationTest, ARenameThatWasInterruptedIsRepeated) {
  std::filesystem::create_symlink(new_, new_);  // the moment before the exchange
  expect_whole(old_);
  ASSERT_OK(move(new_));
  expect_whole(new_);
}

TEST_F(RelocationTest, AFolderWithFilesIsNotReplaced) {
  write_text(new_ / "data/precious", "mine");
  const auto moved = move(new_);
  ASSERT_FALSE(moved);
  EXPECT_EQ(read_text(new_ / "data/precious"), "mine");
  expect_whole(old_);
}

TEST_F(RelocationTest, AFolderInTheOtherOneIsRefused) {
  EXPECT_EQ(move(old_ / "deeper").error().kind, Errc::Invalid);
  EXPECT_EQ(move(folder_.path()).error().kind, Errc::Invalid);
  EXPECT_EQ(move("here").error().kind, Errc::Invalid);
  expect_whole(old_);
}

TEST_F(RelocationToADriveTest, TheOldCacheStaysInForceUntilTheConfigurationNamesTheNewOne) {
  const auto moved = move(new_);
  ASSERT_OK(moved);
  EXPECT_EQ(moved->how, Relocated::Copied);
  EXPECT_EQ(moved->datasets, 1U);
  EXPECT_EQ(moved->bytes, 100'001U);
  EXPECT_TRUE(moved->left.empty());
  expect_whole(old_);
  expect_whole(new_);
  std::filesystem::create_directories(old_ / ".live");
  const auto cleared = move(new_);
  ASSERT_OK(cleared);
  EXPECT_EQ(cleared->how, Relocated::OldDeleted);
  EXPECT_GT(cleared->bytes, 100'000U);
  EXPECT_EQ(stopped_, std::vector{old_ / "data"});
  EXPECT_FALSE(std::filesystem::exists(old_));
  EXPECT_EQ(move(new_).value().how, Relocated::AlreadyThere);
  expect_whole(new_);
}

// Generation 1 again, in a catalog that was lost.
TEST_F(RelocationToADriveTest, ACopyOfThatNumberWithAnotherContentIsReplaced) {
  ASSERT_OK(move(new_));
  std::filesystem::remove_all(old_ / "data/set");
  std::filesystem::remove_all(config_.state_dir);
  write_text(source_.path / "b", "another");
  ASSERT_OK(stage());
  const auto again = move(new_);
  ASSERT_OK(again);
  EXPECT_GT(again->bytes, 0U);
  config_.path = new_;
  ASSERT_NE(open(), nullptr);
  EXPECT_EQ(read_text(link() / "b"), "another");
}

TEST_F(RelocationToADriveTest, TheDriveItselfMayBeTheCache) {
  ASSERT_OK(move(folder_ / "drive"));
  expect_whole(folder_ / "drive");
}

TEST_F(RelocationToADriveTest, InterruptedAnywhereOneWholeCacheIsLeftAndTheMoveIsRepeated) {
  for (const char* step : {"manifest", "rename", "flush", "filled", "entered", "carried", "emptied"}) {
    SCOPED_TRACE(step);
    bool was_there = false;
    hooks_of_move_.copy.step = [&](const char* now) -> Result<> {
      if (std::string_view(now) != step) return {};
      was_there = true;
      return fail(Errc::Failed, "the power went");
    };
    EXPECT_FALSE(move(new_));
    EXPECT_TRUE(was_there);
    EXPECT_EQ(CacheFolder(new_).id().value(), "");  // no cache yet
    expect_whole(old_);
    config_.path = new_;
    EXPECT_FALSE(Cache::open(config_, clock_));
    config_.path = old_;
    hooks_of_move_.copy.step = {};
    ASSERT_OK(move(new_));
    expect_whole(new_);
    std::filesystem::remove_all(new_);
    config_.path = old_;
    expect_whole(old_);
  }
}

TEST_F(RelocationToADriveTest, ASecondCallBringsWhatWasStagedMeanwhile) {
  ASSERT_OK(move(new_));
  write_text(source_.path / "b", "c");
  ASSERT_OK(stage());
  const auto again = move(new_);
  ASSERT_OK(again);
  EXPECT_EQ(again->how, Relocated::Copied);
  config_.path = new_;
  ASSERT_NE(open(), nullptr);
  EXPECT_EQ(read_text(link() / "b"), "c");
}

TEST_F(RelocationToADriveTest, ADamagedCopyIsLeftBehindAndNamed) {
  corrupt(link() / "train/a");
  const auto moved = move(new_);
  ASSERT_OK(moved);
  EXPECT_EQ(moved->datasets, 0U);
  ASSERT_EQ(moved->left.size(), 1U);
  EXPECT_TRUE(moved->left[0].starts_with("set: ")) << moved->left[0];
  EXPECT_NE(moved->left[0].find("train/a has other content"), std::string::npos) << moved->left[0];
  config_.path = new_;
  const auto cache = open();
  EXPECT_TRUE(cache->list().value().empty());
  EXPECT_EQ(stage(*cache).value().served_from, ServedFrom::Copied);
}

TEST_F(RelocationToADriveTest, AnOldCopyThatAProgramHasOpenIsNotDeleted) {
  ASSERT_OK(move(new_));
  const UniqueFd open(::open((link() / "b").c_str(), O_RDONLY | O_CLOEXEC));
  config_.path = new_;
  const auto refused = move(new_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::Refused);
  expect_whole(old_);
}

TEST_F(RelocationToADriveTest, ADeletionThatWasInterruptedIsCompletedAndItsRestIsNoCache) {
  ASSERT_OK(move(new_));
  ASSERT_OK(give_up_cache_id(old_, ".spark-stage-cache.moved"));
  std::filesystem::remove_all(old_ / "data/set/1/train");
  EXPECT_FALSE(Cache::open(config_, clock_));  // the configuration still names it
  config_.path = new_;
  EXPECT_EQ(move(new_).value().how, Relocated::OldDeleted);
  EXPECT_FALSE(std::filesystem::exists(old_));
}

TEST_F(RelocationToADriveTest, ADriveThatIsTooSmallIsRefusedBeforeTheFirstByte) {
  write_text(source_.path / "big", noise(5'000'000, 2));
  ASSERT_OK(stage());
  const auto refused = move(new_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::NoSpace);
  EXPECT_TRUE(std::filesystem::is_empty(new_ / "data"));
}

TEST_F(RelocationToADriveTest, AnotherCacheIsNotOverwritten) {
  CacheConfig other{new_, folder_ / "other-state", 0, 0};
  ASSERT_OK(Cache::open(other, clock_));
  EXPECT_EQ(move(new_).error().kind, Errc::Refused);
}

// There is room for each copy once: neither what is complete nor what was begun is needed a second time.
TEST_F(RelocationToADriveTest, OnANearlyFullDriveAnInterruptedMoveIsRepeated) {
  write_text(source_.path / "large", noise(2'600'000, 2));
  ASSERT_OK(stage());
  for (const char* step : {"manifest", "filled", "entered", "carried", "emptied"}) {
    SCOPED_TRACE(step);
    hooks_of_move_.copy.step = [&](const char* now) -> Result<> {
      return std::string_view(now) == step ? fail(Errc::Failed, "the power went") : Result<>();
    };
    ASSERT_FALSE(move(new_));
    hooks_of_move_.copy.step = {};
    ASSERT_OK(move(new_));
    expect_whole(new_);
    EXPECT_FALSE(std::filesystem::exists(new_ / ".moving"));
    std::filesystem::remove_all(new_);
    config_.path = old_;
  }
}

TEST_F(RelocationToADriveTest, ACompleteButDamagedCopyOfAnInterruptedMoveIsMadeAgain) {
  hooks_of_move_.copy.step = [&](const char* now) -> Result<> {
    return std::string_view(now) == "filled" ? fail(Errc::Failed, "the power went") : Result<>();
  };
  ASSERT_FALSE(move(new_));
  hooks_of_move_.copy.step = {};
  for (const auto& begun : std::filesystem::directory_iterator(new_ / ".moving"))
    if (begun.is_directory()) corrupt(begun.path() / "train/a");
  ASSERT_OK(move(new_));
  expect_whole(new_);
}

// Of datasets that were evicted or staged again meanwhile: there would be no room beside it.
TEST_F(RelocationToADriveTest, WhatAnInterruptedMoveLeftIsDeletedIfNoCopyNeedsIt) {
  write_text(source_.path / "large", noise(2'600'000, 2));
  ASSERT_OK(stage());
  hooks_of_move_.copy.step = [&](const char* now) -> Result<> {
    return std::string_view(now) == "filled" ? fail(Errc::Failed, "the power went") : Result<>();
  };
  ASSERT_FALSE(move(new_));
  hooks_of_move_.copy.step = {};
  write_text(source_.path / "b", "c");
  ASSERT_OK(stage());
  ASSERT_OK(move(new_));
  expect_whole_with(new_, "c");
}

// The mark stays, so that the copies are deleted once the drive is mounted again.
TEST_F(RelocationToADriveTest, AnOldFolderWhoseDriveIsNotMountedIsNamedAndDeletedLater) {
  ASSERT_OK(move(new_));
  config_.path = new_;
  std::filesystem::rename(old_, folder_ / "unmounted");
  for (const bool has_mount_point : {false, true}) {
    if (has_mount_point) std::filesystem::create_directory(old_);
    const auto absent = move(new_);
    ASSERT_OK(absent);
    EXPECT_EQ(absent->how, Relocated::OldAbsent);
    EXPECT_EQ(absent->from, old_);
  }
  std::filesystem::remove(old_);
  std::filesystem::rename(folder_ / "unmounted", old_);
  EXPECT_EQ(move(new_).value().how, Relocated::OldDeleted);
  EXPECT_FALSE(std::filesystem::exists(old_));
  EXPECT_EQ(move(new_).value().how, Relocated::AlreadyThere);
}

// Its copies may be of another cache by now.
TEST_F(RelocationToADriveTest, AnOldFolderWithAnotherIdentityIsNotDeleted) {
  ASSERT_OK(move(new_));
  ASSERT_OK(write_cache_id(old_, "another"));
  config_.path = new_;
  EXPECT_EQ(move(new_).value().how, Relocated::AlreadyThere);
  EXPECT_TRUE(std::filesystem::exists(old_ / "data/set"));
}

}  // namespace
}  // namespace spark::staging
