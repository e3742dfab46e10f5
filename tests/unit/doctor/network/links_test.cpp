// The tests of links: what is asked of the host, and what becomes a finding.
#include "doctor/network/links.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_host.hpp"

namespace spark::doctor {
namespace {

using ::testing::HasSubstr;

constexpr double kGigabit = 125e6;  // bytes per second

class Links : public ::testing::Test {
 protected:
  test::FakeHost fake;
  fleet::LinkEnd end;
  std::vector<double> rates{190 * kGigabit};  // of the measurements in their order; the last one repeats
  std::size_t measured = 0;
  Result<double> read = 190 * kGigabit;

  Links() {
    fake.config.fleet.listen = {{"192.168.0.188", 7789}};
    fake.status = R"({"fleet": {"reason": null, "peers": [
        {"name": "spark2", "answers": true, "address": "192.168.0.189:7789"},
        {"name": "spark3", "answers": false, "address": null, "reason": "connecting: refused"}]}})";
    end.interface = "fast0";
    end.megabits = 200'000;
  }
  LinkMeter meter() {
    return {[this](const fleet::Endpoint& peer) -> Result<fleet::LinkEnd> {
              EXPECT_EQ(to_string(peer), "192.168.0.189:7789");
              return end;
            },
            [this](const fleet::Endpoint&, fleet::Way) {
              fleet::WayRate rate;
              rate.bytes_per_second = rates[std::min(measured++, rates.size() - 1)];
              return rate;
            },
            [this](const std::string&) { return read; }, [](const std::string&) {}};
  }
  Report test(const std::vector<std::string>& names = {"spark2"}) {
    Report report;
    const auto tested = test_links(fake.host(), meter(), names, report);
    EXPECT_TRUE(tested) << tested.error().message();
    return report;
  }
  void expect_one(const Report& report, Level level, const std::vector<std::string>& words) {
    ASSERT_EQ(report.findings.size(), 1u) << pretty(to_json(report));
    const Finding& found = report.findings.front();
    EXPECT_EQ(found.level, level);
    for (const std::string& word : words)
      EXPECT_THAT(found.what + " | " + found.why + " | " + found.fix, HasSubstr(word));
  }
};

