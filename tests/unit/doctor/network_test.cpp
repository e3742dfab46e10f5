// What doctor says of the way to the targets
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/nics.hpp"
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
  EXPECT_EQ(report.fine.size(), 1u);
}

TEST_F(Network, SeesTheSlowerOfTwoCardsInOneNetwork) {
  fake.add_nic("slow0", 10'000, 9000, "192.168.0.110");
  fake.route = fake.replies_come_in = "slow0";
  expect(Level::Wrong,
         {"through slow0 (10 Gb/s), though fast0 (200 Gb/s)", "`interface: fast0` under targets.rose"});
}

TEST_F(Network, SeesRepliesThatComeInThroughAnotherCard) {
  fake.add_nic("slow0", 10'000, 9000, "192.168.0.110");
  fake.replies_come_in = "slow0";
  expect(Level::Wrong, {"comes in through slow0, not through fast0", "arp_ignore"});
}

TEST_F(Network, SeesPacketsThatDoNotFit) {
  fake.largest_packet = 1500;
  expect(Level::Wrong, {"packets of 9000 bytes do not reach target rose, 1500 do", "mtu 1500"});
}

TEST_F(Network, SeesWirelessAndSlowCards) {
  fake.add_nic("wlan0", 0, 1500, "10.0.0.7");
  fake.files.write("sys/class/net/wlan0/wireless/x", "");
  fake.route = fake.replies_come_in = "wlan0";
  fake.addresses = "";
  expect(Level::Wrong, {"over Wi-Fi (wlan0)"});
  fake.add_nic("old0", 1000, 1500, "10.0.0.8");
  fake.route = fake.replies_come_in = "old0";
  expect(Level::Note, {"at 1 Gb/s (old0)"});
}

TEST_F(Network, SeesARouterOnTheWay) {
  fake.gateway = "10.0.0.1";
  expect(Level::Note, {"through the router 10.0.0.1"});
}

TEST_F(Network, SeesThatThereIsNoWay) {
  fake.route = "";
  expect(Level::Wrong, {"no way to target rose (192.168.0.100)", "Network is unreachable"});
}

TEST_F(Network, SaysWhatCantBeMeasured) {
  fake.largest_packet = 0;
  EXPECT_THAT(join(look().unknown, "\n"), HasSubstr("does not answer ping"));
  fake.has_tools = false;
  EXPECT_THAT(join(look().unknown, "\n"), HasSubstr("ip: "));
}

TEST(Nics, KnowWhichAddressesTheirNetworksHold) {
  EXPECT_TRUE(is_in_network("192.168.0.100", "192.168.0.188/24"));
  EXPECT_FALSE(is_in_network("192.168.1.100", "192.168.0.188/24"));
  EXPECT_TRUE(is_in_network("192.168.1.100", "192.168.0.188/23"));
  EXPECT_TRUE(is_in_network("fd00::5", "fd00::1/64"));
  EXPECT_FALSE(is_in_network("fd01::5", "fd00::1/64"));
  EXPECT_FALSE(is_in_network("192.168.0.100", "fd00::1/0"));
}

}  // namespace
}  // namespace spark::doctor
