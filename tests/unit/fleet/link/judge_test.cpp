#include "fleet/link/judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace spark;
using namespace spark::fleet;
using testing::HasSubstr;

namespace {

constexpr double kGigabit = 125e6;  // bytes per second

// A link of 200 Gb/s in order, on cards with all the lanes that they need.
class Judge : public testing::Test {
 protected:
  LinkFacts facts_;

  Judge() {
    facts_.peer = "spark2";
    facts_.address = "10.0.0.2";
    facts_.card.name = "fast0";
    facts_.card.megabits = 200'000;
    facts_.card.mtu = facts_.packet = facts_.works = 9000;
    facts_.peer_card = "fast0";
    facts_.peer_megabits = 200'000;
    move(190, 190);
  }
  void move(double from, double to) {
    facts_.from.bytes_per_second = from * kGigabit;
    facts_.to.bytes_per_second = to * kGigabit;
  }
  void expect_one(bool is_fault, const std::string& kind, const std::vector<std::string>& words = {}) const {
    const auto all = judge(facts_);
    ASSERT_EQ(all.size(), 1u) << (all.empty() ? "nothing" : all.back().what);
    EXPECT_EQ(all[0].kind, kind);
    EXPECT_EQ(all[0].is_fault, is_fault);
    for (const std::string& word : words)
      EXPECT_THAT(all[0].what + " | " + all[0].why + " | " + all[0].fix, HasSubstr(word));
  }
  void expect_none() const {
    const auto all = judge(facts_);
    EXPECT_TRUE(all.empty()) << all.front().what;
  }
};

TEST_F(Judge, ALinkThatMovesItsSpeedIsInOrder) {
  expect_none();
}

TEST_F(Judge, AThirdLessThanItsSpeedIsInOrder) {
  move(135, 131);
  expect_none();
}

TEST_F(Judge, ALinkThatNegotiated200AndMoves13IsAtFault) {
  move(13, 13.4);
  expect_one(true, "slow",
             {"negotiated 200 Gb/s on fast0", "13 Gb/s from it", "13.4 Gb/s to it", "ethtool -S fast0"});
}

TEST_F(Judge, OneSlowDirectionIsAFault) {
  move(190, 13);
  expect_one(true, "slow");
}

TEST_F(Judge, TheSlowerCardSetsWhatIsPossible) {
  facts_.peer_megabits = 10'000;
  move(9.4, 9.4);
  expect_none();
}

TEST_F(Judge, ABusyProcessorIsNoFaultOfTheLink) {
  move(13, 190);
  facts_.from.peer_busy = 0.97;
  expect_one(false, "cpu", {"processors of spark2"});
  facts_.from.peer_busy = 0;
  facts_.from.own_busy = 0.97;
  expect_one(false, "cpu", {"processors of this host"});
}

TEST_F(Judge, TwoProcessorsThatWorkInTurnsAreNoFaultOfTheLink) {
  move(100, 190);
  facts_.from.own_busy = facts_.from.peer_busy = 0.5;
  expect_one(false, "cpu");
}

TEST_F(Judge, ProcessorsThatAreHalfIdleExcuseNothing) {
  move(13, 190);
  facts_.from.own_busy = facts_.from.peer_busy = 0.4;
  expect_one(true, "slow");
}

TEST_F(Judge, ABusyProcessorInOneDirectionHidesNoFaultInTheOther) {
  move(13, 13);
  facts_.from.own_busy = 0.97;
  expect_one(true, "slow");
}

TEST_F(Judge, TrafficOfOthersCountsAsMoved) {
  move(20, 20);
  facts_.from.card_bytes_per_second = facts_.to.card_bytes_per_second = 185 * kGigabit;
  expect_none();
}

TEST_F(Judge, ASenderThatKeepsToItsUploadLimitIsInOrder) {
  move(99, 190);
  facts_.from.limit = static_cast<Bytes>(100 * kGigabit);
  expect_none();
}

TEST_F(Judge, AnUnknownSpeedIsNotJudged) {
  move(0.1, 0.1);
  facts_.card.megabits = 0;  // Wi-Fi, to a peer with a cable
  expect_none();
  facts_.card.megabits = 200'000;
  facts_.peer_megabits = 0;
  expect_none();
}

TEST_F(Judge, HalfOfAPortIsNamedWithTheHalfThatIsNotUsed) {
  move(95, 96);
  facts_.card.pcie_megabits = 126'000;
  facts_.other_half = "fast0b";
  expect_one(true, "half", {"moves half of its speed", "fast0b, which is not in use", "126 Gb/s"});
}

TEST_F(Judge, HalfOfAPortIsNoFaultIfTheOtherHalfHasAnAddressOfItsOwn) {
  move(95, 96);
  facts_.card.pcie_megabits = 126'000;
  facts_.other_half = "fast0b";
  facts_.is_other_half_used = true;
  expect_one(false, "half");
  move(95, 81);  // less than its lanes carry
  facts_.card.pcie_megabits = 200'000;
  expect_one(true, "half");
}

TEST_F(Judge, HalfOfTheSpeedIsNamedWithoutAKnownHalf) {
  move(96, 190);
  expect_one(true, "half", {"one cable of a bond"});
}

TEST_F(Judge, PacketsThatDoNotPassAreTheFaultWhateverWasMoved) {
  facts_.works = 1500;
  move(0, 0);
  facts_.from.error = Error{Errc::TimedOut, "reading: the other host is silent", ""};
  expect_one(true, "mtu", {"9000 bytes do not pass", "1500 bytes do", "ip link set fast0 mtu 1500"});
}

TEST_F(Judge, NoEchoIsNoFault) {
  facts_.works = 0;
  expect_none();
}

TEST_F(Judge, AFasterCardToTheSameAddressIsAWrongRoute) {
  facts_.card.name = "lan0";
  facts_.card.megabits = 1'000;
  move(0.94, 0.94);
  facts_.better = BetterWay{"fast0", 200'000, "10.0.0.2"};
  expect_one(true, "interface",
             {"goes through lan0 (1 Gb/s)", "fast0 (200 Gb/s)", "ip route replace 10.0.0.2 dev fast0"});
}

TEST_F(Judge, AFasterCardToAnotherAddressOfThePeerNamesIt) {
  facts_.card.name = "lan0";
  facts_.card.megabits = 1'000;
  move(0.94, 0.94);
  facts_.better = BetterWay{"fast0", 200'000, "10.1.0.2"};
  expect_one(true, "interface", {"at 10.1.0.2", "first under fleet.peers.spark2"});
}

TEST_F(Judge, DataThatArrivesByAnotherCardIsAFault) {
  facts_.arrives_by = "lan0";
  expect_one(true, "interface", {"arrives through lan0, not through fast0", "arp_ignore"});
}

TEST_F(Judge, ATransferThatStallsIsAFault) {
  facts_.to.error = Error{Errc::TimedOut, "sending: the other host is silent", ""};
  expect_one(true, "stalls", {"the other host is silent"});
}

TEST_F(Judge, ALowerSpeedThanTheCardCanDoIsANote) {
  facts_.most_megabits = 400'000;
  expect_one(false, "negotiated", {"200 Gb/s", "400 Gb/s"});
}

TEST_F(Judge, APeerWithoutAConnectionIsAFaultWithItsReason) {
  facts_.error = Error{Errc::Denied, "the other host does not have this fleet's key", "put it there"};
  expect_one(true, "silent", {"spark2 (10.0.0.2) can't be tested", "fleet's key", "put it there"});
}

}  // namespace
