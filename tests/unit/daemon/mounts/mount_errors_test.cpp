// mount.nfs's own messages (nfs-utils 2.6), and the kernel's errors for a block mount.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "daemon/mounts/mount_errors.hpp"

namespace spark::mounts {
namespace {

using testing::HasSubstr;

struct NfsRow {
  const char* words;
  Errc kind;
};

class NfsError : public testing::TestWithParam<NfsRow> {};

TEST_P(NfsError, IsClassifiedByItsMessageAndHasAHint) {
  const MountRequest request{"nas:/data", "/mnt/nas", "nfs", true, {}};
  const Error error = explain_nfs_mount(request, {0, 32, GetParam().words, ""});
  EXPECT_EQ(error.kind, GetParam().kind) << error.message();
  EXPECT_THAT(error.what, HasSubstr("mounting nas:/data at /mnt/nas: "));
  EXPECT_THAT(error.what, testing::Not(HasSubstr("mount.nfs")));
  EXPECT_FALSE(error.hint.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Nfs, NfsError,
    testing::Values(
        NfsRow{"mount.nfs: access denied by server while mounting nas:/data\n", Errc::Denied},
        NfsRow{"mount.nfs: Operation not permitted for nas:/data on /mnt/nas\n", Errc::Denied},
        NfsRow{"mount.nfs: mounting nas:/data failed, reason given by server: No such file or directory\n",
               Errc::NotFound},
        NfsRow{"mount.nfs: No route to host for nas:/data on /mnt/nas\n", Errc::Unavailable},
        NfsRow{"mount.nfs: Connection refused for nas:/data on /mnt/nas\n", Errc::Unavailable},
        NfsRow{"mount.nfs: Failed to resolve server nas: Name or service not known\n", Errc::Unavailable},
        NfsRow{"mount.nfs: Connection timed out for nas:/data on /mnt/nas\n", Errc::TimedOut},
        NfsRow{"mount.nfs: Protocol not supported for nas:/data on /mnt/nas\n", Errc::Unsupported},
        NfsRow{"mount.nfs: an incorrect mount option was specified for /mnt/nas\n", Errc::Invalid}));

TEST(NfsErrors, WithoutAMessageTheExitStatusIsNamed) {
  const Error error = explain_nfs_mount({"nas:/data", "/mnt/nas", "nfs", true, {}}, {0, 32, "", ""});
  EXPECT_THAT(error.what, HasSubstr("mount.nfs ended with status 32"));
}

TEST(BlockErrors, ADuplicateXfsUuidIsNotReportedAsAWrongOption) {
  const Error error = explain_block_mount({"/dev/nvme1n2", "/mnt/v", "xfs", true, {}}, EINVAL, {},
                                          "XFS (nvme1n2): Filesystem has duplicate UUID 1234 - can't mount");
  EXPECT_EQ(error.kind, Errc::Unavailable);
  EXPECT_THAT(error.what, HasSubstr("a file system of the same UUID"));
}

// The target failed a read of the journal, after the kernel had watched the MMP block for its interval.
TEST(BlockErrors, ADeviceErrorAfterTheMmpWaitIsNotARefusal) {
  Superblock superblock;
  superblock.has_mmp = true;
  superblock.mmp_node = "spark1";
  const Error error = explain_block_mount({"/dev/nvme1n2", "/mnt/v", "ext4", false, {}}, EIO, superblock,
                                          "EXT4-fs warning (device nvme1n2): ext4_multi_mount_protect:334: "
                                          "MMP interval 42 higher than expected, please "
                                          "wait.; EXT4-fs (nvme1n2): error loading journal");
  EXPECT_EQ(error.kind, Errc::Unavailable);
  EXPECT_THAT(error.what, HasSubstr("the device doesn't answer reads"));
  EXPECT_THAT(error.what, testing::Not(HasSubstr("spark1")));
}

TEST(BlockErrors, AnMmpConflictNamesTheHostAndABusyDeviceIsInUseHere) {
  const MountRequest request{"/dev/nvme1n1", "/mnt/v", "ext4", false, {}};
  Superblock superblock;
  superblock.has_mmp = true;
  superblock.mmp_node = "spark1";
  const std::string words =
      "EXT4-fs warning (device nvme1n1): ext4_multi_mount_protect: Device is already active on "
      "another node.";
  const Error error = explain_block_mount(request, EINVAL, superblock, words);
  EXPECT_EQ(error.kind, Errc::Refused);
  EXPECT_THAT(error.what, HasSubstr("host 'spark1' has it open"));
  superblock.has_mmp = false;
  EXPECT_THAT(explain_block_mount(request, EBUSY, superblock, "").what, HasSubstr("in use on this host"));
}

TEST(BlockErrors, AnUnknownErrnoIsStillReportedAsASentence) {
  const MountRequest request{"/dev/nvme1n1", "/mnt/v", "ext4", false, {}};
  const Error error = explain_block_mount(request, EDOM, {}, "EXT4-fs (nvme1n1): odd");
  EXPECT_THAT(error.what,
              HasSubstr("mounting /dev/nvme1n1 at /mnt/v (kernel: EXT4-fs (nvme1n1): odd): Numerical"));
}

}  // namespace
}  // namespace spark::mounts
