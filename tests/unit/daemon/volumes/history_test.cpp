#include "daemon/volumes/history.hpp"

#include <gtest/gtest.h>

namespace spark::volumes {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kStart{std::chrono::hours(500'000)};

TEST(Latencies, AreUnknownBeforeTheFirstSample) {
  const Latencies none;
  EXPECT_FALSE(none.last());
  EXPECT_FALSE(none.percentile(0.5));
}

TEST(Latencies, PercentilesUseTheNearestRank) {
  Latencies some;
  for (int us = 100; us >= 1; --us) some.add(us);
  EXPECT_EQ(some.last(), 1);
  EXPECT_EQ(some.percentile(0.5), 50);
  EXPECT_EQ(some.percentile(0.99), 99);
  EXPECT_EQ(some.percentile(0), 1);
  EXPECT_EQ(some.percentile(1), 100);
}

TEST(Latencies, PercentilesForgetTheOldestSamples) {
  Latencies many;
  for (int i = 0; i < 1000; ++i) many.add(i < 500 ? 1'000'000 : 5);
  EXPECT_EQ(many.percentile(1), 5);
  EXPECT_EQ(many.count(), 1000U) << "the count and the sum are of all";
  EXPECT_EQ(many.sum_us(), 500.0 * 1'000'000 + 500 * 5);
}

TEST(History, CountsReconnectsAndRecoveriesSeparately) {
  History history;
  EXPECT_FALSE(history.last_outage_s());
  history.outage_begins(kStart, "link down");
  history.outage_begins(kStart + 1s, "still down");
  EXPECT_TRUE(history.is_out());
  history.outage_ends(kStart + 12s, Healer::Kernel);
  history.outage_ends(kStart + 13s, Healer::Kernel);
  history.outage_begins(kStart + 60s, "gone");
  history.outage_ends(kStart + 62s, Healer::Us);
  EXPECT_EQ(history.reconnects(), 1U);
  EXPECT_EQ(history.recoveries(), 1U);
  ASSERT_EQ(history.outages().size(), 2U);
  EXPECT_EQ(history.outages().front().reason, "link down");
  EXPECT_EQ(history.last_outage_s(), 2);
}

TEST(History, AnOutageNeverEndsBeforeItBegan) {
  History history;
  history.outage_begins(kStart, "link down");
  history.outage_ends(kStart - 1h, Healer::Kernel);
  EXPECT_EQ(history.last_outage_s(), 0);
}

TEST(History, KeepsTheLatestOutagesAndTheTotalCount) {
  History history;
  for (int i = 0; i < 100; ++i) {
    history.outage_begins(kStart + i * 10s, std::to_string(i));
    history.outage_ends(kStart + i * 10s + 1s, Healer::Kernel);
  }
  EXPECT_EQ(history.reconnects(), 100U);
  EXPECT_EQ(history.outages().size(), 20U);
  EXPECT_EQ(history.outages().back().reason, "99");
  EXPECT_EQ(history.outage_count(), 100U);
  EXPECT_EQ(History::from_json(history.to_json()).outage_count(), 100U);
}

TEST(History, AnOldFileWithoutACountUsesTheNumberOfItsOutages) {
  History history;
  history.outage_begins(kStart, "first");
  json::object old = history.to_json();
  old.erase("outage_count");
  EXPECT_EQ(History::from_json(old).outage_count(), 1U);
}

TEST(History, IsRestoredFromItsFileDuringAnOutage) {
  History history;
  history.outage_begins(kStart, "first");
  history.outage_ends(kStart + 5s, Healer::Us);
  history.outage_begins(kStart + 60s, "second");
  History again = History::from_json(history.to_json());
  EXPECT_EQ(again.recoveries(), 1U);
  EXPECT_TRUE(again.is_out());
  again.outage_ends(kStart + 90s, Healer::Us);
  EXPECT_EQ(again.last_outage_s(), 30);
  EXPECT_EQ(again.outages().front().healer, Healer::Us);
}

TEST(History, AnInvalidFileGivesAnEmptyHistory) {
  EXPECT_EQ(
      History::from_json(json::object{{"outages", json::array{1, "x", json::object{}}}}).outages().size(),
      0U);
}

}  // namespace
}  // namespace spark::volumes
