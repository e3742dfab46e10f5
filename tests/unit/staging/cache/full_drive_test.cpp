// Cache and catalog on one drive that is full to the last block.
#include <sys/mount.h>

#include <fstream>
#include <optional>

#include "staging/cache/catalog/reserve.hpp"
#include "tests/support/loop_device.hpp"
#include "tests/support/skip.hpp"
#include "tests/unit/staging/cache/room_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

class FullDriveTest : public RoomTest {
 protected:
  void SetUp() override {
    if (const std::string why = spark::test::why_no_loop_mounts(); !why.empty()) SPARK_SKIP(why);
    spark::test::make_image(folder_ / "image", 64 << 20,
                            {"mkfs.ext4", "-q", "-m", "0", "-N", "512", "-b", block_});
    device_.emplace(folder_ / "image");
    std::filesystem::create_directory(drive_);
    spark::test::run_tool({"mount", device_->path(), drive_.native()});
    config_.path = drive_ / "cache";
    config_.state_dir = drive_ / "state";
    std::filesystem::create_directory(config_.state_dir);
    make_reserve(config_.state_dir);
  }
  void TearDown() override { ::umount2(drive_.c_str(), MNT_DETACH); }
  void fill() {
    std::ofstream file(drive_ / "fill");
    const std::string block(4096, 'x');
    while (file << block << std::flush) {
    }
  }
  void take_all_inodes() {
    std::filesystem::create_directory(drive_ / "fill");
    for (int number = 0; std::ofstream(drive_ / "fill" / std::to_string(number)); ++number) {
    }
  }
  bool has_reserve() const { return std::filesystem::exists(config_.state_dir / ".reserve"); }

  const std::filesystem::path drive_ = folder_ / "drive";
  std::optional<spark::test::LoopDevice> device_;
  std::string block_ = "4096";
};

TEST_F(FullDriveTest, AStagingMakesItsRoom) {
  ASSERT_OK(stage("old", 8 * kMB));
  fill();
  const auto staged = stage("next", 4 * kMB);
  ASSERT_OK(staged);
  ASSERT_EQ(staged->evicted.size(), 1U);
  EXPECT_EQ(staged->evicted[0].dataset, "old");
  EXPECT_EQ(there(), Names{"next"});
  EXPECT_TRUE(has_reserve()) << "for the next time";
}

TEST_F(FullDriveTest, AStagingWithoutRoomKeepsTheReserve) {
  ASSERT_OK(stage("old", 4 * kMB));
  lease("old", 1);
  fill();
  const auto refused = stage("next", 8 * kMB);
  EXPECT_KIND(refused, Errc::NoSpace);
  EXPECT_NE(refused.error().what.find("slurm job 12"), std::string::npos) << refused.error().what;
  EXPECT_TRUE(has_reserve());
  EXPECT_EQ(there(), Names{"old"});
}

// It is for changes that free space: the next one would find none.
TEST_F(FullDriveTest, NoDataIsStagedIntoTheReserve) {
  ASSERT_OK(stage("old", 4 * kMB));
  lease("old", 1);
  fill();
  const auto reserve = [&] { return std::filesystem::file_size(config_.state_dir / ".reserve/0"); };
  const Bytes full = std::filesystem::file_size(drive_ / "fill");
  for (const Bytes free : {Bytes{0}, 600 * kKiB}) {
    std::filesystem::resize_file(drive_ / "fill", full - free);
    EXPECT_KIND(stage("next", 900'000), Errc::NoSpace) << free;
    EXPECT_GE(reserve(), kMiB / 2) << free;
  }
  EXPECT_EQ(there(), Names{"old"});
}

TEST_F(FullDriveTest, WithoutInodesACopyIsServedAndEvictedAndRoomIsMade) {
  const Source old = make("old", 8 * kMB);
  ASSERT_OK(stage(old));
  ASSERT_OK(stage("older", 4 * kMB));
  take_all_inodes();
  const auto served = stage(old);
  ASSERT_OK(served);
  EXPECT_EQ(served->served_from, ServedFrom::Cache);
  ASSERT_OK(open()->evict("old"));
  EXPECT_EQ(there(), Names{"older"});
  EXPECT_TRUE(has_reserve()) << "for the next time";
  ASSERT_OK(stage("next", kMB));
}

TEST_F(FullDriveTest, WithoutInodesOnTheCachesDriveAloneACopyIsServedAndEvicted) {
  config_.state_dir = folder_ / "other-drive";
  const Source old = make("old", 8 * kMB);
  ASSERT_OK(stage(old));
  make_reserve(config_.path);
  take_all_inodes();
  ASSERT_OK(stage(old));
  ASSERT_OK(open()->evict("old"));
  EXPECT_EQ(there(), Names{});
}

TEST_F(FullDriveTest, WithoutInodesAndReserveACopyIsServedAndTheMessageSaysWhatLacks) {
  const Source old = make("old", 8 * kMB);
  ASSERT_OK(stage(old));
  std::filesystem::remove_all(config_.state_dir / ".reserve");
  take_all_inodes();
  const auto served = stage(old);
  ASSERT_OK(served);
  EXPECT_EQ(served->served_from, ServedFrom::Cache);
  const auto refused = open()->evict("old");
  EXPECT_KIND(refused, Errc::NoSpace);
  EXPECT_NE(refused.error().what.find("has no inodes left"), std::string::npos) << refused.error().what;
  EXPECT_KIND(stage("next", kMB), Errc::NoSpace);
}

class SmallBlocksTest : public FullDriveTest {
 protected:
  SmallBlocksTest() { block_ = "1024"; }
};

// SQLite maps its index, and a store that finds no block ends the process. There was space for a part of it.
TEST_F(SmallBlocksTest, WithRoomForAPartOfTheCatalogsIndexACopyIsServedAndEvicted) {
  const Source old = make("old", 4 * kMB);
  ASSERT_OK(stage(old));
  fill();
  std::filesystem::resize_file(drive_ / "fill", std::filesystem::file_size(drive_ / "fill") - 20 * kKiB);
  const auto work = [&] {
    const auto staged = stage(old);
    const auto cache = open_cache_with(hooks_, config_, clock_);
    const auto evicted = cache ? (*cache)->evict("old") : fail(cache.error());
    std::exit(staged && evicted ? 0 : 1);
  };
  EXPECT_EXIT(work(), testing::ExitedWithCode(0), "");
}

TEST_F(FullDriveTest, ARecoveryAndAnEvictionKeepTheReserve) {
  ASSERT_OK(stage("old", 4 * kMB));
  ASSERT_OK(stage("next", 4 * kMB));
  fill();
  ASSERT_OK(open()->recover([] {}));
  EXPECT_TRUE(has_reserve());
  fill();
  ASSERT_OK(open()->evict("old"));
  EXPECT_TRUE(has_reserve());
  fill();
  ASSERT_OK(open()->evict("next"));
}

}  // namespace
}  // namespace spark::staging
