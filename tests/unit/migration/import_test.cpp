#include "migration/import.hpp"

#include <gtest/gtest.h>

#include "migration/undo.hpp"
#include "tests/unit/migration/import_fixture.hpp"

namespace spark::host {
namespace {

class Import : public ImportFixture {};

TEST_F(Import, AManualSetupIsImportedWithTheIdentityOfEachVolume) {
  test::set_up_by_hand(host);
  const Imported imported = import();
  const config::Config config = parsed(imported);
  ASSERT_EQ(config.targets.size(), 1u) << imported.yaml;
  EXPECT_EQ(config.targets.begin()->second.portals.front().address, "192.168.0.100");
  ASSERT_EQ(config.volumes.size(), 3u) << imported.yaml;
  const config::Volume& storage = config.volumes[0];
  EXPECT_EQ(storage.name, "rosa-storage");
  EXPECT_EQ(storage.mount, "/mnt/rosa-storage");
  EXPECT_EQ(storage.nvme->subsystem, "raid5-data");
  EXPECT_EQ(storage.nvme->filesystem_uuid, "2f7c3a52-6f0e-4c55-9a55-0d4a6c1de5b7");
  EXPECT_EQ(storage.access, config::Access::ReadOnly);
  EXPECT_EQ(storage.options, std::vector<std::string>{"noatime"});
  EXPECT_EQ(config.volumes[1].nvme->subsystem, "llm-models");
  EXPECT_EQ(config.volumes[2].nfs->path, "/data/shared");
  EXPECT_EQ(config.volumes[2].access, config::Access::Exclusive);
  EXPECT_EQ(imported.left_out, 0u);
}

TEST_F(Import, SaysHowToMoveWithoutDisconnecting) {
  test::set_up_by_hand(host);
  const std::string yaml = import().yaml;
  EXPECT_NE(yaml.find("#   findmnt -M /mnt/rosa-storage >/dev/null && umount /mnt/rosa-storage\n"),
            std::string::npos)
      << yaml;
  EXPECT_NE(
      yaml.find(
          "#   sed -i -e 's|^/dev/nvme1n1 /mnt/rosa-storage ext4 defaults,noatime,_netdev 0 2$|#&|' -e "),
      std::string::npos)
      << yaml;
  EXPECT_NE(yaml.find("systemctl disable nvme-rosa-connect.service"), std::string::npos) << yaml;
  EXPECT_EQ(yaml.find("systemctl stop"), std::string::npos) << yaml;
  EXPECT_EQ(yaml.find("disable --now"), std::string::npos) << yaml;
}

TEST_F(Import, AnEmptyHostGivesAValidConfiguration) {
  const Imported imported = import();
  EXPECT_TRUE(parsed(imported).volumes.empty());
  EXPECT_EQ(imported.targets + imported.volumes + imported.left_out, 0u);
}

TEST_F(Import, LeavesOutUnconnectedDevicesWithTheReason) {
  host.write("etc/fstab",
             "/dev/nvme3n1 /mnt/a ext4 _netdev 0 2\n//nas/b /mnt/b cifs _netdev,password=geheim 0 0");
  const Imported imported = import();
  EXPECT_TRUE(parsed(imported).volumes.empty());
  EXPECT_EQ(imported.left_out, 1u);
  EXPECT_NE(imported.yaml.find("# Not taken over: line 1 of /etc/fstab"), std::string::npos) << imported.yaml;
  EXPECT_EQ(imported.yaml.find("geheim"), std::string::npos) << imported.yaml;
}

TEST_F(Import, LeavesOutInvalidVolumesWithTheReason) {
  test::set_up_by_hand(host);
  host.write("etc/fstab",
             "UUID=2f7c3a52-6f0e-4c55-9a55-0d4a6c1de5b7 /mnt/a btrfs _netdev 0 0\n"
             "UUID=7f3b60f2-90d1-4dbf-a0cf-2b8f5d70f1aa /usr/models ext4 _netdev,user 0 0");
  host.write("proc/self/mountinfo", "21 1 259:9 / / rw - ext4 /dev/nvme0n1p2 rw");
  const Imported imported = import();
  EXPECT_TRUE(parsed(imported).volumes.empty());
  EXPECT_EQ(imported.left_out, 3u) << "two lines, and the unit that connects them: " << imported.yaml;
  EXPECT_NE(imported.yaml.find("btrfs"), std::string::npos) << imported.yaml;
  EXPECT_NE(imported.yaml.find("belongs to the system"), std::string::npos) << imported.yaml;
}

TEST_F(Import, AnInvalidTargetStillGivesAValidConfiguration) {
  host.write("etc/systemd/system/c.service",
             "[Service]\nExecStart=nvme connect -t tcp -n a -a 'no such address'");
  const Imported imported = import();
  EXPECT_TRUE(parsed(imported).targets.empty()) << imported.yaml;
  EXPECT_NE(imported.yaml.find("# Not taken over"), std::string::npos) << imported.yaml;
}

TEST_F(Import, ImportsSettingsAndNamesUnsupportedOnes) {
  test::set_up_by_hand(host);
  host.write(
      "etc/systemd/system/nvme-rosa-connect.service",
      "[Service]\nExecStart=nvme connect -t tcp -n raid5-data -a 192.168.0.100 -s 4420 -i 4 -l -1 -k 10 "
      "--host-iface=eth1 --queue-size=64 -G");
  const Imported imported = import();
  const config::Target target = parsed(imported).targets.begin()->second;
  EXPECT_EQ(target.options.io_queues, 4u);
  EXPECT_EQ(target.options.interface, "eth1");
  EXPECT_EQ(target.options.keep_alive, std::chrono::seconds(10));
  EXPECT_EQ(target.options.controller_loss, std::nullopt);
  EXPECT_TRUE(target.options.data_digest);
  EXPECT_NE(imported.yaml.find("no such setting: --queue-size 64"), std::string::npos) << imported.yaml;
}

TEST_F(Import, AProtectedConnectionStaysProtectedAndItsKeyIsNotShown) {
  host.write("etc/nvme/config.json",
             R"([{"subsystems": [{"nqn": "a", "ports": [{"transport": "tcp", "traddr": "10.0.0.5",
                 "dhchap_key": "x", "dhchap_secret": "DHHC-1:00:geheim:", "tls": true}]}]}])");
  const Imported imported = import();
  const config::Config config = parsed(imported);
  ASSERT_EQ(config.targets.size(), 1u) << imported.yaml;
  EXPECT_EQ(config.targets.begin()->second.options.host_key_file, "/etc/spark-stage/keys/host");
  EXPECT_EQ(config.targets.begin()->second.options.tls_psk_file, "/etc/spark-stage/keys/psk");
  EXPECT_EQ(imported.yaml.find("geheim"), std::string::npos) << imported.yaml;
}

