// The first file system of a device, on real loop devices: created on an empty device, refused on any other.
#include "cli/format/new_filesystem.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/file.hpp"
#include "daemon/mounts/filesystems/block_device.hpp"
#include "daemon/mounts/filesystems/superblock.hpp"
#include "tests/support/loop_device.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::cli {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr std::size_t kSize = 64 << 20, kXfsBytes = 320 << 20;
constexpr std::chrono::minutes kDeadline{1};

class NewFilesystemTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = test::why_no_loop_mounts();
    if (!why.empty()) GTEST_SKIP() << "file systems on real devices: " << why;
  }
  fs::path blank(std::size_t bytes = kSize) {
    test::make_image(image_, bytes, {"true"});
    return image_;
  }
  void write_at(std::size_t offset, const std::string& bytes) {
    std::fstream file(image_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file << bytes;
  }
  static BlankDevice device(const std::string& path, Leftovers leftovers = Leftovers::None) {
    return {path, mounts::device_number_of(path).value_or(0), leftovers};
  }
  Result<> make(const std::string& path, const NewFilesystem& wanted, Leftovers leftovers = Leftovers::None) {
    return make_filesystem(
        device(path, leftovers), wanted,
        [&]() -> Result<> {
          ++begun_;
          return {};
        },
        kDeadline);
  }
  // Expects a refusal with this message and an unchanged device.
  void expect_refused(const std::string& words, Leftovers leftovers = Leftovers::None) {
    const std::string before = test::run_tool({"sha256sum", image_});
    const test::LoopDevice loop(image_);
    const auto made = make(loop.path(), ext4_, leftovers);
    ASSERT_FALSE(made) << words;
    EXPECT_EQ(made.error().kind, Errc::Refused) << made.error().message();
    EXPECT_THAT(made.error().message(), HasSubstr(words));
    EXPECT_THAT(check_blank(device(loop.path(), leftovers)).error().message(), HasSubstr(words));
    EXPECT_EQ(begun_, 0);
    EXPECT_EQ(before, test::run_tool({"sha256sum", image_}));
  }

  test::TempFolder folder_;
  fs::path image_ = folder_ / "image";
  const NewFilesystem ext4_{"ext4", "models", "2f7c1d2e-0000-4000-8000-000000000001"};
  int begun_ = 0;
};

TEST_F(NewFilesystemTest, AnEmptyDeviceGetsAnExt4WithMmpThatMountsAndIsSound) {
  const test::LoopDevice loop(blank());
  const auto made = make(loop.path(), ext4_);
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(begun_, 1);
  const auto superblock = mounts::read_superblock(loop.path());
  ASSERT_TRUE(superblock);
  EXPECT_EQ(superblock->type, "ext4");
  EXPECT_EQ(superblock->uuid, ext4_.uuid);
  EXPECT_EQ(superblock->label, "models");
  EXPECT_TRUE(superblock->has_mmp);
  EXPECT_FALSE(superblock->being_written);
  test::run_tool({"e2fsck", "-fn", loop.path()});
}

TEST_F(NewFilesystemTest, AnXfsIsMadeOnRequest) {
  const test::LoopDevice loop(blank(kXfsBytes));
  const auto made = make(loop.path(), {"xfs", "weights", ext4_.uuid});
  ASSERT_TRUE(made) << made.error().message();
  const auto superblock = mounts::read_superblock(loop.path());
  ASSERT_TRUE(superblock);
  EXPECT_EQ(superblock->type + " " + superblock->label + " " + superblock->uuid, "xfs weights " + ext4_.uuid);
}

