// doctor's findings about manual setups.
#include "tests/support/host_by_hand.hpp"
#include "tests/unit/doctor/fixture.hpp"

namespace spark::doctor {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ManualSetup : public Doctor {
 protected:
  void unit(const std::string& text) {
    fake.files.write("etc/systemd/system/c.service", "[Service]\n" + text);
  }
};

TEST_F(ManualSetup, AUnitThatTriesAgainAndNeverGivesUpIsFine) {
  const std::string text = "Restart=on-failure\nExecStart=nvme connect -t tcp -n a -a 10.0.0.5";
  unit(text + " --ctrl-loss-tmo=-1");
  EXPECT_THAT(found("unit"), IsEmpty());
  unit(text);
  expect("unit", {"c.service connects by hand |", "the kernel gives up"});
}

// The daemon's user of such a unit would follow the steps and find that nothing has changed.
TEST_F(ManualSetup, WhatImportLeavesIsNotSaidToBeTakenOver) {
  fake.has_config = false;
  unit("EnvironmentFile=/etc/nvme/%i\nExecStart=nvme connect -t tcp -a $ADDR -n $NQN");
  expect("unit", {"c.service connects by hand", "spark-stage import would leave it: it connects $NQN"});
  EXPECT_THAT(found("unit").front(), Not(HasSubstr("takes it over")));
}

TEST_F(ManualSetup, OnAHostWithAConfigurationTheEntryIsAddedToIt) {
  test::set_up_by_hand(fake.files);
  EXPECT_THAT(found("fstab").front(), HasSubstr("add the entry to the configuration that is there"));
  fake.has_config = false;
  EXPECT_THAT(found("fstab").front(), HasSubstr("takes it over; its last lines are the steps"));
}

TEST_F(ManualSetup, ALineThatIsNotMountedAtBootDoesNotStopIt) {
  test::connect_by_hand(fake.files, "nvme1", "nvme1n1", "raid5-data", "2f7c");
  for (const char* option : {"noauto", "x-systemd.automount"}) {
    fake.files.write("etc/fstab", "UUID=2f7c /mnt/a ext4 rw,_netdev," + std::string(option) + " 0 0");
    expect("fstab", {"mounts read-write"});
    EXPECT_THAT(found("fstab").front(), Not(HasSubstr("nofail")));
  }
}

TEST_F(ManualSetup, ALineByUuidIsReportedWhileItsTargetIsAway) {
  for (const char* source : {"UUID=2f7c", "LABEL=data", "/dev/disk/by-id/nvme-uuid.2f7c"}) {
    fake.files.write("etc/fstab", std::string(source) + " /mnt/a ext4 rw,_netdev 0 2");
    expect("fstab", {"mounts read-write", "stops the boot", "asks for fsck"});
  }
}

TEST_F(ManualSetup, ALineWithASlashAtTheEndOfItsMountPointIsFound) {
  fake.files.write("etc/fstab", "UUID=1 /mnt/datasets/ ext4 ro,nofail,_netdev 0 0");
  expect("fstab", {"mounts the device of volume datasets"});
}

// docs/moving-in.md: of two lines of one mount point, one with noauto may stay.
TEST_F(ManualSetup, ALineOnRequestAtAVolumesMountPointMayStay) {
  fake.files.write("etc/fstab", "UUID=1 /mnt/datasets ext4 ro,noauto 0 0");
  EXPECT_THAT(found("fstab"), IsEmpty());
  fake.files.write("etc/fstab", "UUID=1 /mnt/datasets ext4 ro,noauto,x-systemd.automount 0 0");
  expect("fstab", {"mounts the device of volume datasets"});
}

TEST_F(ManualSetup, AMountUnitAtAVolumesMountPointIsFound) {
  fake.files.write("etc/systemd/system/mnt-datasets.mount",
                   "[Mount]\nWhat=/dev/disk/by-uuid/1\nWhere=/mnt/datasets\nType=ext4");
  fake.files.write("etc/systemd/system/srv.mount", "[Mount]\nWhat=/dev/sdb1\nWhere=/srv");
  expect("unit", {"mnt-datasets.mount mounts at the mount point of volume datasets"});
}

TEST_F(ManualSetup, ALocalDriveByUuidIsLeftAlone) {
  std::filesystem::create_directories(fake.files.root() / "dev/disk/by-uuid");
  std::filesystem::create_symlink("../../sda1", fake.files.root() / "dev/disk/by-uuid/abcd");
  fake.files.write("sys/class/block/sda1/size", "1000");
  fake.files.write("etc/fstab", "UUID=abcd /mnt/a ext4 rw,_netdev 0 2");
  EXPECT_THAT(found("fstab"), IsEmpty());
}

TEST_F(ManualSetup, AConnectAllThatNeverGivesUpIsFine) {
  unit("Restart=on-failure\nExecStart=nvme connect-all -t tcp -a 10.0.0.5 --ctrl-loss-tmo=-1");
  EXPECT_THAT(found("unit"), IsEmpty());
  unit("Restart=on-failure\nExecStart=nvme connect-all");
  expect("unit", {"the kernel gives up"});
}

TEST_F(ManualSetup, ConnectionsThatAreAllTriedAreFine) {
  const std::string a = "nvme connect -t tcp -n a -a 10.0.0.5 -l -1",
                    b = "nvme connect -t tcp -n b -a 10.0.0.5 -l -1";
  unit("Restart=on-failure\nExecStart=-" + a + "\nExecStart=-" + b);
  EXPECT_THAT(found("unit"), IsEmpty());
  unit("Restart=on-failure\nExecStart=sh -c '" + a + "; " + b + "'");
  EXPECT_THAT(found("unit"), IsEmpty());
  for (const std::string& text :
       {"ExecStart=" + a + "\nExecStart=" + b, "ExecStart=sh -c '" + a + " && " + b + "'"}) {
    unit("Restart=on-failure\n" + text);
    expect("unit", {"the others are not tried"});
  }
}

TEST_F(ManualSetup, AScriptThatConnectsUntilItWorksTriesAgain) {
  unit("ExecStart=sh -c 'until nvme connect -t tcp -a 10.0.0.5 -n a -l -1; do sleep 5; done'");
  EXPECT_THAT(found("unit"), IsEmpty());
}

TEST_F(ManualSetup, ALineOfAPartitionIsReportedWhileItsTargetIsConnected) {
  test::connect_by_hand(fake.files, "nvme1", "nvme1n1", "raid5-data", "2f7c");
  fake.files.write("sys/class/block/nvme1n1p1/size", "1000");
  std::filesystem::create_symlink("../../nvme1n1p1", fake.files.root() / "dev/disk/by-uuid/aaaa");
  fake.files.write("etc/fstab", "UUID=aaaa /mnt/p ext4 rw,_netdev 0 2");
  expect("fstab", {"mounts read-write", "stops the boot", "asks for fsck"});
}

TEST_F(ManualSetup, AMountUnitOfASharedVolumeIsReported) {
  test::connect_by_hand(fake.files, "nvme1", "nvme1n1", "raid5-data", "2f7c");
  fake.files.write("etc/systemd/system/mnt-a.mount", "[Mount]\nWhat=UUID=2f7c\nWhere=/mnt/a\nType=ext4");
  expect("unit", {"mnt-a.mount (UUID=2f7c on /mnt/a)", "mounts read-write"});
}

}  // namespace
}  // namespace spark::doctor