TEST_F(Import, TwoPathsToOneSubsystemBecomeOneTarget) {
  host.write("etc/systemd/system/c.service",
             "[Service]\nExecStart=nvme connect -t tcp -n a -a 10.0.0.5\nExecStart=nvme connect -t tcp -n a "
             "-a fd00::5");
  const config::Config config = parsed(import());
  ASSERT_EQ(config.targets.size(), 1u);
  ASSERT_EQ(config.targets.begin()->second.portals.size(), 2u);
  EXPECT_EQ(config.targets.begin()->second.portals[1].address, "fd00::5");
}

TEST_F(Import, NamesOtherTransportsAndUnreadableFiles) {
  host.write("etc/nvme/discovery.conf", "--transport=rdma --traddr=10.0.0.7");
  host.write("etc/nvme/config.json", "{");
  const Imported imported = import();
  parsed(imported);
  EXPECT_NE(imported.yaml.find("over rdma to 10.0.0.7"), std::string::npos) << imported.yaml;
  EXPECT_NE(imported.yaml.find("# Not read: /etc/nvme/config.json"), std::string::npos) << imported.yaml;
}

// What was not taken over keeps its mount, its line and its connection.
TEST_F(Import, TheStepsConcernOnlyWhatWasTakenOver) {
  test::set_up_by_hand(host);
  host.write("etc/fstab",
             "UUID=2f7c3a52-6f0e-4c55-9a55-0d4a6c1de5b7 /mnt/rosa-storage btrfs _netdev 0 0\n"
             "/dev/nvme3n1 /mnt/rosa-models ext4 _netdev 0 0\n"
             "nas1,nas2:/data /mnt/multi nfs ro,_netdev 0 0\n"
             "nas:/a /mnt/rosa-models/inside nfs ro,_netdev 0 0");
  const std::string yaml = import().yaml;
  const std::string steps = yaml.substr(yaml.find("# To move"));
  EXPECT_EQ(steps.find("rosa-storage"), std::string::npos) << yaml;
  EXPECT_NE(steps.find(" && umount /mnt/rosa-models\n"), std::string::npos) << yaml;
  EXPECT_NE(steps.find("#   sed -i -e 's|^/dev/nvme3n1 /mnt/rosa-models ext4 _netdev 0 0$|#&|' /etc/fstab\n"),
            std::string::npos)
      << yaml;
  EXPECT_EQ(steps.find("nvme-rosa-connect.service"), std::string::npos) << "it also connects raid5-data";
  EXPECT_NE(yaml.find("it connects raid5-data, which is not taken over as a whole"), std::string::npos)
      << yaml;
}

