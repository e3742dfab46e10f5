// What the next boot would mount beside a volume, and which device a line means.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/unit/migration/import_fixture.hpp"

namespace spark::host {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kSystemd = "etc/systemd/system/";
const std::string kStorage = "UUID=2f7c3a52-6f0e-4c55-9a55-0d4a6c1de5b7";

// nvme1n1 is raid5-data and nvme3n1 llm-models.
class Rivals : public ImportFixture {
 protected:
  Rivals() { test::set_up_by_hand(host); }

  void mounted(const std::string& lines) {
    host.write("proc/self/mountinfo", "21 1 259:9 / / rw - ext4 /dev/nvme0n1p2 rw\n" + lines);
  }
  void wanted_unit(const std::string& name, const std::string& text) {
    host.write(kSystemd + name, text);
    const auto folder = host.root() / (kSystemd + "multi-user.target.wants");
    std::filesystem::create_directories(folder);
    std::filesystem::create_symlink("../" + name, folder / name);
  }
};

TEST_F(Rivals, ANameOfTheKernelMeansWhatIsMountedThere) {
  host.write("etc/fstab", "/dev/nvme1n1 /mnt/rosa-storage ext4 noatime,nofail 0 0");
  mounted("30 21 259:3 / /mnt/rosa-storage rw - ext4 /dev/nvme3n1 rw");
  const config::Config config = parsed(import());
  ASSERT_EQ(config.volumes.size(), 1u);
  EXPECT_EQ(config.volumes[0].nvme->subsystem, "llm-models");
  EXPECT_EQ(config.volumes[0].nvme->filesystem_uuid, "7f3b60f2-90d1-4dbf-a0cf-2b8f5d70f1aa");
}

// After a boot that connected in another order, it is another volume.
TEST_F(Rivals, ANameOfTheKernelMeansNothingWhereNothingIsMounted) {
  host.write("etc/fstab", "/dev/nvme1n1 /mnt/rosa-storage ext4 noatime,nofail 0 0");
  mounted("");
  const Imported imported = import();
  EXPECT_TRUE(parsed(imported).volumes.empty()) << imported.yaml;
  EXPECT_THAT(imported.yaml, HasSubstr("nothing is mounted on /mnt/rosa-storage now"));
  EXPECT_THAT(imported.yaml, Not(HasSubstr("systemctl disable"))) << "the line needs its connection";
}

TEST_F(Rivals, ALineAndAUnitOfOneMountPointAreLeftOutAndNamed) {
  host.write("etc/fstab", kStorage + " /mnt/rosa-storage ext4 _netdev 0 0");
  wanted_unit("mnt-rosa\\x2dstorage.mount", "[Mount]\nWhat=/dev/nvme1n1\nWhere=/mnt/rosa-storage\nType=ext4");
  const Imported imported = import();
  for (const config::Volume& volume : parsed(imported).volumes)
    EXPECT_NE(volume.mount, "/mnt/rosa-storage") << imported.yaml;
  EXPECT_THAT(imported.yaml, HasSubstr("line 1 of /etc/fstab also mounts there: remove one of the two"));
  EXPECT_THAT(imported.yaml, HasSubstr("storage.mount also mounts there: remove one of the two"));
  EXPECT_THAT(imported.yaml, Not(HasSubstr("umount /mnt/rosa-storage")));
}

TEST_F(Rivals, AUnitThatNothingStartsIsNoObstacleToALine) {
  host.write("etc/fstab", kStorage + " /mnt/rosa-storage ext4 _netdev 0 0");
  host.write(kSystemd + "srv-other.mount", "[Mount]\nWhat=/dev/nvme1n1\nWhere=/srv/other\nType=ext4");
  const Imported imported = import();
  ASSERT_FALSE(parsed(imported).volumes.empty()) << imported.yaml;
  EXPECT_EQ(parsed(imported).volumes[0].mount, "/mnt/rosa-storage");
}

// The second place would keep the file system open for writing, and the volume be refused.
TEST_F(Rivals, TwoPlacesOfOneDeviceAreLeftOutAndNamed) {
  const std::string second = kStorage + " /srv/data ext4 _netdev";
  host.write("etc/fstab", kStorage + " /mnt/rosa-storage ext4 _netdev 0 0\n" + second + " 0 0");
  const Imported imported = import();
  for (const config::Volume& volume : parsed(imported).volumes)
    EXPECT_NE(volume.nvme->subsystem, "raid5-data") << imported.yaml;
  EXPECT_THAT(imported.yaml, HasSubstr("line 2 of /etc/fstab mounts the same device, on /srv/data"));
  EXPECT_THAT(imported.yaml, HasSubstr("line 1 of /etc/fstab mounts the same device, on /mnt/rosa-storage"));
  host.write("etc/fstab", kStorage + " /mnt/rosa-storage ext4 _netdev 0 0\n" + second + ",noauto 0 0");
  EXPECT_EQ(parsed(import()).volumes[0].mount, "/mnt/rosa-storage");
}

TEST_F(Rivals, AnotherRunningMountOfAVolumesDeviceIsNamed) {
  host.write("etc/fstab", kStorage + " /mnt/rosa-storage ext4 _netdev 0 0");
  mounted(
      "30 21 259:1 / /mnt/rosa-storage rw - ext4 /dev/nvme1n1 rw\n"
      "31 21 259:1 / /srv/same rw - ext4 /dev/nvme1n1 rw");
  EXPECT_THAT(import().yaml,
              HasSubstr("volume rosa-storage on /mnt/rosa-storage is the same device: unmount it"));
}

// Without its mount unit at boot, it fails, or begins before the volume is there.
TEST_F(Rivals, UnitsThatNeedTheMountAreNamed) {
  host.write("etc/fstab", kStorage + " /mnt/rosa-storage ext4 _netdev 0 0");
  host.write(kSystemd + "docker.service.d/a.conf",
             "[Unit]\nRequires=network.target mnt-rosa\\x2dstorage.mount\nAfter=mnt-rosa\\x2dstorage.mount");
  host.write(kSystemd + "train.service", "[Unit]\nRequiresMountsFor=/mnt/rosa-storage/run7 /srv");
  host.write(kSystemd + "other.service",
             "[Unit]\nRequiresMountsFor=/mnt/rosa-storage2\nAfter=mnt-rosa.mount");
  // It is moved away.
  host.write(
      kSystemd + "nvme-rosa-connect.service",
      "[Unit]\nWants=mnt-rosa\\x2dstorage.mount\n[Service]\nExecStart=nvme connect -t tcp -n raid5-data -a "
      "192.168.0.100");
  std::vector<std::string> files;
  const Imported imported = import();
  EXPECT_THAT(imported.yaml, HasSubstr("systemctl disable nvme-rosa-connect.service"));
  for (const Item& item : imported.items)
    if (item.what == "a unit") files.push_back(item.origin);
  EXPECT_THAT(files, testing::UnorderedElementsAre("/etc/systemd/system/docker.service.d/a.conf",
                                                   "/etc/systemd/system/train.service"));
  EXPECT_THAT(imported.yaml, HasSubstr("`ExecStartPre=/usr/bin/spark-stage wait rosa-storage`"));
}

// On a host that has moved before, they are spark-staged's.
TEST_F(Rivals, WhatTheConfigurationHasMountedIsNotUnmountedAndNoManualMount) {
  host.write("etc/spark-stage/spark-stage.yaml",
             "version: 1\ntargets: {rose: {address: 192.168.0.100}}\nvolumes:\n"
             "  rosa: {target: rose, subsystem: raid5-data, mount: /mnt/rosa-storage}\n"
             "  models: {target: rose, subsystem: llm-models, mount: /mnt/rosa-models}\n"
             "  nas: {nfs: 'nas:/x', mount: /mnt/nas}");
  host.write("etc/fstab", "nas:/new /mnt/new nfs4 ro,_netdev 0 0");
  const std::string line = "30 21 259:1 / /mnt/rosa-storage ";
  const std::string others =
      "32 21 0:50 / /mnt/nas ro - nfs4 nas:/x ro,vers=4.2\n"
      "31 21 259:3 / /mnt/rosa-models rw - ext4 /dev/nvme3n1 rw";
  mounted(line + "ro - ext4 /dev/nvme1n1 ro\n" + others);
  const std::string yaml = import().yaml;
  EXPECT_THAT(yaml, Not(HasSubstr("umount /mnt/rosa-storage")));
  EXPECT_THAT(yaml, Not(HasSubstr("is mounted by hand")));
  EXPECT_THAT(yaml, HasSubstr("nfs: \"nas:/new\""));
  EXPECT_THAT(yaml, HasSubstr("umount /mnt/rosa-models")) << "by hand: it is read-write";
}

TEST_F(Rivals, AMountPointThatIsNotUtf8IsLeftOut) {
  host.write("etc/fstab", kStorage + " /mnt/donn\\351es ext4 _netdev 0 0");
  mounted("");
  const Imported imported = import();
  EXPECT_TRUE(parsed(imported).volumes.empty()) << imported.yaml;
  EXPECT_THAT(imported.yaml, HasSubstr("a configuration can't hold its name"));
}

TEST_F(Rivals, SuidAndDevOfALineStay) {
  host.write("etc/fstab", kStorage + " /mnt/rosa-storage ext4 defaults,suid,dev,exec,_netdev 0 0");
  EXPECT_THAT(parsed(import()).volumes[0].options, testing::ElementsAre("suid", "dev"));
}

// To open a FIFO waits for ever.
TEST_F(Rivals, OnlyFilesOfACommandAreReadForAScript) {
  host.write(kSystemd + "c.service",
             "[Service]\nExecStart=/opt/collect /opt/fifo /mnt/nas/connect.sh\nExecStartPost=/opt/link.sh");
  host.write("opt/connect.sh", "#!/bin/sh\nnvme connect-all");
  host.write("mnt/nas/connect.sh", "#!/bin/sh\nnvme connect-all");
  ASSERT_EQ(::mkfifo((host.root() / "opt/fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink("connect.sh", host.root() / "opt/link.sh");
  mounted("40 21 0:50 / /mnt/nas rw - nfs4 nas:/x rw,vers=4.2");
  const std::string yaml = import().yaml;
  EXPECT_THAT(yaml, HasSubstr("# Not read: /opt/link.sh of c.service"));
  EXPECT_THAT(yaml, Not(HasSubstr("/mnt/nas/connect.sh")));
}

}  // namespace
}  // namespace spark::host
