#include "fleet/schedule/undelivered.hpp"

#include <gtest/gtest.h>

using namespace spark;
using namespace spark::fleet;
using namespace std::chrono_literals;

namespace {

const SteadyTime kStart{2h};

TEST(Undelivered, UnitsBeingReadCountButAreNeverLate) {
  Undelivered units;
  units.begun(1);
  EXPECT_FALSE(units.are_many());
  units.begun(2);
  EXPECT_TRUE(units.are_many());
  EXPECT_FALSE(units.are_many_late(kStart + 1h));
}

TEST(Undelivered, UnitsAreLateAfterTheTimeOfADelivery) {
  Undelivered units;
  for (const std::uint64_t unit : {1, 2}) {
    units.begun(unit);
    units.read(unit, kStart + std::chrono::seconds(unit));
  }
  EXPECT_FALSE(units.are_many_late(kStart + 2s + kDelivery - 1ms));
  EXPECT_TRUE(units.are_many_late(kStart + 2s + kDelivery));
}

TEST(Undelivered, UnitsOnAnotherHostAndFailedOnesNoLongerCount) {
  Undelivered units;
  for (const std::uint64_t unit : {1, 2, 3}) units.begun(unit);
  units.delivered([](std::uint64_t unit) { return unit == 1; });
  EXPECT_TRUE(units.are_many());
  units.failed(2);
  EXPECT_FALSE(units.are_many());
}

TEST(Undelivered, AUnitThatWasFetchedDoesNotCount) {
  Undelivered units;
  for (const std::uint64_t unit : {1, 2, 3}) units.read(unit, kStart);
  EXPECT_FALSE(units.are_many());
}

}  // namespace