TEST_F(Import, AUnitThatAlsoConnectsOverRdmaStays) {
  test::set_up_by_hand(host);
  host.write("etc/systemd/system/both.service",
             "[Service]\nExecStart=nvme connect -t tcp -n raid5-data -a 192.168.0.100\n"
             "ExecStart=nvme connect -t rdma -n fast -a 192.168.0.100");
  const std::string yaml = import().yaml;
  EXPECT_EQ(yaml.find("disable both.service"), std::string::npos) << yaml;
  EXPECT_NE(yaml.find("disable nvme-rosa-connect.service"), std::string::npos) << yaml;
}

TEST_F(Import, ASlashAtTheEndOfAMountPointMeansNothing) {
  host.write("etc/fstab", "nas:/export /mnt/nas/ nfs4 defaults,_netdev 0 0");
  const config::Config config = parsed(import());
  ASSERT_EQ(config.volumes.size(), 1u);
  EXPECT_EQ(config.volumes[0].mount, "/mnt/nas");
}

TEST_F(Import, ASettingWithoutAnEquivalentCostsOnlyItself) {
  test::set_up_by_hand(host);
  host.write("etc/systemd/system/nvme-rosa-connect.service",
             "[Service]\nExecStart=nvme connect -t tcp -a 192.168.0.100 -n raid5-data --ctrl-loss-tmo=600 "
             "--fast_io_fail_tmo=-1 --keep-alive-tmo=0 --reconnect-delay=700 --host-iface='a b' -i four");
  const Imported imported = import();
  const config::Config config = parsed(imported);
  ASSERT_EQ(config.volumes.size(), 3u) << imported.yaml;
  const auto& options = config.targets.at(config.volumes[0].nvme->target).options;
  EXPECT_EQ(options.controller_loss, std::chrono::seconds(600));
  for (const char* detail :
       {"keep_alive: 0s - ", "reconnect_delay: 700s - ", "interface: \"a b\" - ", "io_queues: four - "})
    EXPECT_NE(imported.yaml.find("# left out: " + std::string(detail)), std::string::npos) << imported.yaml;
}

TEST_F(Import, AnUnclearAddressIsDecidedByTheRunningConnection) {
  test::set_up_by_hand(host);
  host.write("etc/systemd/system/nvme-rosa-connect.service",
             "[Service]\nExecStart=nvme connect -t tcp -a '$ADDRESS of it' -s '$PORT' -n raid5-data");
  const Imported imported = import();
  const config::Config config = parsed(imported);
  ASSERT_EQ(config.targets.size(), 1u) << imported.yaml;
  EXPECT_EQ(config.targets.begin()->second.portals.front().address, "192.168.0.100");
}

