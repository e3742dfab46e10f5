// Setups that public manuals and forums show. Whole hosts are in tests/unit/cli/hosts.
#include <gtest/gtest.h>

#include "migration/undo.hpp"
#include "tests/unit/migration/import_fixture.hpp"

namespace spark::host {
namespace {

class ImportOfSetups : public ImportFixture {};

TEST_F(ImportOfSetups, KeysOfNvmeCli3AndAKeyForTlsAreProtectionToo) {
  host.write("etc/systemd/system/c.service",
             "[Service]\nExecStart=nvme connect -t tcp -a 192.0.2.8 -n a --kxchap-secret=DHHC-1:00:geheim: "
             "--kxchap-ctrl-secret DHHC-1:00:geheim:\n"
             "ExecStart=nvme connect -t tcp -a 192.0.2.9 -n b --tls_key=NVMeTLSkey-1:01:geheim:");
  const Imported imported = import();
  const config::Config config = parsed(imported);
  ASSERT_EQ(config.targets.size(), 2u) << imported.yaml;
  EXPECT_EQ(config.targets.at("target").options.controller_key_file, "/etc/spark-stage/keys/ctrl");
  EXPECT_EQ(config.targets.at("target-2").options.tls_psk_file, "/etc/spark-stage/keys/psk-2");
  EXPECT_EQ(imported.yaml.find("geheim"), std::string::npos) << imported.yaml;
}

TEST_F(ImportOfSetups, SubsystemsWithDifferentKeysAreTargetsOfTheirOwn) {
  host.write("etc/systemd/system/c.service",
             "[Service]\nExecStart=nvme connect -t tcp -a 192.0.2.8 -n a -S DHHC-1:00:one:\n"
             "ExecStart=nvme connect -t tcp -a 192.0.2.8 -n b -S DHHC-1:00:other:\n"
             "ExecStart=nvme connect -t tcp -a 192.0.2.8 -n c -S DHHC-1:00:one:");
  const config::Config config = parsed(import());
  ASSERT_EQ(config.targets.size(), 2u);
  EXPECT_EQ(config.targets.at("target-2").options.host_key_file, "/etc/spark-stage/keys/host-2");
}

TEST_F(ImportOfSetups, TheInterfaceOfOnePathIsNotThatOfAll) {
  host.write("etc/systemd/system/c.service",
             "[Service]\nExecStart=nvme connect -t tcp -a 10.0.0.5 -n a -f eth1\n"
             "ExecStart=nvme connect -t tcp -a 10.0.1.5 -n a -f eth2");
  const Imported imported = import();
  const config::Config config = parsed(imported);
  ASSERT_EQ(config.targets.size(), 1u) << imported.yaml;
  EXPECT_EQ(config.targets.at("target").options.interface, "");
  EXPECT_NE(imported.yaml.find("several interfaces (eth1, eth2)"), std::string::npos) << imported.yaml;
}

TEST_F(ImportOfSetups, WhatElseIsMountedThereIsNotUnmounted) {
  test::set_up_by_hand(host);
  host.write("proc/self/mountinfo",
             "21 1 259:9 / / rw - ext4 /dev/nvme0n1p2 rw\n"
             "30 21 8:1 / /mnt/rosa-storage rw - ext4 /dev/sdb1 rw\n"
             "31 21 259:3 / /mnt/rosa-models rw - ext4 /dev/nvme3n1 rw\n"
             "32 21 8:1 / /mnt/dell-shared rw - ext4 /dev/sdb1 rw");
  const Imported imported = import();
  ASSERT_EQ(parsed(imported).volumes.size(), 1u) << imported.yaml;
  EXPECT_EQ(imported.yaml.find("umount /mnt/rosa-storage"), std::string::npos) << imported.yaml;
  EXPECT_NE(imported.yaml.find("/dev/sdb1 is mounted on /mnt/rosa-storage now"), std::string::npos)
      << imported.yaml;
}

TEST_F(ImportOfSetups, PartsOfAVolumeAndMountsOfOtherProgramsStay) {
  test::set_up_by_hand(host);
  host.write("etc/fstab", "/dev/nvme1n1 /mnt/a ext4 _netdev 0 0\n/mnt/a/models /srv/models none bind 0 0");
  host.write("proc/self/mountinfo",
             "21 1 259:9 / / rw - ext4 /dev/nvme0n1p2 rw\n"
             "30 21 259:1 / /mnt/a rw - ext4 /dev/nvme1n1 rw\n"
             "31 21 259:1 /models /srv/models rw - ext4 /dev/nvme1n1 rw\n"
             "32 21 259:3 / /var/lib/kubelet/pods/x rw - ext4 /dev/nvme3n1 rw\n");
  const Imported imported = import();
  ASSERT_EQ(parsed(imported).volumes.size(), 1u) << imported.yaml;
  EXPECT_NE(imported.yaml.find("make /srv/models a symbolic link"), std::string::npos) << imported.yaml;
  EXPECT_NE(imported.yaml.find("another program mounted it in /var/lib/kubelet"), std::string::npos);
  EXPECT_EQ(imported.yaml.find("#   umount /srv"), std::string::npos) << imported.yaml;
}

// At the next boot they would come before the volume, and one without `nofail` would stop the boot.
TEST_F(ImportOfSetups, LinesThatNeedAVolumeAreNamed) {
  test::set_up_by_hand(host);
  host.write("etc/fstab",
             "UUID=2f7c3a52-6f0e-4c55-9a55-0d4a6c1de5b7 /mnt/a ext4 _netdev 0 0\n"
             "/mnt/a/disk.img /mnt/img ext4 loop,ro 0 0\n"
             "overlay /srv/merged overlay lowerdir=/srv/b:/mnt/a/base,upperdir=/var/u,workdir=/var/w 0 0\n"
             "/mnt/a:/mnt/b /mnt/pool fuse.mergerfs allow_other 0 0\n"
             "tmpfs /mnt/a/cache tmpfs size=1G 0 0\n"
             "me@nas:/mnt/a /mnt/far fuse.sshfs _netdev 0 0\n"
             "/mnt/a/two.img /mnt/later ext4 loop,noauto 0 0\n"
             "/mnt/a/three.img /mnt/asked ext4 loop,x-systemd.automount 0 0\n"
             "/mnt/a/four.img /mnt/patient ext4 loop,nofail,x-systemd.automount 0 0\n"
             "tmpfs /mnt/a/auto tmpfs nofail,x-systemd.automount 0 0\n"
             "/mnt/a/folder /srv/folder none bind,nofail,x-systemd.automount 0 0\n"
             "/mnt/a/five /srv/never none bind,noauto,x-systemd.automount 0 0\n"
             "UUID=7f3b60f2-90d1-4dbf-a0cf-2b8f5d70f1aa /mnt/a/sub ext4 _netdev 0 0\n"
             "tmpfs /mnt/ab tmpfs size=1G 0 0");
  host.write("proc/self/mountinfo", "21 1 259:9 / / rw - ext4 /dev/nvme0n1p2 rw\n");
  const Imported imported = import();
  ASSERT_EQ(parsed(imported).volumes.size(), 1u) << imported.yaml;
  std::vector<std::string> needing;
  for (const Item& item : imported.items) {
    if (item.needs_volume) needing.push_back(item.where);
    EXPECT_FALSE(item.needs_volume && item.is_taken()) << item.where;
  }
  // An automount is made at boot as well: only an image waits for the first access.
  EXPECT_EQ(needing, (std::vector<std::string>{"/mnt/a/sub", "/mnt/img", "/srv/merged", "/mnt/pool",
                                               "/mnt/a/cache", "/mnt/asked", "/mnt/a/auto", "/srv/folder"}));
  EXPECT_NE(imported.yaml.find("/mnt/a/disk.img lies on volume a, which is mounted later than fstab"),
            std::string::npos)
      << imported.yaml;
  EXPECT_NE(imported.yaml.find("spark-stage wait a"), std::string::npos);
}

TEST_F(ImportOfSetups, MountUnitsThatNeedAVolumeAreNamed) {
  test::set_up_by_hand(host);
  host.write("etc/fstab", "UUID=2f7c3a52-6f0e-4c55-9a55-0d4a6c1de5b7 /mnt/a ext4 _netdev 0 0");
  host.write("proc/self/mountinfo", "21 1 259:9 / / rw - ext4 /dev/nvme0n1p2 rw\n");
  const std::string folder = "etc/systemd/system/";
  const auto unit = [&](const std::string& name, const std::string& settings, const std::string& wanted) {
    host.write(folder + name, "[Mount]\n" + settings);
    std::filesystem::create_directories(host.root() / (folder + wanted));
    if (!wanted.empty())
      std::filesystem::create_symlink("../" + name, host.root() / (folder + wanted + "/" + name));
  };
  const std::string at_boot = "local-fs.target.wants";
  unit("mnt-img.mount", "What=/mnt/a/disk.img\nWhere=/mnt/img\nOptions=loop", at_boot);
  unit("mnt-a-sub.mount", "What=tmpfs\nWhere=/mnt/a/sub\nType=tmpfs", "");
  unit("mnt-a-sub.automount", "Where=/mnt/a/sub", at_boot);
  unit("srv-folder.mount", "What=/mnt/a/folder\nWhere=/srv/folder\nOptions=bind", at_boot);
  unit("mnt-asked.mount", "What=/mnt/a/two.img\nWhere=/mnt/asked\nOptions=loop", "");
  unit("mnt-ab.mount", "What=tmpfs\nWhere=/mnt/ab\nType=tmpfs", at_boot);
  const Imported imported = import();
  ASSERT_EQ(parsed(imported).volumes.size(), 1u) << imported.yaml;
  std::vector<std::string> needing;
  for (const Item& item : imported.items) {
    if (item.needs_volume) needing.push_back(item.where);
  }
  EXPECT_EQ(needing, (std::vector<std::string>{"/mnt/a/sub", "/mnt/img", "/srv/folder"}));
  EXPECT_NE(
      imported.yaml.find("# Not taken over from /etc/systemd/system/mnt-img.mount: /mnt/a/disk.img lies on "
                         "volume a, which is mounted later than the unit: disable the unit"),
      std::string::npos)
      << imported.yaml;
  EXPECT_EQ(imported.yaml.find("systemctl disable mnt-"), std::string::npos) << imported.yaml;
}

TEST_F(ImportOfSetups, AMountUnitIsTakenOverWithItsAutomount) {
  test::set_up_by_hand(host);
  host.write("etc/fstab", "");
  const std::string folder = "etc/systemd/system/";
  host.write(folder + "mnt-rosa\\x2dstorage.mount",
             "[Mount]\nWhat=/dev/nvme1n1\nWhere=/mnt/rosa-storage\nType=ext4\nOptions=noatime");
  host.write(folder + "mnt-rosa\\x2dstorage.automount", "[Automount]\nWhere=/mnt/rosa-storage");
  host.write(folder + "srv.mount", "[Mount]\nWhat=/dev/sdb1\nWhere=/srv\nType=ext4");
  const Imported imported = import();
  const config::Config config = parsed(imported);
  ASSERT_EQ(config.volumes.size(), 2u) << imported.yaml;
  EXPECT_EQ(config.volumes[0].options, std::vector<std::string>{"noatime"});
  for (const char* ending : {"mount", "automount"}) {
    EXPECT_NE(imported.yaml.find(std::string("systemctl disable 'mnt-rosa\\x2dstorage.") + ending + "'"),
              std::string::npos)
        << imported.yaml;
  }
  EXPECT_NE(imported.yaml.find("systemctl stop 'mnt-rosa\\x2dstorage.automount'"), std::string::npos);
  EXPECT_EQ(imported.yaml.find("srv.mount"), std::string::npos) << imported.yaml;
}

TEST_F(ImportOfSetups, ScriptsThatConnectAreNamedAndAnEmptyStacdConfIsNot) {
  host.write("etc/systemd/system/c.service", "[Service]\nExecStart=-/bin/sh /opt/connect.sh");
  host.write("opt/connect.sh", "#!/bin/sh\nnvme connect -t tcp -a 192.0.2.8 -n a");
  host.write("etc/rc.local", "#!/bin/sh\nnvme connect-all");
  host.write("etc/crontab", "# @reboot root nvme connect-all");
  host.write("etc/cron.d/nvme", "@reboot root /usr/sbin/nvme connect -t tcp -a 192.0.2.8 -n a");
  host.write("etc/stas/stacd.conf",
             "[Controllers]\n# controller = transport=tcp;traddr=192.0.2.7\n#controller=");
  const std::string yaml = import().yaml;
  EXPECT_NE(yaml.find("# Not read: /opt/connect.sh of c.service"), std::string::npos) << yaml;
  EXPECT_NE(yaml.find("# Not read: /etc/rc.local"), std::string::npos) << yaml;
  EXPECT_NE(yaml.find("# Not read: /etc/cron.d/nvme, a table of cron"), std::string::npos) << yaml;
  EXPECT_EQ(yaml.find("/etc/crontab"), std::string::npos) << yaml;
  EXPECT_EQ(yaml.find("stacd.conf"), std::string::npos) << yaml;
}

TEST_F(ImportOfSetups, ALabelMayHaveBlanks) {
  test::set_up_by_hand(host);
  host.write("etc/fstab", "LABEL=My\\040Data /mnt/rosa-storage ext4 _netdev 0 0");
  std::filesystem::create_directories(host.root() / "dev/disk/by-label");
  std::filesystem::create_symlink("../../nvme1n1", host.root() / "dev/disk/by-label/My\\x20Data");
  EXPECT_EQ(parsed(import()).volumes.front().mount, "/mnt/rosa-storage");
}

TEST_F(ImportOfSetups, AUnitFileThatIsALinkIsALinkAgain) {
  const auto unit = host.root() / "etc/systemd/system/n.service";
  const auto kept = host.root() / "var/lib/spark-stage/before-import/etc/systemd/system/n.service";
  std::filesystem::create_directories(kept.parent_path());
  std::filesystem::create_symlink("../../../opt/n.service", kept);
  const auto undone = undo_import(host.root());
  ASSERT_TRUE(undone) << undone.error().message();
  EXPECT_EQ(std::filesystem::read_symlink(unit), "../../../opt/n.service");
}

}  // namespace
}  // namespace spark::host
