// What a move must not lose: connections that nothing replaces, protection, settings.
#include <gtest/gtest.h>

#include "tests/unit/migration/import_fixture.hpp"

namespace spark::host {
namespace {

const std::string kUnits = "etc/systemd/system/";

// nvme1n1 is raid5-data and nvme3n1 llm-models, both at 192.168.0.100, mounted, in fstab.
class ImportKeeps : public ImportFixture {
 protected:
  ImportKeeps() {
    test::set_up_by_hand(host);
    std::filesystem::remove(host.root() / (kUnits + "nvme-rosa-connect.service"));
  }

  void unit(const std::string& name, const std::string& commands) {
    host.write(kUnits + name, "[Service]\nType=oneshot\n" + commands);
  }

  static bool moves(const Imported& imported, const std::string& unit) {
    return imported.yaml.find("systemctl disable " + unit) != std::string::npos;
  }

  static bool says(const Imported& imported, const std::string& words) {
    return imported.yaml.find(words) != std::string::npos;
  }
};

TEST_F(ImportKeeps, AConnectAllGivesWayWhereAllThatItsFilesListIsTakenOver) {
  unit("all.service", "ExecStart=/usr/sbin/nvme connect-all");
  host.write("etc/nvme/discovery.conf", "--transport=tcp --traddr=192.168.0.100 --trsvcid=8009");
  EXPECT_TRUE(moves(import(), "all.service")) << import().yaml;
}

TEST_F(ImportKeeps, AConnectAllStaysForAnArrayOverRdma) {
  unit("all.service", "ExecStart=/usr/sbin/nvme connect-all");
  host.write("etc/nvme/discovery.conf",
             "--transport=tcp --traddr=192.168.0.100\n--transport=rdma --traddr=10.0.0.7");
  const Imported imported = import();
  EXPECT_FALSE(moves(imported, "all.service")) << imported.yaml;
  EXPECT_TRUE(says(imported, "it connects 10.0.0.7")) << imported.yaml;
}

TEST_F(ImportKeeps, AConnectAllStaysForAnArrayThatIsAway) {
  unit("all.service", "ExecStart=/usr/sbin/nvme connect-all");
  host.write("etc/nvme/discovery.conf",
             "--transport=tcp --traddr=192.168.0.100\n--transport=tcp --traddr=10.0.0.9");
  EXPECT_FALSE(moves(import(), "all.service")) << import().yaml;
}

TEST_F(ImportKeeps, AConnectAllStaysForASubsystemOfConfigJsonThatIsAway) {
  unit("all.service", "ExecStart=/usr/sbin/nvme connect-all");
  host.write("etc/nvme/config.json", R"([{"subsystems": [{"nqn": "away", "ports": [
      {"transport": "tcp", "traddr": "192.168.0.100"}]}]}])");
  EXPECT_FALSE(moves(import(), "all.service")) << import().yaml;
}

TEST_F(ImportKeeps, AConnectAllStaysThatReadsAnotherFile) {
  unit("all.service", "ExecStart=/usr/sbin/nvme connect-all -J /etc/nvme/other.json");
  unit("boot.service", "ExecStart=/usr/sbin/nvme connect-all --nbft");
  EXPECT_FALSE(moves(import(), "all.service")) << import().yaml;
  EXPECT_FALSE(moves(import(), "boot.service")) << import().yaml;
}

TEST_F(ImportKeeps, AConnectAllWithAnAddressThatIsAwayStaysAndItsTargetKeepsItsProtection) {
  unit("one.service", "ExecStart=/usr/sbin/nvme connect-all -t tcp -a 192.168.0.100");
  unit("two.service", "ExecStart=/usr/sbin/nvme connect-all -t tcp -a 10.0.0.9 -S DHHC-1:00:geheim:");
  const Imported imported = import();
  const config::Config config = parsed(imported);
  EXPECT_TRUE(moves(imported, "one.service")) << imported.yaml;
  EXPECT_FALSE(moves(imported, "two.service")) << imported.yaml;
  ASSERT_EQ(config.targets.size(), 2u) << imported.yaml;
  EXPECT_EQ(config.targets.at("target-2").portals.front().address, "10.0.0.9");
  EXPECT_EQ(config.targets.at("target-2").options.host_key_file, "/etc/spark-stage/keys/host-2");
  EXPECT_FALSE(says(imported, "geheim")) << imported.yaml;
}

