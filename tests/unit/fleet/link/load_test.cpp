#include "fleet/link/load.hpp"

#include <gtest/gtest.h>

#include <thread>

using namespace spark::fleet;
using namespace std::chrono_literals;

namespace {

TEST(Load, IsTheBusyShareOfTheTime) {
  EXPECT_DOUBLE_EQ(busy_share({1s, {}}, {2s, {}}, 2s), 0.5);
  EXPECT_DOUBLE_EQ(busy_share({1s, {}}, {1s, {}}, 2s), 0);
  EXPECT_DOUBLE_EQ(busy_share({1s, {}}, {9s, {}}, 2s), 1);
  EXPECT_DOUBLE_EQ(busy_share({1s, {}}, {2s, {}}, 0s), 0);
}

TEST(Load, AProcessorBusyWithInterruptsCounts) {
  EXPECT_DOUBLE_EQ(busy_share({0s, {100, 100}}, {0s, {100, 290}}, 2s), 1);
  EXPECT_DOUBLE_EQ(busy_share({0s, {100, 100}}, {0s, {100, 200}}, 2s), 0);
  EXPECT_DOUBLE_EQ(busy_share({0s, {100}}, {0s, {}}, 2s), 0);
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
