// doctor's findings about the route to the targets
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/network/ingress_nic.hpp"
#include "doctor/network/network.hpp"
#include "doctor/network/nics.hpp"
#include "tests/support/fake_host.hpp"

namespace spark::doctor {
namespace {

using ::testing::HasSubstr;

class Network : public ::testing::Test {
 protected:
  Report look() {
    Report report;
    check_network(fake.host(), report);
    return report;
  }
  void expect(Level level, const std::vector<std::string>& words) {
    const Report report = look();
    ASSERT_EQ(report.findings.size(), 1u) << pretty(to_json(report));
    const Finding& finding = report.findings.front();
    EXPECT_EQ(finding.level, level);
    for (const std::string& word : words) {
      EXPECT_THAT(finding.what + " | " + finding.why + " | " + finding.fix, HasSubstr(word));
    }
  }
  test::FakeHost fake;
};

TEST_F(Network, IsFineAtFullSizeThroughTheFastestCard) {
  fake.add_nic("slow0", 10'000, 9000, "192.168.0.110");
  const Report report = look();
  EXPECT_TRUE(report.findings.empty()) << pretty(to_json(report));
  EXPECT_EQ(report.fine, std::vector<std::string>{"target rose: fast0, 200 Gb/s, packets of 9000 bytes"});
}

TEST_F(Network, JsonDescribesTheRouteToEachTarget) {
  const json::object report = to_json(look());
  const json::array* network = get_array(report, "network");
  ASSERT_TRUE(network != nullptr && network->size() == 1);
  EXPECT_EQ(network->front(), json::value({{"target", "rose"},
                                           {"address", "192.168.0.100"},
                                           {"interface", "fast0"},
                                           {"gateway", nullptr},
                                           {"speed", "200 Gb/s"},
                                           {"megabits", 200'000},
                                           {"mtu", 9000},
                                           {"packet", 9000},
                                           {"carried_by", nullptr}}));
}

// --- without a configuration ---

TEST_F(Network, ListsEachAddressOfAManualSetupOnceWithItsOrigin) {
  fake.has_config = false;
  test::set_up_by_hand(fake.files);
  fake.files.write("etc/nvme/discovery.conf",
                   "-t tcp -a 192.168.0.100 -s 8009\n-t tcp -a 10.0.0.6\n-t rdma -a 10.0.0.9");
  fake.files.write(
      "etc/nvme/config.json",
      R"([{"subsystems": [{"nqn": "a", "ports": [{"transport": "tcp", "traddr": "10.0.0.5"}]}]}])");
  fake.files.add_controller(test::tcp_controller("nvme7", "foreign"));  // also at 10.0.0.5
  auto other = test::tcp_controller("nvme8", "foreign");
  other.portal = {"10.0.0.7", 4420};
  fake.files.add_controller(other);
  const Report report = look();
  EXPECT_TRUE(report.findings.empty()) << pretty(to_json(report));
  std::vector<std::string> targets;
  for (const NetworkWay& way : report.network) targets.push_back(way.target);
  EXPECT_EQ(targets, (std::vector<std::string>{"192.168.0.100 (nvme-rosa-connect.service)",
                                               "10.0.0.5 (/etc/nvme/config.json)",
                                               "10.0.0.6 (/etc/nvme/discovery.conf)", "10.0.0.7 (nvme8)",
                                               "192.168.0.98 (line 4 of /etc/fstab)"}));
}

TEST_F(Network, ChecksTheDiscoveryAddressOfAConnectAllUnit) {
  fake.has_config = false;
  fake.files.write("etc/systemd/system/all.service",
                   "[Service]\nExecStart=/usr/sbin/nvme connect-all -t tcp -a 10.0.0.5 -s 8009");
  const Report report = look();
  ASSERT_EQ(report.network.size(), 1u) << pretty(to_json(report));
  EXPECT_EQ(report.network.front().target, "10.0.0.5 (all.service)");
}

TEST_F(Network, AVariableOfAUnitIsNoAddress) {
  fake.has_config = false;
  fake.files.write(
      "etc/systemd/system/nvme@.service",
      "[Service]\nEnvironmentFile=/etc/nvme/%i\nExecStart=nvme connect -t tcp -a $ADDR -n $NQN\n"
      "ExecStart=nvme connect -t tcp -a ${ADDR2} -n b\nExecStart=nvme connect -t tcp -a %i -n c");
  const Report report = look();
  EXPECT_TRUE(report.network.empty() && report.findings.empty()) << pretty(to_json(report));
}

TEST_F(Network, ReportsLostLargePacketsOfAManualSetup) {
  fake.has_config = false;
  test::connect_by_hand(fake.files, "nvme1", "nvme1n1", "raid5-data", "2f7c");
  fake.largest_packet = 1500;
  expect(Level::Wrong, {"packets of 9000 bytes do not reach 192.168.0.100 (nvme1), 1500 do"});
}

TEST_F(Network, DoesNotAdviseTheSizeOfASmallEchoRequest) {
  fake.largest_packet = 1000;
  expect(Level::Note, {"target rose answers small echo requests, and no large ones", "a firewall"});
  EXPECT_EQ(look().network.front().packet, 0u);
  EXPECT_THAT(pretty(to_json(look())), ::testing::Not(HasSubstr("ip link set")));
}

TEST_F(Network, FindsTheSizeOfAPathThroughATunnel) {
  fake.largest_packet = 1300;
  expect(Level::Wrong, {"packets of 9000 bytes do not reach target rose, 1280 do", "mtu 1280"});
}

TEST_F(Network, ExplainsHowToUseTheFasterCardOfAManualSetup) {
  fake.has_config = false;
  test::connect_by_hand(fake.files, "nvme1", "nvme1n1", "raid5-data", "2f7c");
  fake.add_nic("slow0", 10'000, 9000, "192.168.0.110");
  fake.route = fake.replies_come_in = fake.data_comes_in = "slow0";
  expect(Level::Wrong, {"192.168.0.100 (nvme1) is reached through slow0", "--host-iface=fast0",
                        "ip route add 192.168.0.100 dev fast0"});
}

TEST_F(Network, AConnectedTargetIsListedOnceUnderItsConfiguredName) {
  test::set_up_by_hand(fake.files);
  fake.files.remove("etc/fstab");
  const Report report = look();
  ASSERT_EQ(report.network.size(), 1u) << pretty(to_json(report));
  EXPECT_EQ(report.network.front().target, "rose");
}

// --- which card carried the bytes ---

TEST_F(Network, FindsTheCardThatCarriesTheDataByAReadTest) {
  test::connect_by_hand(fake.files, "nvme1", "nvme1n1", "raid5-data", "2f7c");
  const Report report = look();
  EXPECT_EQ(fake.reads, std::vector<std::string>{"/dev/nvme1n1"});
  EXPECT_EQ(report.network.front().carried_by, "fast0");
  EXPECT_EQ(report.fine, std::vector<std::string>{
                             "target rose: fast0, 200 Gb/s, packets of 9000 bytes, its data comes by it"});
}

TEST_F(Network, ReportsDataArrivingThroughAnotherCard) {
  test::connect_by_hand(fake.files, "nvme1", "nvme1n1", "raid5-data", "2f7c");
  fake.add_nic("slow0", 10'000, 9000, "192.168.0.110");
  fake.data_comes_in = "slow0";
  expect(Level::Wrong, {"data from target rose arrives through slow0, not through fast0",
                        "the slower one may carry the data", "arp_ignore"});
  EXPECT_EQ(look().network.front().carried_by, "slow0");
}

TEST_F(Network, ClaimsNothingWhereNoCounterMoves) {
  test::connect_by_hand(fake.files, "nvme1", "nvme1n1", "raid5-data", "2f7c");
  fake.data_comes_in = "";
  const Report report = look();
  EXPECT_TRUE(report.findings.empty()) << pretty(to_json(report));
  EXPECT_EQ(report.network.front().carried_by, "");
}

TEST_F(Network, ReadsNothingThatMayHang) {
  test::connect_by_hand(fake.files, "nvme1", "nvme1n1", "raid5-data", "2f7c");
  fake.files.write("sys/class/nvme/nvme1/state", "connecting");
  look();
  EXPECT_TRUE(fake.reads.empty());
  fake.files.write("sys/class/nvme/nvme1/state", "live");
  fake.largest_packet = 1500;  // full packets are lost
  look();
  EXPECT_TRUE(fake.reads.empty());
  fake.largest_packet = 9000;
  auto host = fake.host();
  host.is_root = false;
  Report report;
  check_network(host, report);
  EXPECT_TRUE(fake.reads.empty());
  EXPECT_THAT(join(report.unknown, "\n"),
              HasSubstr("which card the data of target rose comes by (needs root)"));
}

TEST_F(Network, ReportsAReadWithoutAnAnswer) {
  test::connect_by_hand(fake.files, "nvme1", "nvme1n1", "raid5-data", "2f7c");
  fake.reads_hang = true;
  expect(Level::Wrong, {"a read of nvme1n1, of target rose, has no answer", "hangs", "dmesg"});
}

TEST_F(Network, DoesNotReadANamespaceWithASecondPath) {
  test::connect_by_hand(fake.files, "nvme1", "nvme1n1", "raid5-data", "2f7c");
  fake.files.add_controller(test::tcp_controller("nvme2", "raid5-data"));
  fake.files.add_node("nvme2", "nvme1c2n1", 1);
  look();
  EXPECT_TRUE(fake.reads.empty());
}

TEST_F(Network, ReportsThatTheSlowerOfTwoCardsIsUsed) {
  fake.add_nic("slow0", 10'000, 9000, "192.168.0.110");
  fake.route = fake.replies_come_in = "slow0";
  expect(Level::Wrong,
         {"through slow0 (10 Gb/s), though fast0 (200 Gb/s)", "`interface: fast0` under targets.rose"});
}

TEST_F(Network, ReportsRepliesArrivingThroughAnotherCard) {
  fake.add_nic("slow0", 10'000, 9000, "192.168.0.110");
  fake.replies_come_in = "slow0";
  expect(Level::Wrong, {"arrives through slow0, not through fast0", "arp_ignore"});
}

TEST_F(Network, ReportsLostLargePackets) {
  fake.largest_packet = 1500;
  expect(Level::Wrong, {"packets of 9000 bytes do not reach target rose, 1500 do", "mtu 1500"});
}

TEST_F(Network, ATargetWithSmallerPacketsIsNoFaultAsTcpAgreesUponTheirSize) {
  fake.negotiated_packet = fake.largest_packet = 1500;
  const Report report = look();
  EXPECT_TRUE(report.findings.empty()) << pretty(to_json(report));
  EXPECT_EQ(report.fine, std::vector<std::string>{"target rose: fast0, 200 Gb/s, packets of 1500 bytes"});
}

TEST_F(Network, ATargetThatRefusesConnectionsDoesNotTellItsPacketSize) {
  fake.negotiated_packet = 0;
  fake.largest_packet = 1500;
  const Report report = look();
  EXPECT_TRUE(report.findings.empty()) << pretty(to_json(report));
  EXPECT_EQ(report.unknown,
            std::vector<std::string>{"the packet size that TCP uses to target rose (connection refused)"});
}

TEST_F(Network, ReportsWirelessAndSlowCards) {
  fake.add_nic("wlan0", 0, 1500, "10.0.0.7");
  fake.files.write("sys/class/net/wlan0/wireless/x", "");
  fake.route = fake.replies_come_in = "wlan0";
  fake.addresses = "";
  expect(Level::Wrong, {"over Wi-Fi (wlan0)"});
  fake.add_nic("old0", 1000, 1500, "10.0.0.8");
  fake.route = fake.replies_come_in = "old0";
  expect(Level::Note, {"at 1 Gb/s (old0)"});
}

TEST_F(Network, ReportsARouterInThePath) {
  fake.gateway = "10.0.0.1";
  expect(Level::Note, {"through the router 10.0.0.1"});
}

TEST_F(Network, ReportsAMissingRoute) {
  fake.route = "";
  expect(Level::Wrong, {"no way to target rose (192.168.0.100)", "Network is unreachable"});
}

TEST_F(Network, ListsMeasurementsThatAreNotPossible) {
  fake.largest_packet = 0;
  EXPECT_THAT(join(look().unknown, "\n"), HasSubstr("does not answer ping"));
  fake.has_tools = false;
  EXPECT_THAT(join(look().unknown, "\n"), HasSubstr("ip: "));
}

TEST(ReadBeginning, ReadsOneMebibyteWithDirectIoAndNamesAMissingFile) {
  test::FakeSysfs files;
  const auto file = files.root() / "device";
  const auto missing = read_beginning(file.native());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, Errc::NotFound);
  EXPECT_THAT(missing.error().what, HasSubstr(file.native()));
  files.write("device", std::string(3 << 20, 'x'));
  const auto read = read_beginning(file.native());
  if (!read && read.error().number == EINVAL)
    GTEST_SKIP() << "the file system of the temporary folder refuses direct I/O";
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, 1u << 20);
}

TEST(Nics, AnAddressIsMatchedAgainstTheirNetworkPrefix) {
  EXPECT_TRUE(is_in_network("192.168.0.100", "192.168.0.188/24"));
  EXPECT_FALSE(is_in_network("192.168.1.100", "192.168.0.188/24"));
  EXPECT_TRUE(is_in_network("192.168.1.100", "192.168.0.188/23"));
  EXPECT_TRUE(is_in_network("fd00::5", "fd00::1/64"));
  EXPECT_FALSE(is_in_network("fd01::5", "fd00::1/64"));
  EXPECT_FALSE(is_in_network("192.168.0.100", "fd00::1/0"));
}

}  // namespace
}  // namespace spark::doctor