TEST_F(ImportKeeps, AUnitStaysForALineThatIsNotTakenOver) {
  unit("c.service", "ExecStart=nvme connect -t tcp -a 192.168.0.100 -n raid5-data");
  unit("d.service", "ExecStart=nvme connect -t tcp -a 192.168.0.100 -n llm-models");
  host.add_node("nvme1", "nvme1n2", 2);
  host.write("sys/class/block/nvme1n2p1/size", "1000");
  host.write("etc/fstab",
             "/dev/nvme1n1 /mnt/rosa-storage ext4 _netdev 0 0\n/dev/nvme1n2p1 /mnt/p ext4 _netdev 0 0");
  const Imported imported = import();
  EXPECT_FALSE(moves(imported, "c.service")) << imported.yaml;
  EXPECT_TRUE(moves(imported, "d.service")) << imported.yaml;
}

TEST_F(ImportKeeps, CommandsOfAShellThatRunAtTheSameTimeAreSeveral) {
  for (const char* script : {"nvme connect -t tcp -a 192.168.0.100 -n raid5-data & nvme connect -t tcp -a "
                             "192.168.0.100 -n llm-models & wait",
                             "nvme connect -t tcp -a 192.168.0.100 -n raid5-data& nvme connect -t tcp -a "
                             "192.168.0.100 -n llm-models&"}) {
    const ConnectUnit unit = parse_unit("[Service]\nExecStart=/bin/sh -c \"" + std::string(script) + "\"");
    ASSERT_EQ(unit.connections.size(), 2u) << script;
    EXPECT_EQ(unit.connections[0].subsystem, "raid5-data");
    EXPECT_EQ(unit.connections[1].subsystem, "llm-models");
    EXPECT_TRUE(unit.connections[0].unknown.empty()) << script;
  }
}

TEST_F(ImportKeeps, AUnitWhoseCommandIsNotUnderstoodStays) {
  unit("c.service",
       "ExecStart=/bin/sh -c \"nvme connect -t tcp -a 192.168.0.100 -n raid5-data %% nvme connect -t tcp -a "
       "10.0.0.9\"");
  EXPECT_FALSE(moves(import(), "c.service")) << import().yaml;
}

// Each kind of difference at one address, which would otherwise be one target.
TEST_F(ImportKeeps, DigestsAndTheSettingsOfEachSubsystem) {
  unit("c.service",
       "ExecStart=nvme connect -t tcp -a 192.168.0.100 -n raid5-data\n"
       "ExecStart=nvme connect -t tcp -a 192.168.0.100 -n llm-models -gG -i 8 -l -1");
  const Imported imported = import();
  const config::Config config = parsed(imported);
  ASSERT_EQ(config.targets.size(), 2u) << imported.yaml;
  const auto& options = config.targets.at(config.volumes[1].nvme->target).options;
  EXPECT_TRUE(options.header_digest) << imported.yaml;
  EXPECT_TRUE(options.data_digest) << imported.yaml;
  EXPECT_EQ(options.io_queues, 8u);
  EXPECT_EQ(options.controller_loss, std::nullopt);
  EXPECT_FALSE(config.targets.at(config.volumes[0].nvme->target).options.data_digest);
}

TEST_F(ImportKeeps, DigestsOfASecondPathAndNamesItsOtherSettings) {
  unit("c.service",
       "ExecStart=nvme connect -t tcp -a 192.168.0.100 -n raid5-data -l 600\n"
       "ExecStart=nvme connect -t tcp -a 192.168.1.100 -n raid5-data -G -l -1 -i 8");
  const Imported imported = import();
  const config::Config config = parsed(imported);
  const auto& options = config.targets.at(config.volumes[0].nvme->target).options;
  EXPECT_TRUE(options.data_digest) << imported.yaml;
  EXPECT_EQ(options.io_queues, 8u);
  EXPECT_EQ(options.controller_loss, std::chrono::seconds(600));
  EXPECT_TRUE(says(imported, "left out: --ctrl-loss-tmo -1 of another path")) << imported.yaml;
}

TEST_F(ImportKeeps, DigestsOfAConnectAllForWhatItConnected) {
  unit("one.service", "ExecStart=nvme connect-all -t tcp -a 192.168.0.100 -G -l -1");
  const Imported imported = import();
  const config::Config config = parsed(imported);
  ASSERT_EQ(config.targets.size(), 1u) << imported.yaml;
  EXPECT_TRUE(config.targets.at(config.volumes[0].nvme->target).options.data_digest) << imported.yaml;
}