TEST_F(NewFilesystemTest, ADeviceWithASignatureIsRefusedAndTheSignatureNamed) {
  test::make_image(image_, kSize, {"mkfs.ext4", "-q", "-F", "-L", "old"});
  expect_refused("it holds ext4 with UUID");
  fs::remove(image_);
  test::make_image(image_, kXfsBytes, {"mkfs.xfs", "-q"});
  expect_refused("it holds xfs with UUID");
  fs::remove(image_);
  blank();
  write_at(0, std::string("LUKS\xba\xbe\0\1", 8));
  expect_refused("it holds a LUKS volume");
  fs::remove(image_);
  blank();
  // One Linux partition from sector 1 to sector 256.
  write_at(446, std::string("\0\0\2\0\x83\0\1\1\1\0\0\0\0\1\0\0", 16));
  write_at(510, "\x55\xaa");
  expect_refused("it holds a dos partition table");
}

TEST_F(NewFilesystemTest, ASignatureIsRefusedEvenAfterAnInterruptedAttempt) {
  test::make_image(image_, kSize, {"mkfs.ext4", "-q", "-F"});
  expect_refused("it holds ext4", Leftovers::Ours);
}

TEST_F(NewFilesystemTest, DataAtEitherEndIsRefusedEvenWithoutASignature) {
  blank();
  write_at(kBlankEnds - 1, "x");
  expect_refused("its first 4 MiB are not empty");
  fs::remove(image_);
  blank();
  write_at(kSize - 1, "x");
  expect_refused("its last 4 MiB are not empty");
}

TEST_F(NewFilesystemTest, LeftoversOfAnInterruptedAttemptAreOverwritten) {
  blank();
  write_at(64 << 10, "an inode table");
  const test::LoopDevice loop(image_);
  EXPECT_EQ(make(loop.path(), ext4_).error().kind, Errc::Refused);
  const auto made = make(loop.path(), ext4_, Leftovers::Ours);
  ASSERT_TRUE(made) << made.error().message();
  test::run_tool({"e2fsck", "-fn", loop.path()});
}

TEST_F(NewFilesystemTest, ADeviceThatIsInUseIsRefused) {
  const test::LoopDevice loop(blank());
  const UniqueFd user(::open(loop.path().c_str(), O_RDONLY | O_EXCL | O_CLOEXEC));
  ASSERT_TRUE(user);
  const auto made = make(loop.path(), ext4_);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, Errc::Refused);
  EXPECT_THAT(made.error().message(), HasSubstr("in use on this host"));
}

TEST_F(NewFilesystemTest, ADeviceNameThatNowBelongsToAnotherDeviceIsRefused) {
  const test::LoopDevice loop(blank());
  BlankDevice other = device(loop.path());
  other.number += 1;
  const auto made = make_filesystem(
      other, ext4_, [] { return Result<>{}; }, kDeadline);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, Errc::Refused);
  EXPECT_TRUE(check_blank(device(loop.path())));
}

TEST_F(NewFilesystemTest, NothingIsWrittenIfTheNoteCannotBeSaved) {
  const test::LoopDevice loop(blank());
  const auto made = make_filesystem(
      device(loop.path()), ext4_, []() -> Result<> { return fail(Errc::NoSpace, "the disk is full"); },
      kDeadline);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, Errc::NoSpace);
  EXPECT_TRUE(check_blank(device(loop.path())));
}

TEST_F(NewFilesystemTest, TheErrorNamesMkfsAndItsExitStatus) {
  const test::LoopDevice loop(blank(16 << 20));
  const auto made = make(loop.path(), {"xfs", "small", ext4_.uuid});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, Errc::Failed);
  EXPECT_THAT(made.error().message(), HasSubstr("mkfs.xfs ended with 1"));
}

TEST(Label, MustBeValidForTheFileSystemType) {
  EXPECT_TRUE(check_label("sixteen-letters_", "ext4"));
  EXPECT_FALSE(check_label("sixteen-letters_", "xfs"));
  EXPECT_TRUE(check_label("twelve.chars", "xfs"));
  for (const char* bad : {"", "-q", "two words", "\x1b[2J"}) EXPECT_FALSE(check_label(bad, "ext4")) << bad;
}

}  // namespace
}  // namespace spark::cli
