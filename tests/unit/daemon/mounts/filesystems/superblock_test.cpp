// Superblocks made by mkfs and the kernel, read from image files and loop devices.
#include "daemon/mounts/filesystems/superblock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <fstream>

#include "daemon/mounts/filesystems/xfs.hpp"
#include "tests/support/fake_sysfs.hpp"
#include "tests/support/loop_device.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::mounts {
namespace {

using testing::HasSubstr;

constexpr char kUuid[] = "2f7c1c0e-8d0b-4c39-9e0a-3f6c2b7d5a10";
constexpr std::size_t kExt4Size = 16 << 20, kXfsSize = 320 << 20;

void put(const std::filesystem::path& image, std::streamoff at, const std::string& bytes) {
  std::fstream file(image, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(at);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

class SuperblockOfImage : public testing::Test {
 protected:
  Superblock read() {
    const auto superblock = read_superblock(image_);
    EXPECT_TRUE(superblock) << superblock.error().message();
    return superblock ? *superblock : Superblock{};
  }
  void make(std::vector<std::string> mkfs, std::size_t bytes = kExt4Size) {
    test::make_image(image_, bytes, std::move(mkfs));
  }
  test::TempFolder folder_;
  std::filesystem::path image_ = folder_ / "image";
};

TEST_F(SuperblockOfImage, Ext4IsReadWithItsUuidLabelAndSize) {
  make({"mkfs.ext4", "-q", "-U", kUuid, "-L", "rosa-storage"});
  const Superblock superblock = read();
  EXPECT_EQ(superblock.type, "ext4");
  EXPECT_EQ(superblock.uuid, kUuid);
  EXPECT_EQ(superblock.label, "rosa-storage");
  EXPECT_EQ(superblock.bytes, kExt4Size);
  EXPECT_EQ(superblock.filesystem_bytes, kExt4Size);
  EXPECT_FALSE(superblock.being_written);
  EXPECT_FALSE(superblock.has_mmp);
  EXPECT_EQ(superblock.damage, "");
  EXPECT_EQ(superblock.partition_table, "");
  EXPECT_GT(superblock.read_us, 0);
}

TEST_F(SuperblockOfImage, MmpIsDetectedWithItsInterval) {
  make({"mkfs.ext4", "-q", "-O", "mmp", "-E", "mmp_update_interval=7"});
  const Superblock superblock = read();
  EXPECT_TRUE(superblock.has_mmp);
  EXPECT_EQ(superblock.mmp_interval_s, 7u);
}

TEST_F(SuperblockOfImage, TheErrorFlagIsReportedAsDamage) {
  make({"mkfs.ext4", "-q"});
  test::run_tool({"debugfs", "-w", "-R", "set_super_value state 2", image_});
  const Superblock superblock = read();
  EXPECT_THAT(superblock.damage, HasSubstr("errors are recorded in its ext4"));
}

TEST_F(SuperblockOfImage, ErrorsCountedByTheKernelAreDamageUntilE2fsckCompletes) {
  make({"mkfs.ext4", "-q"});
  test::run_tool({"debugfs", "-w", "-R", "set_super_value error_count 3", image_});
  EXPECT_THAT(read().damage, HasSubstr("3 since the last e2fsck"));
  test::run_tool({"e2fsck", "-fy", image_});
  EXPECT_EQ(read().damage, "");
}

TEST_F(SuperblockOfImage, AFileSystemLargerThanItsDeviceIsReportedAsDamage) {
  for (const char* mkfs : {"mkfs.ext4", "mkfs.xfs"}) {
    make({mkfs, "-q"}, kXfsSize);
    std::filesystem::resize_file(image_, kXfsSize - (1 << 20));
    const auto superblock = probe_superblock(image_);
    ASSERT_TRUE(superblock) << superblock.error().message();
    EXPECT_THAT(superblock->damage, HasSubstr("335544320 bytes, but the device only 334495744")) << mkfs;
    std::filesystem::remove(image_);
  }
}

TEST_F(SuperblockOfImage, XfsIsReadWithItsUuidAndIsCleanAfterMkfs) {
  make({"mkfs.xfs", "-q", "-m", std::string("uuid=") + kUuid, "-L", "rosa"}, kXfsSize);
  const Superblock superblock = read();
  EXPECT_EQ(superblock.type, "xfs");
  EXPECT_EQ(superblock.uuid, kUuid);
  EXPECT_EQ(superblock.label, "rosa");
  EXPECT_EQ(superblock.filesystem_bytes, kXfsSize);
  EXPECT_FALSE(superblock.being_written);
}

TEST_F(SuperblockOfImage, ABlankDeviceHasNoType) {
  make({"true"});
  const Superblock superblock = read();
  EXPECT_EQ(superblock.type, "");
  EXPECT_EQ(superblock.partition_table, "");
}

TEST_F(SuperblockOfImage, AnUnsupportedTypeIsNamed) {
  make({"mkswap"});
  EXPECT_EQ(read().type, "swap");
}

TEST_F(SuperblockOfImage, APartitionTableIsDetected) {
  make({"true"});
  const std::string entry("\0\0\0\0\x83\0\0\0\x00\x08\0\0\x00\x40\0\0", 16);  // Linux, at 1 MiB
  put(image_, 446, entry);
  put(image_, 510, "\x55\xaa");
  EXPECT_EQ(read().partition_table, "dos");
}

TEST_F(SuperblockOfImage, ADeviceWithTwoSignaturesIsRefused) {
  make({"mkfs.xfs", "-q"}, kXfsSize);
  const auto other = folder_ / "other";
  test::make_image(other, kXfsSize, {"mkfs.ext4", "-q"});
  std::string ext4(1024, '\0');
  std::ifstream(other, std::ios::binary).seekg(1024).read(ext4.data(), 1024);
  put(image_, 1024, ext4);
  const auto superblock = read_superblock(image_);
  ASSERT_FALSE(superblock);
  EXPECT_EQ(superblock.error().kind, Errc::Refused);
  EXPECT_THAT(superblock.error().message(), HasSubstr("more than one file system"));
}

TEST_F(SuperblockOfImage, ADeviceSmallerThanASuperblockHasNoType) {
  make({"true"}, 1000);
  const auto superblock = probe_superblock(image_);
  ASSERT_TRUE(superblock) << superblock.error().message();
  EXPECT_EQ(superblock->type, "");
}

TEST(Superblock, AMissingDeviceIsNotFoundAndAFolderIsRejected) {
  EXPECT_EQ(read_superblock("/dev/spark-stage-nothing").error().kind, Errc::NotFound);
  EXPECT_EQ(read_superblock("/proc").error().message().substr(0, 5), "openi");
}

// A ring of 512-byte blocks with an unmount record of two blocks, header and data, directly before `head`.
std::string make_xfs_log(std::size_t blocks, std::size_t head, std::uint32_t round, std::uint8_t flags) {
  std::string log(blocks * 512, '\0');
  const auto put_word = [&](std::size_t block, std::size_t at, std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) log[block * 512 + at++] = static_cast<char>(value >> shift);
  };
  for (std::size_t block = 0; block < blocks; ++block) put_word(block, 0, block < head ? round : round - 1);
  const std::size_t header = (head + blocks - 2) % blocks, data = (head + blocks - 1) % blocks;
  put_word(header, 4, header < head ? round : round - 1);
  put_word(header, 0, 0xFEEDBABE);
  put_word(header, 8, 2);            // version
  put_word(header, 12, 512);         // bytes of data
  put_word(header, 40, 1);           // operations
  put_word(header, 320, 32 * 1024);  // iclog size
  log[data * 512 + 9] = static_cast<char>(flags);
  return log;
}

TEST(XfsLog, AnUnmountRecordIsFoundWhereverTheHeadOfTheRingIs) {
  const test::TempFolder folder;
  const auto image = folder / "log";
  constexpr std::size_t kBlocks = 1024;
  for (const std::uint32_t round : {1u, 2u, 77u}) {
    // In the first round the blocks after the head were never written, and the record can't cross the
    // wrap-around.
    for (std::size_t head = round == 1 ? 2 : 1; head <= kBlocks; head += head < 4 || head > 1020 ? 1 : 60) {
      for (const std::uint8_t flags : {0x20, 0x00}) {
        std::ofstream(image, std::ios::binary) << make_xfs_log(kBlocks, head, round, flags);
        const auto reader = DirectReader::open(image);
        ASSERT_TRUE(reader) << reader.error().message();
        const auto clean = xfs_log_is_clean(*reader, {0, kBlocks * 512});
        ASSERT_TRUE(clean) << clean.error().message();
        EXPECT_EQ(*clean, flags == 0x20) << "round " << round << ", head " << head;
      }
    }
  }
}

// Written by the kernel.
class SuperblockOfMounted : public SuperblockOfImage {
 protected:
  void SetUp() override {
    const std::string why = test::why_no_loop_mounts();
    if (!why.empty()) SPARK_SKIP("mounting loop devices: " + why);
  }
  void TearDown() override { unmount(); }
  void mount(const std::string& type) {
    std::filesystem::create_directories(folder_ / "mnt");
    const test::LoopDevice loop(image_);
    ASSERT_EQ(::mount(loop.path().c_str(), (folder_ / "mnt").c_str(), type.c_str(), 0, nullptr), 0);
    mounted_ = true;
  }
  void unmount() {
    if (mounted_) {
      EXPECT_EQ(::umount2((folder_ / "mnt").c_str(), 0), 0);
    }
    mounted_ = false;
  }
  void write_files(int count) {
    for (int i = 0; i < count; ++i) std::ofstream(folder_ / ("mnt/file" + std::to_string(i))) << i;
    ::sync();
  }
  bool mounted_ = false;
};

TEST_F(SuperblockOfMounted, AnExt4WriterIsDetectedFromMountToUnmount) {
  for (const char* features : {"^mmp", "^has_journal"}) {
    make({"mkfs.ext4", "-q", "-F", "-O", features});
    const Superblock before = read();
    mount("ext4");
    write_files(1);
    const Superblock during = read();
    EXPECT_TRUE(during.being_written) << features;
    EXPECT_NE(during.stamp, before.stamp) << features;
    unmount();
    EXPECT_FALSE(read().being_written) << features;
    EXPECT_NE(read().stamp, during.stamp) << features;
  }
}

TEST_F(SuperblockOfMounted, TheMmpWriterIsNamed) {
  make({"mkfs.ext4", "-q", "-O", "mmp"});
  mount("ext4");
  char node[256] = {};
  ASSERT_EQ(::gethostname(node, sizeof node - 1), 0);
  EXPECT_EQ(read().mmp_node, std::string(node).substr(0, 64));
  EXPECT_TRUE(read().mmp_open);
  unmount();
  EXPECT_FALSE(read().mmp_open);
}

TEST_F(SuperblockOfMounted, AnXfsWriterIsDetectedFromItsFirstChangeToItsUnmount) {
  make({"mkfs.xfs", "-q"}, kXfsSize);
  for (int round = 0; round < 2; ++round) {
    mount("xfs");
    write_files(2000);
    EXPECT_TRUE(read().being_written) << round;
    unmount();
    EXPECT_FALSE(read().being_written) << round;
    EXPECT_THAT(test::run_tool({"xfs_logprint", "-t", image_}), HasSubstr("<CLEAN>")) << round;
  }
}

TEST_F(SuperblockOfMounted, AnXfsWriterWithLongLogRecordsIsAlsoDetected) {
  make({"mkfs.xfs", "-q"}, kXfsSize);
  std::filesystem::create_directories(folder_ / "mnt");
  const test::LoopDevice loop(image_);
  ASSERT_EQ(::mount(loop.path().c_str(), (folder_ / "mnt").c_str(), "xfs", 0, "logbsize=256k"), 0);
  mounted_ = true;
  write_files(3000);
  EXPECT_TRUE(read().being_written);
  unmount();
  EXPECT_FALSE(read().being_written);
}

TEST(DeadXfs, IsAnXfsStillInTheKernelAfterItsDiskIsGone) {
  test::FakeSysfs files;
  EXPECT_FALSE(has_dead_xfs(files.root()));
  files.write("sys/fs/xfs/stats/stats", "");
  files.write("sys/fs/xfs/nvme2n1/log/log_head_lsn", "1:2");
  files.write("sys/class/block/nvme2n1/size", "8");
  EXPECT_FALSE(has_dead_xfs(files.root()));
  files.remove("sys/class/block/nvme2n1");
  EXPECT_TRUE(has_dead_xfs(files.root()));
}

}  // namespace
}  // namespace spark::mounts
