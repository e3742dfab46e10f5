// Connection settings from nvme-cli's options, units and files
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "migration/survey/connect_units.hpp"
#include "migration/survey/nvme_cli_files.hpp"
#include "tests/support/host_by_hand.hpp"

namespace spark::host {
namespace {

TEST(ConnectCommand, LongAndShortOptionsMeanTheSame) {
  const auto longer = parse_connect_options({"--transport=tcp", "--traddr", "10.0.0.5", "--trsvcid=4420",
                                             "--nqn", "raid5-data", "--ctrl-loss-tmo=-1", "--hdr-digest"});
  const auto shorter = parse_connect_options(
      {"-t", "tcp", "-a", "10.0.0.5", "-s", "4420", "-n", "raid5-data", "-l", "-1", "-g"});
  for (const auto& connection : {longer, shorter}) {
    EXPECT_EQ(connection.transport, "tcp");
    EXPECT_EQ(connection.address, "10.0.0.5");
    EXPECT_EQ(connection.port, "4420");
    EXPECT_EQ(connection.subsystem, "raid5-data");
    EXPECT_EQ(connection.settings.at("ctrl-loss-tmo"), "-1");
    EXPECT_TRUE(connection.settings.contains("hdr-digest"));
    EXPECT_TRUE(connection.unknown.empty());
  }
}

TEST(ConnectCommand, UnknownOptionsAreKept) {
  EXPECT_EQ(parse_connect_options({"--frobnicate=3", "-n", "a"}).unknown,
            std::vector<std::string>{"--frobnicate=3"});
}

TEST(ConnectUnit, AOneshotUnitIsParsed) {
  const ConnectUnit unit = parse_unit(
      "[Unit]\nAfter=network-online.target\n[Service]\nType=oneshot\nRemainAfterExit=yes\n"
      "ExecStart=/usr/sbin/nvme connect -t tcp -n raid5-data -a 192.168.0.100 -s 4420\n"
      "ExecStart=-/usr/sbin/nvme connect -t tcp \\\n   -n llm-models -a 192.168.0.100 -s 4420\n"
      "ExecStop=/usr/sbin/nvme disconnect -n raid5-data\n");
  ASSERT_EQ(unit.connections.size(), 2u);
  EXPECT_EQ(unit.connections[0].subsystem, "raid5-data");
  EXPECT_EQ(unit.connections[1].subsystem, "llm-models");
  EXPECT_EQ(unit.connections[1].address, "192.168.0.100");
  EXPECT_TRUE(unit.disconnects);
  EXPECT_FALSE(unit.tries_again);
}

TEST(ConnectUnit, AUnitThatRunsAShellIsParsed) {
  const ConnectUnit unit = parse_unit(
      "[Service]\nRestart=on-failure\n"
      "ExecStart=/bin/sh -c \"modprobe nvme-tcp; nvme connect -t tcp -n a -a h1; nvme connect -t tcp -n b -a "
      "h2\"\n");
  ASSERT_EQ(unit.connections.size(), 2u);
  EXPECT_EQ(unit.connections[0].address, "h1");
  EXPECT_EQ(unit.connections[1].subsystem, "b");
  EXPECT_TRUE(unit.tries_again);
}

TEST(ConnectUnit, OtherUnitsAndFilesAreIgnored) {
  test::FakeSysfs host;
  host.write("etc/systemd/system/web.service", "[Service]\nExecStart=/usr/bin/nginx connect\n");
  host.write("etc/systemd/system/all.service", "[Service]\nExecStart=nvme connect-all\n");
  host.write("etc/systemd/system/notes.txt", "ExecStart=nvme connect -n a\n");
  const auto units = read_connect_units(LocalFiles(host.root(), {}, {}));
  ASSERT_EQ(units.size(), 1u);
  EXPECT_EQ(units[0].name, "all.service");
  EXPECT_TRUE(units[0].connects_all);
}

class UnreadScripts : public ::testing::Test {
 protected:
  std::vector<std::string> found() {
    const auto mounts = mounts::read_mount_table(host.root()).value_or(std::vector<mounts::Mount>());
    return unread_scripts(LocalFiles(host.root(), mounts, list_fabric_devices(host.root())));
  }
  void unit(const std::string& command) {
    host.write("etc/systemd/system/a.service", "[Service]\nExecStart=" + command);
  }
  test::FakeSysfs host;
};

TEST_F(UnreadScripts, AScriptThatConnectsIsNamedAlsoThroughLinks) {
  host.write("opt/real/up.sh", "#!/bin/sh\nnvme connect -t tcp");
  std::filesystem::create_symlink("real", host.root() / "opt/current");
  std::filesystem::create_symlink("/opt/current/../real/up.sh", host.root() / "opt/up");
  host.write("proc/self/mountinfo",
             "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n22 21 8:2 / /opt rw - xfs /dev/sda2 rw");
  for (const char* script : {"/opt/real/up.sh", "/opt/current/up.sh", "/opt/up"}) {
    unit(std::string("/bin/sh ") + script);
    ASSERT_EQ(found().size(), 1u) << script;
    EXPECT_TRUE(found().front().starts_with(std::string(script) + " of a.service"));
  }
}

TEST_F(UnreadScripts, NothingIsLookedAtOnAMountThatMayBeDead) {
  test::connect_by_hand(host, "nvme1", "nvme1n1", "raid5-data", "2f7c");
  host.write("proc/self/mountinfo",
             "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n22 21 0:50 / /mnt/nas rw - nfs4 nas:/a rw\n"
             "23 21 259:1 / /mnt/rosa rw - ext4 /dev/nvme1n1 rw\n24 21 0:51 / /mnt/auto rw - autofs auto rw");
  for (const char* folder : {"mnt/nas", "mnt/rosa/deep", "mnt/auto/x"}) {
    host.write(std::string(folder) + "/up.sh", "#!/bin/sh\nnvme connect -t tcp");
    unit("/" + std::string(folder) + "/up.sh");
    EXPECT_TRUE(found().empty()) << folder;
  }
  std::filesystem::create_symlink("/mnt/nas/up.sh", host.root() / "up");
  unit("/up");
  EXPECT_TRUE(found().empty());
  host.write("mnt/nas/b.service", "[Service]\nExecStart=nvme connect -t tcp -n a -a 10.0.0.5");
  std::filesystem::create_symlink("/mnt/nas/b.service", host.root() / "etc/systemd/system/b.service");
  const auto table = mounts::read_mount_table(host.root());
  EXPECT_TRUE(read_connect_units(LocalFiles(host.root(), *table, {})).empty());
}

TEST_F(UnreadScripts, APipeOfACommandIsNotOpened) {
  std::filesystem::create_directories(host.root() / "run");
  ASSERT_EQ(::mkfifo((host.root() / "run/pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("loop", host.root() / "run/loop");
  unit("/bin/feeder --out /run/pipe /run/loop /run");
  EXPECT_TRUE(found().empty());
}

TEST(NvmeCliFiles, DiscoveryConfHasALineEach) {
  const auto found =
      parse_discovery_conf("# --transport=fc\n--transport=tcp --traddr=10.0.0.5 --trsvcid=8009\n\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].address, "10.0.0.5");
  EXPECT_EQ(found[0].port, "8009");
  EXPECT_EQ(found[0].subsystem, "");
}

TEST(NvmeCliFiles, ConfigJsonIsReadInBothItsForms) {
  const std::string hosts =
      R"([{"hostnqn": "nqn.x", "subsystems": [{"nqn": "a", "ports": [{"transport": "tcp", "traddr": "10.0.0.5",
          "trsvcid": "4420", "nr_io_queues": 4, "hdr_digest": false, "data_digest": true, "colour": 1}]}]}])";
  for (const std::string& text : {hosts, R"({"hosts": )" + hosts + "}"}) {
    const auto found = parse_config_json(text);
    ASSERT_TRUE(found) << found.error().message();
    ASSERT_EQ(found->size(), 1u);
    EXPECT_EQ(found->front().subsystem, "a");
    EXPECT_EQ(found->front().settings.at("nr-io-queues"), "4");
    EXPECT_FALSE(found->front().settings.contains("hdr-digest"));
    EXPECT_TRUE(found->front().settings.contains("data-digest"));
    EXPECT_EQ(found->front().unknown, std::vector<std::string>{"colour"});
  }
}

TEST(NvmeCliFiles, InvalidConfigJsonIsRefused) {
  EXPECT_FALSE(parse_config_json("{"));
  EXPECT_FALSE(parse_config_json("{}"));
  EXPECT_TRUE(parse_config_json("[1, {\"subsystems\": [2, {\"nqn\": \"a\", \"ports\": [3]}]}]"));
}

}  // namespace
}  // namespace spark::host
