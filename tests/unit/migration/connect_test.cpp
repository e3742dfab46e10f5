// Connection settings from nvme-cli's options, units and files
#include <gtest/gtest.h>

#include "migration/survey/connect_units.hpp"
#include "migration/survey/nvme_cli_files.hpp"
#include "tests/support/fake_sysfs.hpp"

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
  const auto units = read_connect_units(host.root());
  ASSERT_EQ(units.size(), 1u);
  EXPECT_EQ(units[0].name, "all.service");
  EXPECT_TRUE(units[0].connects_all);
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
