#include "migration/import.hpp"

#include <gtest/gtest.h>

#include "daemon/config/parse.hpp"
#include "tests/support/host_by_hand.hpp"

namespace spark::host {
namespace {

class Import : public ::testing::Test {
 protected:
  Imported import() { return import_configuration(host.root(), survey(host.root()), WallTime{}); }

  config::Config parsed(const Imported& imported) {
    const auto config = config::parse(imported.yaml, "imported.yaml");
    EXPECT_TRUE(config) << config.error().message() << "\n" << imported.yaml;
    return config.value_or(config::Config());
  }

  test::FakeSysfs host;
};

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
  EXPECT_NE(yaml.find("#   umount /mnt/rosa-storage\n"), std::string::npos) << yaml;
  EXPECT_NE(yaml.find("#   sed -i '2s/^/#/; 3s/^/#/; 4s/^/#/' /etc/fstab\n"), std::string::npos) << yaml;
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
             "/dev/nvme1n1 /mnt/a btrfs _netdev 0 0\n"
             "/dev/nvme3n1 /usr/models ext4 _netdev,user 0 0");
  host.write("proc/self/mountinfo", "21 1 259:9 / / rw - ext4 /dev/nvme0n1p2 rw");
  const Imported imported = import();
  EXPECT_TRUE(parsed(imported).volumes.empty());
  EXPECT_EQ(imported.left_out, 2u) << imported.yaml;
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

TEST_F(Import, ImportsAMountThatIsNotInFstab) {
  test::set_up_by_hand(host);
  host.write("etc/fstab", "");
  const config::Config config = parsed(import());
  ASSERT_EQ(config.volumes.size(), 2u);
  EXPECT_EQ(config.volumes[0].mount, "/mnt/rosa-storage");
}

}  // namespace
}  // namespace spark::host
