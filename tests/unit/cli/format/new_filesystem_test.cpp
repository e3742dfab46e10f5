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
#include "tests/support/skip.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::cli {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr std::size_t kSize = 64 << 20, kXfsBytes = 320 << 20;
constexpr std::size_t kSector = 512;
constexpr std::chrono::minutes kDeadline{1};

// `bytes` of the number, the lowest first.
std::string le(std::uint64_t number, int bytes) {
  std::string text;
  for (; bytes > 0; --bytes, number >>= 8) text += static_cast<char>(number & 0xff);
  return text;
}

std::uint32_t crc32(const std::string& text, std::uint32_t crc) {
  for (const char byte : text) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320U : 0U);
  }
  return crc;
}

// An empty GPT: protective MBR, header and entries; without the backup at the end.
std::string gpt() {
  constexpr std::uint64_t kLast = kSize / kSector - 1;
  const std::string entries(128 * 128, '\0');
  const std::string begin = "EFI PART" + le(0x10000, 4) + le(92, 4);
  const std::string rest = le(0, 4) + le(1, 8) + le(kLast, 8) + le(34, 8) + le(kLast - 33, 8) +
                           "0123456789abcdef" + le(2, 8) + le(128, 4) + le(128, 4) +
                           le(~crc32(entries, ~0U), 4);
  const std::string header = begin + le(~crc32(begin + le(0, 4) + rest, ~0U), 4) + rest;
  std::string mbr =
      std::string(446, '\0') + le(0x200, 4) + le(0xee, 1) + le(0x010101, 3) + le(1, 4) + le(kLast, 4);
  mbr.resize(510);
  return mbr + "\x55\xaa" + header + std::string(kSector - header.size(), '\0') + entries;
}

// The label of an LVM physical volume, for the second sector, with LVM's checksum.
std::string lvm_label() {
  std::string body = le(32, 4) + "LVM2 001abcdefghijklmnopqrstuvwxyz012345" + le(kSize, 8) + le(0, 16);
  body.resize(kSector - 20);
  return "LABELONE" + le(1, 8) + le(crc32(body, 0xf597a6cfU), 4) + body;
}

class NewFilesystemTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = test::why_no_loop_mounts();
    if (!why.empty()) SPARK_SKIP("file systems on real devices: " + why);
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
  fs::remove(image_);
  test::make_image(image_, kSize, {"mkswap", "-q"});
  expect_refused("it holds swap");
  fs::remove(image_);
  blank();
  write_at(0, gpt());
  expect_refused("it holds a gpt partition table");
  fs::remove(image_);
  blank();
  write_at(kSector, lvm_label());
  expect_refused("it holds an LVM physical volume");
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
