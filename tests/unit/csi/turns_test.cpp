#include "csi/turns.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace spark::csi {
namespace {

using namespace std::chrono_literals;

SteadyTime in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

TEST(Turns, CallsForOneVolumeAreSerialized) {
  Turns turns;
  const auto first = turns.take("a", in(0ms), false);
  EXPECT_TRUE(first);
  EXPECT_FALSE(turns.take("a", in(0ms), false));
  EXPECT_TRUE(turns.take("b", in(0ms), false)) << "no call has the other volume";
  EXPECT_TRUE(turns.is_taken("a"));
  EXPECT_FALSE(turns.is_taken("b"));
}

TEST(Turns, AWaitingRemovalAsksThePublishCallToEnd) {
  Turns turns;
  std::thread remover;
  {
    const auto publish = turns.take("a", in(0ms), false);
    EXPECT_FALSE(publish.should_end());
    remover = std::thread([&] { EXPECT_TRUE(turns.take("a", in(1min), true)); });
    while (!publish.should_end()) std::this_thread::yield();
  }
  remover.join();
  EXPECT_FALSE(turns.is_taken("a"));
}

}  // namespace
}  // namespace spark::csi