TEST_F(ImportKeeps, TheKeysOfRunningConnectionsApart) {
  unit("c.service", "ExecStart=nvme connect -t tcp -a 192.168.0.100 -n raid5-data -S DHHC-1:00:geheim1:");
  host.write("sys/class/nvme/nvme1/dhchap_secret", "DHHC-1:00:geheim1:");
  host.write("sys/class/nvme/nvme3/dhchap_secret", "DHHC-1:00:geheim2:");
  const Imported imported = import();
  const config::Config config = parsed(imported);
  ASSERT_EQ(config.targets.size(), 2u) << imported.yaml;
  EXPECT_NE(config.volumes[0].nvme->target, config.volumes[1].nvme->target);
  EXPECT_FALSE(says(imported, "geheim")) << imported.yaml;
}

TEST_F(ImportKeeps, AKeyInTheWrongPlaceSecret) {
  const std::string key = "DHHC-1:00:geheim:", psk = "NVMeTLSkey-1:01:geheim:";
  host.write("etc/nvme/discovery.conf", "-t tcp -a " + key + " -n x\n-t tcp -a 10.0.0.6 -q " + key +
                                            " -n y\n-t tcp -a 10.0.0.8 -k " + key + " -n z -f " + psk +
                                            "\n-t " + key + " -a 10.0.0.5\n-t tcp -a 10.0.0.4 -s " + key +
                                            " -n " + psk);
  host.write("etc/nvme/config.json",
             "[{\"subsystems\": [{\"nqn\": \"" + psk +
                 "\", \"ports\": [{\"transport\": \"tcp\", \"traddr\": \"10.0.0.5\"}]}]}]");
  const Imported imported = import();
  EXPECT_FALSE(says(imported, "geheim")) << imported.yaml;
  for (const Item& item : imported.items)
    EXPECT_EQ((item.where + item.reason).find("geheim"), std::string::npos);
}

TEST_F(ImportKeeps, AUnitThatDoesMoreStays) {
  const std::string connect = "ExecStart=nvme connect -t tcp -a 192.168.0.100 -n raid5-data\n";
  unit("a.service", "ExecStartPre=/sbin/ip link set eth1 mtu 9000\n" + connect);
  unit("b.service", connect + "ExecStartPost=/bin/mount /mnt/other");
  unit("c.service", "ExecStart=/bin/sh -c 'nvme connect -t tcp -a 192.168.0.100 -n raid5-data; mount -a'");
  unit("d.service", "ExecStartPre=/bin/sh -c 'ip link set eth1 mtu 9000'\n" + connect);
  unit("e.service", "ExecStartPre=/sbin/modprobe nvme-tcp\n" + connect +
                        "ExecStartPost=/bin/sh -c 'sleep 5; mount /mnt/rosa-storage'");
  const Imported imported = import();
  for (const char* name : {"a.service", "b.service", "c.service", "d.service"})
    EXPECT_FALSE(moves(imported, name)) << name << "\n" << imported.yaml;
  EXPECT_TRUE(moves(imported, "e.service")) << imported.yaml;
  EXPECT_TRUE(says(imported, "it also runs `/sbin/ip link set eth1 mtu 9000`")) << imported.yaml;
}

TEST_F(ImportKeeps, ACommandBehindAWordOfAShellIsMore) {
  const std::string connect = "ExecStart=nvme connect -t tcp -a 192.168.0.100 -n raid5-data\n";
  for (const char* more :
       {"/bin/sh /usr/local/sbin/tune.sh", "/bin/bash -e /opt/tune.sh",
        "/bin/sh -c 'echo 4096 > /sys/block/nvme1n1/queue/read_ahead_kb'",
        "/usr/bin/timeout 30 /bin/mount /srv/x", "/usr/bin/timeout -k 5 30 mount /srv/x",
        "/usr/bin/env LANG=C systemctl start training", "/bin/sh -c 'if mount /srv/x; then echo yes; fi'",
        "/bin/sh -c '{ mount /srv/x; }'", "/bin/sh -c '! mount /srv/x'", "/bin/sh -c 'A=1 exec mount /srv/x'",
        "/bin/sh -c 'until mount /srv/x; do sleep 1; done'", "/bin/sh -c 'nvme list 2>&1; mount /srv/x'",
        "/bin/sh -c 'nvme list >/dev/null 2>&1&& mount /srv/x'",
        "/bin/sh -c 'nvme list &>/dev/null|| mount /srv/x'", "/usr/sbin/nvme set-feature /dev/nvme1 -f 2"}) {
    unit("c.service", connect + "ExecStartPost=" + more);
    EXPECT_FALSE(moves(import(), "c.service")) << more;
  }
  for (const char* idle :
       {"/bin/sh -c 'for i in 1 2; do nvme list >/dev/null 2>&1 && exit 0; sleep 1; done; exit 1'",
        "/usr/bin/timeout 30 /bin/sh -c 'until ping -c 1 192.168.0.100; do sleep 1; done'",
        "/bin/sh -c 'if ! nvme list | grep -q raid5; then nvme disconnect -n raid5-data; fi'"}) {
    unit("c.service", connect + "ExecStartPost=" + idle);
    EXPECT_TRUE(moves(import(), "c.service")) << idle << import().yaml;
  }
}

