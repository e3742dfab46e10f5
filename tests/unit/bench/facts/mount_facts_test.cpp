#include "bench/facts/mount_facts.hpp"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

namespace spark::bench {
namespace {

const std::vector<mounts::Mount> kMounts = mounts::parse_mount_table(
    "22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw,errors=remount-ro\n"
    "40 22 259:5 / /mnt/rosa ro,noatime shared:7 - ext4 /dev/nvme1n1 ro,norecovery\n"
    "41 22 0:52 / /mnt/rosa-nfs rw,relatime shared:8 - nfs4 192.168.0.98:/data rw,vers=4.2,nconnect=8\n"
    "42 22 0:60 / /mnt/with\\040blank rw - tmpfs tmpfs rw,size=4k\n"
    "43 22 0:61 / /mnt/stacked rw - tmpfs first rw\n"
    "44 43 0:62 / /mnt/stacked rw - tmpfs second rw\n"
    "garbage\n"
    "45 22 0:63 /sub /mnt/btrfs rw,noatime - btrfs /dev/sda1 rw,subvol=/sub\n");

TEST(MountFacts, TheDeepestMountAboveThePathIsFound) {
  const auto mount = find_mount(kMounts, "/mnt/rosa/imagenet", makedev(259, 5));
  ASSERT_TRUE(mount);
  EXPECT_EQ(mount->mount_point, "/mnt/rosa");
  EXPECT_EQ(mount->source, "/dev/nvme1n1");
  EXPECT_EQ(mount->type, "ext4");
  EXPECT_EQ(mount->options, "ro,noatime,norecovery");
}

TEST(MountFacts, AMountPointMatchesWholePathComponentsOnly) {
  EXPECT_EQ(find_mount(kMounts, "/mnt/rosa-nfs", makedev(0, 52))->type, "nfs4");
  EXPECT_EQ(find_mount(kMounts, "/mnt/rosary", makedev(259, 2))->mount_point, "/");
}

TEST(MountFacts, EscapedBlanksAreReadAndTheLaterOfTwoMountsCounts) {
  EXPECT_EQ(find_mount(kMounts, "/mnt/with blank/x", makedev(0, 60))->mount_point, "/mnt/with blank");
  EXPECT_EQ(find_mount(kMounts, "/mnt/stacked", makedev(0, 62))->source, "second");
}

TEST(MountFacts, ADeviceMissingFromMountinfoIsMatchedByPath) {
  EXPECT_EQ(find_mount(kMounts, "/mnt/btrfs/x", makedev(0, 99))->source, "/dev/sda1");
  EXPECT_FALSE(find_mount({}, "/x", 0));
}

}  // namespace
}  // namespace spark::bench