TEST_F(Import, KeysInConfigJsonAreRequiredAndNotShown) {
  host.write(
      "etc/nvme/config.json",
      R"([{"dhchap_key": "DHHC-1:00:geheim:", "subsystems": [{"nqn": "a", "ports": [{"transport": "tcp",
                 "traddr": "192.0.2.7", "dhchap_ctrl_key": "DHHC-1:00:geheim:", "colour": "DHHC-1:00:geheim:"}]}]}])");
  host.write("etc/systemd/system/c.service",
             "[Service]\nExecStart=nvme connect -t tcp -a 192.0.2.8 -n b --new-key=DHHC-1:00:geheim: "
             "DHHC-1:00:geheim:");
  const Imported imported = import();
  const config::Config config = parsed(imported);
  ASSERT_EQ(config.targets.size(), 2u) << imported.yaml;
  for (const auto& [name, target] : config.targets) {
    const bool is_json = target.portals.front().address == "192.0.2.7";
    EXPECT_EQ(target.options.host_key_file.empty(), !is_json);
    EXPECT_EQ(target.options.controller_key_file.empty(), !is_json);
  }
  EXPECT_EQ(imported.yaml.find("geheim"), std::string::npos) << imported.yaml;
}

TEST_F(Import, ARunningConnectionKeepsItsProtection) {
  test::set_up_by_hand(host);
  host.write("sys/class/nvme/nvme1/dhchap_secret", "DHHC-1:00:geheim:");
  host.write("sys/class/nvme/nvme3/dhchap_secret", "none");
  const Imported imported = import();
  const config::Config config = parsed(imported);
  ASSERT_FALSE(config.targets.empty()) << imported.yaml;
  for (const config::Volume& volume : config.volumes) {
    if (!volume.nvme) continue;
    const bool has_key = !config.targets.at(volume.nvme->target).options.host_key_file.empty();
    EXPECT_EQ(has_key, volume.nvme->subsystem == "raid5-data") << imported.yaml;
  }
  EXPECT_EQ(imported.yaml.find("geheim"), std::string::npos);
}

TEST_F(Import, AConnectionAsAnotherHostIsLeftOutAndNamed) {
  test::set_up_by_hand(host);
  host.write("etc/nvme/hostnqn", test::test_host().nqn);
  host.write("etc/systemd/system/nvme-rosa-connect.service",
             "[Service]\nExecStart=nvme connect -t tcp -a 192.168.0.100 -n raid5-data -q "
             "nqn.2005-10.org.example:spark-a");
  const Imported imported = import();
  const config::Config config = parsed(imported);
  EXPECT_NE(imported.yaml.find("it connects as host nqn.2005-10.org.example:spark-a"), std::string::npos)
      << imported.yaml;
  for (const config::Volume& volume : config.volumes)
    EXPECT_TRUE(!volume.nvme || volume.nvme->subsystem == "llm-models") << imported.yaml;
  EXPECT_EQ(imported.yaml.find("disable nvme-rosa-connect.service"), std::string::npos);
}

TEST_F(Import, TheStepsEndAnAutomount) {
  host.write("etc/fstab", "192.0.2.9:/export /mnt/my-nas/a.b nfs4 rw,_netdev,x-systemd.automount 0 0");
  const std::string yaml = import().yaml;
  EXPECT_NE(yaml.find("#   systemctl stop 'mnt-my\\x2dnas-a.b.automount'\n"), std::string::npos) << yaml;
}

TEST_F(Import, EachArrayOfADiscoveryConfIsATargetAndADiscoveryServiceIsNone) {
  host.write("etc/nvme/discovery.conf",
             "--transport=tcp --traddr=192.168.0.100 --trsvcid=4420\n"
             "--transport=tcp --traddr=192.168.0.101 --trsvcid=4420\n"
             "--transport=tcp --traddr=10.144.27.26 --trsvcid=8009\n");
  host.write("etc/nvme/config.json",
             R"([{"subsystems": [{"nqn": "nqn.2014-08.org.nvmexpress.discovery",
                 "ports": [{"transport": "tcp", "traddr": "192.0.2.7", "trsvcid": "4420"}]}]}])");
  const Imported imported = import();
  const config::Config config = parsed(imported);
  ASSERT_EQ(config.targets.size(), 2u) << imported.yaml;
  for (const auto& [name, target] : config.targets) EXPECT_EQ(target.portals.size(), 1u);
  for (const char* address : {"10.144.27.26", "192.0.2.7"}) {
    EXPECT_NE(imported.yaml.find(std::string(address) + " is a discovery service"), std::string::npos)
        << imported.yaml;
  }
}