TEST_F(ImportKeeps, ADropInOfAUnitIsAPartOfIt) {
  const std::string connect = "nvme connect -t tcp -a 192.168.0.100 -n ", drop_in = "c.service.d/more.conf";
  unit("c.service", "ExecStart=" + connect + "raid5-data");
  host.write(kUnits + drop_in, "[Service]\nExecStart=" + connect + "llm-models");
  EXPECT_TRUE(moves(import(), "c.service")) << import().yaml;
  host.write(kUnits + drop_in, "[Service]\nExecStart=" + connect + "other");
  EXPECT_FALSE(moves(import(), "c.service")) << import().yaml;
  host.write(kUnits + drop_in, "[Service]\nExecStartPost=/usr/local/bin/tune");
  EXPECT_FALSE(moves(import(), "c.service")) << import().yaml;
  // It replaces the command of the unit.
  unit("c.service", "ExecStart=/usr/local/bin/old-way\nExecStart=" + connect + "other");
  host.write(kUnits + drop_in, "[Service]\nExecStart=\nExecStart=" + connect + "llm-models");
  EXPECT_TRUE(moves(import(), "c.service")) << import().yaml;
}

TEST_F(ImportKeeps, AUnitThatAnotherOneNeedsStays) {
  unit("c.service", "ExecStart=nvme connect -t tcp -a 192.168.0.100 -n raid5-data");
  host.write(kUnits + "docker.service.d/order.conf",
             "[Unit]\nRequires=network.target c.service\nAfter=c.service");
  const Imported imported = import();
  EXPECT_FALSE(moves(imported, "c.service")) << imported.yaml;
  EXPECT_TRUE(says(imported, "/etc/systemd/system/docker.service.d/order.conf needs it")) << imported.yaml;
}

TEST_F(ImportKeeps, AUnitThatATimerStartsStays) {
  unit("c.service", "ExecStart=nvme connect -t tcp -a 192.168.0.100 -n raid5-data");
  host.write(kUnits + "other.timer", "[Timer]\nOnBootSec=10");
  EXPECT_TRUE(moves(import(), "c.service")) << import().yaml;
  host.write(kUnits + "c.timer", "[Timer]\nOnBootSec=10");
  EXPECT_FALSE(moves(import(), "c.service")) << import().yaml;
  std::filesystem::remove(host.root() / (kUnits + "c.timer"));
  host.write(kUnits + "other.timer", "[Timer]\nOnBootSec=10\nUnit=c.service");
  EXPECT_FALSE(moves(import(), "c.service")) << import().yaml;
}

TEST_F(ImportKeeps, AUnitThatALineOfFstabRequiresStaysAsLongAsTheLine) {
  unit("c.service", "ExecStart=nvme connect -t tcp -a 192.168.0.100 -n raid5-data");
  const std::string taken =
      "/dev/nvme1n1 /mnt/rosa-storage ext4 ro,_netdev,x-systemd.requires=c.service 0 0\n";
  host.write("etc/fstab", taken);
  EXPECT_TRUE(moves(import(), "c.service")) << import().yaml;
  host.write("etc/fstab", taken + "/dev/sdb1 /scratch ext4 nofail,x-systemd.requires=c.service 0 0");
  const Imported imported = import();
  EXPECT_FALSE(moves(imported, "c.service")) << imported.yaml;
  EXPECT_TRUE(says(imported, "line 2 of /etc/fstab needs it")) << imported.yaml;
}

}  // namespace
}  // namespace spark::host
