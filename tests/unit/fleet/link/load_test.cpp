#include "fleet/link/load.hpp"

#include <gtest/gtest.h>

#include <thread>

using namespace spark::fleet;
using namespace std::chrono_literals;

namespace {

TEST(Load, IsTheBusyShareOfTheTime) {
  EXPECT_DOUBLE_EQ(busy_share({1s, {}}, 2s), 0.5);
  EXPECT_DOUBLE_EQ(busy_share({0s, {}}, 2s), 0);
  EXPECT_DOUBLE_EQ(busy_share({8s, {}}, 2s), 1);
  EXPECT_DOUBLE_EQ(busy_share({1s, {}}, 0s), 0);
}

TEST(Load, AProcessorBusyWithInterruptsCounts) {
  EXPECT_DOUBLE_EQ(busy_share({0s, {0, 190}}, 2s), 1);
  EXPECT_DOUBLE_EQ(busy_share({0s, {0, 100}}, 2s), 0);
}

TEST(Load, IsSummedOverSeveralTimes) {
  Load sum;
  add(sum, growth({1s, {100, 100}}, {2s, {100, 150}}));
  add(sum, growth({5s, {200, 200}}, {6s, {203, 207}}));
  EXPECT_EQ(sum.thread, 2s);
  EXPECT_EQ(sum.interrupts, (std::vector<std::uint64_t>{3, 57}));
  EXPECT_TRUE(growth({0s, {100}}, {0s, {}}).interrupts.empty());
}

TEST(Load, AThreadThatWorksIsBusy) {
  const Load before = current_load();
  const auto until = std::chrono::steady_clock::now() + 50ms;
  while (std::chrono::steady_clock::now() < until) {
  }
  EXPECT_GE(current_load().thread - before.thread, 20ms);
  EXPECT_FALSE(before.interrupts.empty());
}

}  // namespace