TEST_F(Links, ALinkInOrderIsShownWithItsRates) {
  const Report report = test();
  EXPECT_TRUE(report.findings.empty()) << pretty(to_json(report));
  ASSERT_EQ(report.links.size(), 1u);
  EXPECT_EQ(report.links.front(), json::object({{"peer", "spark2"},
                                                {"address", "192.168.0.189"},
                                                {"interface", "fast0"},
                                                {"megabits", 200'000},
                                                {"mtu", 9000},
                                                {"packet", 9000},
                                                {"peer_interface", "fast0"},
                                                {"peer_megabits", 200'000},
                                                {"received_bytes_per_second", 23'750'000'000},
                                                {"sent_bytes_per_second", 23'750'000'000},
                                                {"own_busy", 0.0},
                                                {"peer_busy", 0.0},
                                                {"faults", json::array()}}));
}

TEST_F(Links, ASlowLinkIsMeasuredTwiceBeforeItIsAFault) {
  rates = {13 * kGigabit};
  expect_one(test(), Level::Wrong, {"negotiated 200 Gb/s", "13 Gb/s"});
  EXPECT_EQ(measured, 4u);
}

TEST_F(Links, AMomentsDisturbanceIsNoFault) {
  rates = {13 * kGigabit, 190 * kGigabit};
  EXPECT_TRUE(test().findings.empty());
  EXPECT_EQ(measured, 3u);
}

TEST_F(Links, AWayThatLosesPacketsIsNotLoadedWithData) {
  fake.largest_packet = 1500;
  expect_one(test(), Level::Wrong, {"packets of 9000 bytes do not pass"});
  EXPECT_EQ(measured, 0u);
}

TEST_F(Links, AFasterCardThatAnswersIsFound) {
  fake.add_nic("lan0", 1'000, 9000, "10.9.0.1");
  fake.route = "lan0";
  rates = {0.94 * kGigabit};
  Nic& card = end.cards.emplace_back();
  card.name = "fast0";
  card.megabits = 200'000;
  card.networks = {"192.168.0.190"};
  expect_one(test(), Level::Wrong, {"goes through lan0 (1 Gb/s)", "fast0 (200 Gb/s)"});
}

TEST_F(Links, AnyCableIsFasterThanWiFi) {
  fake.add_nic("wlan0", 0, 1500, "192.168.7.1");
  fake.files.write("sys/class/net/wlan0/wireless/link", "1");
  fake.route = "wlan0";
  rates = {0.6 * kGigabit};
  expect_one(test(), Level::Wrong, {"goes through wlan0", "fast0 (200 Gb/s)"});
}

TEST_F(Links, AnAddressOfThisHostIsNoWayToThePeer) {
  fake.add_nic("lan0", 1'000, 9000, "192.168.7.1");
  fake.route = "lan0";
  fake.status = R"({"fleet": {"reason": null, "peers": [
      {"name": "spark2", "answers": true, "address": "192.168.0.188:7789"}]}})";
  rates = {0.94 * kGigabit};
  Report report;
  LinkMeter all = meter();
  all.look = [this](const fleet::Endpoint&) { return Result<fleet::LinkEnd>(end); };
  ASSERT_TRUE(test_links(fake.host(), all, {}, report));
  EXPECT_TRUE(report.findings.empty()) << pretty(to_json(report));
}

TEST_F(Links, ASilentPeerIsAFaultAndAnUnknownOneAnError) {
  expect_one(test({"spark3"}), Level::Wrong, {"spark3", "connecting: refused"});
  Report report;
  const auto tested = test_links(fake.host(), meter(), {"spark9"}, report);
  ASSERT_FALSE(tested);
  EXPECT_EQ(tested.error().kind, Errc::NotFound);
  EXPECT_THAT(tested.error().message(), HasSubstr("spark2, spark3"));
}

TEST_F(Links, WithoutTheKeyTheNetworkIsExaminedAllTheSame) {
  LinkMeter without = meter();
  without.error = Error{Errc::Denied, "reading the fleet's key: Permission denied", ""};
  const Report report = examine_network(fake.host(), without);
  EXPECT_EQ(report.network.size(), 1u);
  EXPECT_THAT(report.unknown, testing::ElementsAre(HasSubstr("Permission denied")));
}

TEST_F(Links, TheCardsFastestModeIsReadFromEthtool) {
  fake.ethtool =
      "Settings for fast0:\n"
      "\tSupported ports: [ Backplane ]\n"
      "\tSupported link modes:   1000baseT/Full\n"
      "\t                        400000baseCR4/Full\n"
      "\tSupported pause frame use: Symmetric\n"
      "\tAdvertised link modes:  800000baseCR8/Full\n";
  EXPECT_EQ(fastest_mode(fake.ethtool), 400'000u);
  expect_one(test(), Level::Note, {"negotiated 200 Gb/s and can do 400 Gb/s"});
}

TEST_F(Links, TheRateOfReadsIsShownAndNoFault) {
  fake.has_config = false;
  test::connect_by_hand(fake.files, "nvme1", "nvme1n1", "raid5-data", "2f7c3a52-6f0e-4c55-9a55-0d4a6c1de5b7");
  Report fine, slow;
  test_reads(fake.host(), meter(), fine);
  EXPECT_THAT(fine.fine, testing::ElementsAre(HasSubstr("190 Gb/s of 200 Gb/s on fast0")));
  read = 13 * kGigabit;
  test_reads(fake.host(), meter(), slow);
  expect_one(slow, Level::Note, {"13 Gb/s of 200 Gb/s", "drives"});
}

TEST_F(Links, OnlyThePathsThatCarriedTheReadsCount) {
  fake.has_config = false;
  fake.add_nic("fast1", 200'000, 9000, "192.168.0.187");
  fake.files.add_head("nvme1n1", 1, "259:1", 1 << 20);
  for (const auto& [controller, address, card] :
       {std::tuple("nvme1", "192.168.0.100", "fast0"), std::tuple("nvme2", "192.168.0.101", "fast1")}) {
    auto path = test::tcp_controller(controller, "raid5-data");
    path.portal = {address, 4420};
    path.interface = card;
    fake.files.add_controller(path);
    fake.files.add_node(controller, "nvme1c" + std::string(controller).substr(4) + "n1", 1);
  }
  const auto count = [&](int first, int second) {
    fake.files.write("sys/class/block/nvme1c1n1/stat", std::to_string(first) + " 0 800 10 0 0 0 0 0 10 10");
    fake.files.write("sys/class/block/nvme1c2n1/stat", std::to_string(second) + " 0 800 10 0 0 0 0 0 10 10");
  };
  count(100, 100);
  int second = 100;
  LinkMeter counting = meter();
  counting.read = [&](const std::string&) {
    count(2100, second);
    return read;
  };
  Report one;
  test_reads(fake.host(), counting, one);
  EXPECT_THAT(one.fine, testing::ElementsAre(HasSubstr("192.168.0.100 give 190 Gb/s of 200 Gb/s on fast0")));
  count(100, 100);
  second = 2000;
  Report both;
  test_reads(fake.host(), counting, both);
  expect_one(both, Level::Note, {"192.168.0.100, 192.168.0.101 give 190 Gb/s of 400 Gb/s on fast0, fast1"});
}

}  // namespace
}  // namespace spark::doctor
