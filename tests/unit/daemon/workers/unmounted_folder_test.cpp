#include "daemon/workers/unmounted_folder.hpp"

#include <gtest/gtest.h>

#include "tests/support/temp_folder.hpp"

namespace spark::workers {
namespace {

class UnmountedFolder : public testing::Test {
 protected:
  UnmountedFolder() { std::filesystem::create_directories(drive_ / "out/run7"); }
  std::string found(const std::string& options, const std::filesystem::path& path) const {
    const std::string fstab = "# /dev/sdb " + drive_.native() +
                              " ext4\n/dev/vda / ext4 rw 0 1\nUUID=1 none swap\n" + "UUID=2\t" + point_ +
                              "  xfs " + options + " 0 0\n";
    return unmounted_on_the_way(fstab, table_, path);
  }

  test::TempFolder folder_;
  const std::filesystem::path drive_ = std::filesystem::canonical(folder_.path()) / "my data";
  std::string point_ = std::filesystem::canonical(folder_.path()).native() + "/my\\040data";
  std::vector<mounts::Mount> table_;
};

TEST_F(UnmountedFolder, IsOneBelowAMountPointOfFstabAtWhichNothingIsMounted) {
  EXPECT_EQ(found("defaults,nofail", drive_ / "out/run7"), drive_);
  EXPECT_EQ(found("nofail", drive_), drive_) << "the mount point itself";
  EXPECT_EQ(found("nofail", drive_ / "new/run8"), drive_) << "a folder that is not there";
  EXPECT_EQ(found("nofail", drive_.native() + "s/run7"), "");
  point_ += '/';
  EXPECT_EQ(found("nofail", drive_ / "out/run7"), drive_);
  table_.emplace_back().target = drive_;
  EXPECT_EQ(found("nofail", drive_ / "out/run7"), "");
}

// A folder with a file system of its own does not need the one above it.
TEST_F(UnmountedFolder, IsNotOneWithAMountDeeperOnTheWay) {
  table_.emplace_back().target = drive_ / "out/run7";
  EXPECT_EQ(found("nofail", drive_ / "out/run7"), "");
  EXPECT_EQ(found("nofail", drive_ / "out/run7/checkpoints"), "");
  EXPECT_EQ(found("nofail", drive_ / "out/run8"), drive_);
}

TEST_F(UnmountedFolder, IsNotOneThatAPersonMountsOnRequest) {
  EXPECT_EQ(found("rw,noauto", drive_ / "out/run7"), "");
}

TEST_F(UnmountedFolder, IsFoundBehindLinksAndIsNotConfusedByThem) {
  std::filesystem::create_directory_symlink(drive_, folder_ / "link");
  EXPECT_EQ(found("nofail", folder_ / "link/out/run7"), drive_);
  point_ = (folder_ / "link").native();
  EXPECT_EQ(found("nofail", folder_ / "link/out/run7"), point_);
  table_.emplace_back().target = drive_;
  EXPECT_EQ(found("nofail", folder_ / "link/out/run7"), "") << "the kernel names the folder behind the link";
}

}  // namespace
}  // namespace spark::workers