TEST_F(Import, FilesOfOtherProgramsAreNamedAsNotRead) {
  host.write("etc/nvme/nvme-fabrics.conf", "[Subsystem]\nnqn = raid5-data");
  host.write("etc/stas/stacd.conf", "[Controllers]\ncontroller = transport=tcp;traddr=192.0.2.7");
  const std::string yaml = import().yaml;
  EXPECT_NE(yaml.find("# Not read: /etc/nvme/nvme-fabrics.conf"), std::string::npos) << yaml;
  EXPECT_NE(yaml.find("# Not read: /etc/stas/stacd.conf"), std::string::npos) << yaml;
}

TEST_F(Import, PartsOfANamespaceAndDevicesMadeOfSeveralAreNamed) {
  test::set_up_by_hand(host);
  host.write("sys/class/block/nvme1n1p1/size", "1000");
  host.write("sys/class/block/dm-3/slaves/nvme1n1p1/size", "1000");
  host.write("sys/class/block/dm-4/slaves/sda1/size", "1000");
  std::filesystem::create_directories(host.root() / "dev/mapper");
  std::filesystem::create_symlink("../dm-3", host.root() / "dev/mapper/vg-data");
  std::filesystem::create_symlink("../dm-4", host.root() / "dev/mapper/vg-home");
  host.write("etc/fstab",
             "/dev/nvme1n1p1 /mnt/part ext4 defaults 0 2\nPARTUUID=0f0f-01 /mnt/pu ext4 _netdev 0 0\n"
             "/dev/mapper/vg-data /mnt/lvm ext4 defaults 0 0\n/dev/mapper/vg-home /home ext4 defaults 0 0\n");
  const std::string yaml = import().yaml;
  for (const char* mount : {"/mnt/part", "/mnt/pu", "/mnt/lvm"})
    EXPECT_NE(yaml.find(std::string(mount) + " ext4"), std::string::npos) << mount << "\n" << yaml;
  EXPECT_EQ(yaml.find("/home"), std::string::npos) << yaml;
}

TEST_F(Import, AHostNameAndTheAddressOfItsConnectionAreOnePortal) {
  test::set_up_by_hand(host);
  host.write("etc/systemd/system/nvme-rosa-connect.service",
             "[Service]\nExecStart=nvme connect -t tcp -a rosa.lan -n raid5-data\n"
             "ExecStart=nvme connect -t tcp -a rosa.lan -n llm-models");
  const config::Config config = parsed(import());
  ASSERT_EQ(config.targets.size(), 1u);
  ASSERT_EQ(config.targets.begin()->second.portals.size(), 1u);
  EXPECT_EQ(config.targets.begin()->second.portals.front().address, "rosa.lan");
}

TEST_F(Import, IsUndoneFromTheCopiesThatTheStepsMade) {
  const std::string kept = "var/lib/spark-stage/before-import/";
  EXPECT_EQ(undo_import(host.root()).error().kind, Errc::NotFound);
  host.write(kept + "etc/fstab", "old");
  host.write(kept + "etc/systemd/system/n.service", "[Service]");
  host.write(kept + "etc/passwd", "never");
  host.write("etc/fstab", "#old\nadded later");
  const auto undone = undo_import(host.root());
  ASSERT_TRUE(undone) << undone.error().message();
  EXPECT_EQ(read_file(host.root() / "etc/fstab").value_or(""), "old\n");
  EXPECT_EQ(read_file(host.root() / "etc/fstab.before-undo").value_or(""), "#old\nadded later\n");
  EXPECT_EQ(read_file(host.root() / "etc/systemd/system/n.service").value_or(""), "[Service]\n");
  EXPECT_FALSE(std::filesystem::exists(host.root() / "etc/passwd"));
  EXPECT_EQ(undone->units, std::vector<std::string>{"n.service"});
  EXPECT_EQ(undo_import(host.root()).error().kind, Errc::NotFound) << "an old copy undoes no later move";
}

TEST_F(Import, ImportsAMountThatIsNotInFstab) {
  test::set_up_by_hand(host);
  host.write("etc/fstab", "");
  const config::Config config = parsed(import());
  ASSERT_EQ(config.volumes.size(), 2u);
  EXPECT_EQ(config.volumes[0].mount, "/mnt/rosa-storage");
}

}  // namespace
}  // namespace spark::host
