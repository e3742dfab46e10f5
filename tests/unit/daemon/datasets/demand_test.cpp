// The combined demand of several requests for one copy.
#include "daemon/datasets/demand.hpp"

#include <gtest/gtest.h>

namespace spark::datasets {
namespace {

const WallTime kNow{std::chrono::hours(500'000)};

Demand limited(Bytes rate) {
  return {rate, false, {}};
}
Demand prefetch(std::optional<WallTime> by = {}) {
  return {0, true, by};
}
Demand of(std::initializer_list<Demand> all) {
  Demands demands;
  for (const Demand& one : all) demands.add(one);
  return demands.combined();
}

TEST(Demands, TheLoosestLimitOfSeveralStagingsApplies) {
  EXPECT_EQ(of({limited(5)}).max_rate, 5u);
  EXPECT_EQ(of({limited(5), limited(9), limited(7)}).max_rate, 9u);
  EXPECT_EQ(of({limited(5), limited(0)}).max_rate, 0u) << "no limit is the loosest";
}

TEST(Demands, AStagingOverridesAllPrefetches) {
  EXPECT_EQ(of({prefetch(), limited(5), prefetch(kNow)}), limited(5));
  EXPECT_EQ(of({limited(0), prefetch(kNow)}), limited(0));
}

TEST(Demands, TheEarliestDeadlineOfSeveralPrefetchesApplies) {
  const WallTime later = kNow + std::chrono::hours(1);
  EXPECT_EQ(of({prefetch(later), prefetch(kNow)}), prefetch(kNow));
  EXPECT_EQ(of({prefetch(), prefetch(later)}), prefetch(later)) << "a time is stricter than none";
  EXPECT_EQ(of({prefetch(), prefetch()}), prefetch());
}

TEST(Demands, EndingARequestRestoresTheEarlierDemand) {
  Demands demands;
  demands.add(prefetch());
  demands.add(limited(0));
  demands.remove(limited(0));
  EXPECT_EQ(demands.combined(), prefetch());
}

TEST(Prefetch, IsKeptForADayAfterItsDeadlineOrForAWeekWithoutOne) {
  const WallTime by = kNow + std::chrono::hours(5);
  EXPECT_EQ(kept_until(prefetch(by), kNow), by + std::chrono::hours(24));
  EXPECT_EQ(kept_until(prefetch(by), by + std::chrono::hours(9)), by + std::chrono::hours(33))
      << "it came late";
  EXPECT_EQ(kept_until(prefetch(), kNow), kNow + std::chrono::hours(7 * 24));
}

TEST(Prefetch, IsLateOnlyAfterItsDeadline) {
  EXPECT_FALSE(lateness(prefetch(), kNow));
  EXPECT_FALSE(lateness(prefetch(kNow), kNow));
  EXPECT_EQ(*lateness(prefetch(kNow), kNow + std::chrono::minutes(3)), std::chrono::minutes(3));
}

}  // namespace
}  // namespace spark::datasets
