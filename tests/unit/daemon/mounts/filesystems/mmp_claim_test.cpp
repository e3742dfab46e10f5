// On file systems made by mkfs; another writer of the MMP block plays the other host.
#include "daemon/mounts/filesystems/mmp_claim.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <fstream>
#include <thread>

#include "daemon/mounts/filesystems/superblock.hpp"
#include "tests/support/loop_device.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::mounts {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr milliseconds kNeverOver{600'000};

class MmpClaim : public testing::Test {
 protected:
  void make(std::vector<std::string> mkfs) { test::make_image(image_, 16 << 20, std::move(mkfs)); }
  Superblock read() { return read_superblock(image_).value(); }
  bool is_claimed_by(const std::string& node) {
    for (int attempt = 0; attempt < 6'000; ++attempt) {
      if (const Superblock seen = read(); seen.mmp_node == node) return true;
      std::this_thread::sleep_for(milliseconds(10));
    }
    return false;
  }
  // Writes like another host's kernel; the file systems here have no checksums.
  void write_as(const std::string& node, std::uint32_t sequence) {
    std::fstream file(image_, std::ios::in | std::ios::out | std::ios::binary);
    const auto number_at = [&](std::streamoff at) {
      std::uint32_t number = 0;
      file.seekg(at);
      file.read(reinterpret_cast<char*>(&number), sizeof number);
      return number;
    };
    const std::streamoff superblock = 1024;
    const std::streamoff block = std::streamoff{1024} << number_at(superblock + 0x18);
    const std::streamoff mmp = block * number_at(superblock + 0x168);
    file.seekp(mmp + 4);
    file.write(reinterpret_cast<const char*>(&sequence), sizeof sequence);
    file.seekp(mmp + 16);
    file.write(node.c_str(), static_cast<std::streamsize>(node.size() + 1));
    file.seekp(mmp + 80);
    file.write("nvme0n1", 8);
  }
  test::TempFolder folder_;
  std::filesystem::path image_ = folder_ / "image";
};

TEST_F(MmpClaim, IsVisibleToOtherHostsWhileItIsHeld) {
  make({"mkfs.ext4", "-q", "-O", "mmp,metadata_csum"});
  const pid_t claiming = ::fork();
  if (claiming == 0) ::_exit(claim_by_mmp(image_, "spark1", kNeverOver) ? 0 : 1);
  EXPECT_TRUE(is_claimed_by("spark1"));
  ::kill(claiming, SIGKILL);
  ::waitpid(claiming, nullptr, 0);
  EXPECT_FALSE(read().mmp_open) << "nobody has it mounted";
  EXPECT_TRUE(claim_by_mmp(image_, "spark2", milliseconds(0))) << "another host need not take it over";
}

TEST_F(MmpClaim, LeavesTheFileSystemMarkedAsClosed) {
  make({"mkfs.ext4", "-q", "-O", "mmp,metadata_csum"});
  EXPECT_TRUE(claim_by_mmp(image_, "spark1", milliseconds(0)));
  EXPECT_FALSE(read().mmp_open);
}

TEST_F(MmpClaim, IsLostToAHostThatWritesTheBlockLater) {
  make({"mkfs.ext4", "-q", "-O", "mmp,^metadata_csum"});
  Result<> claimed;
  std::thread claiming([&] { claimed = claim_by_mmp(image_, "spark1", kNeverOver); });
  EXPECT_TRUE(is_claimed_by("spark1"));
  write_as("spark2", 4711);
  claiming.join();
  ASSERT_FALSE(claimed);
  EXPECT_EQ(claimed.error().kind, Errc::Refused);
  EXPECT_THAT(claimed.error().message(), HasSubstr("spark2"));
  EXPECT_EQ(read().mmp_node, "spark2");
  EXPECT_TRUE(read().mmp_open);
}

// Its end would leave the file system closed, and the kernel would mount it at once.
TEST_F(MmpClaim, TheClaimOfAnotherHostIsNotTakenForAnOpenFileSystem) {
  make({"mkfs.ext4", "-q", "-O", "mmp,^metadata_csum"});
  Result<> theirs, ours;
  std::thread claiming([&] { theirs = claim_by_mmp(image_, "spark1", milliseconds(3'000)); });
  EXPECT_TRUE(is_claimed_by("spark1"));
  ours = claim_by_mmp(image_, "spark2", kNeverOver);
  claiming.join();
  EXPECT_TRUE(theirs);
  ASSERT_FALSE(ours);
  EXPECT_THAT(ours.error().message(), HasSubstr("spark1"));
  EXPECT_FALSE(read().mmp_open);
}

// That host may only have been frozen: it then finds this claim.
TEST_F(MmpClaim, AClaimThatItsHostDoesNotEndIsReplaced) {
  make({"mkfs.ext4", "-q", "-O", "mmp,metadata_csum"});
  const pid_t claiming = ::fork();
  if (claiming == 0) ::_exit(claim_by_mmp(image_, "spark1", kNeverOver) ? 0 : 1);
  EXPECT_TRUE(is_claimed_by("spark1"));
  ::kill(claiming, SIGKILL);
  ::waitpid(claiming, nullptr, 0);
  EXPECT_EQ(mmp_wait(read(), false), 2 * mmp_wait(read(), true)) << "to the kernel it is open";
  Result<> ours;
  std::thread replacing([&] { ours = claim_by_mmp(image_, "spark2", milliseconds(1'500)); });
  EXPECT_TRUE(is_claimed_by("spark2"));
  replacing.join();
  EXPECT_TRUE(ours);
  EXPECT_FALSE(read().mmp_open);
}

TEST_F(MmpClaim, AnOpenFileSystemIsLeftToTheKernel) {
  make({"mkfs.ext4", "-q", "-O", "mmp,^metadata_csum"});
  write_as("spark2", 4711);
  EXPECT_TRUE(claim_by_mmp(image_, "spark1", milliseconds(60'000)));
  EXPECT_EQ(read().mmp_node, "spark2");
}

TEST_F(MmpClaim, WithoutMmpThereIsNothingToClaim) {
  make({"mkfs.ext4", "-q"});
  EXPECT_TRUE(claim_by_mmp(image_, "spark1", milliseconds(60'000)));
}

TEST_F(MmpClaim, ALongNodeNameIsTruncatedToItsField) {
  make({"mkfs.ext4", "-q", "-O", "mmp,^metadata_csum"});
  EXPECT_TRUE(claim_by_mmp(image_, std::string(80, 'x'), milliseconds(10)));
  EXPECT_EQ(read().mmp_node, std::string(64, 'x'));
}

TEST_F(MmpClaim, ADeviceWithoutExt4IsAnErrorThatNamesTheDevice) {
  test::make_image(image_, 16 << 20, {"true"});
  const auto claimed = claim_by_mmp(image_, "spark1", milliseconds(10));
  ASSERT_FALSE(claimed);
  EXPECT_THAT(claimed.error().message(), HasSubstr(image_.native()));
}

}  // namespace
}  // namespace spark::mounts
