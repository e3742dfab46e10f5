#include "fleet/fetch/peer_watches.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "fleet/board/board.hpp"
#include "fleet/fetch/timings.hpp"

using namespace spark;
using namespace spark::fleet;
using namespace std::chrono_literals;

namespace {

const SteadyTime kThen{1h};

TEST(PeerWatches, TheFirstAnswersAreAwaited) {
  PeerWatches watches(2);
  EXPECT_TRUE(watches.is_awaiting());
  watches.first_ended();
  EXPECT_TRUE(watches.is_awaiting());
  watches.first_ended();
  EXPECT_FALSE(watches.is_awaiting());
}

TEST(PeerWatches, WithoutPeersNothingIsAwaited) {
  EXPECT_FALSE(PeerWatches(0).is_awaiting());
}

TEST(PeerWatches, QuickAnswersLeaveTheShortestLimit) {
  PeerWatches watches(1);
  EXPECT_EQ(watches.patience(), kSilent);
  watches.answered(20ms, kThen);
  EXPECT_EQ(watches.patience(), kSilent);
}

TEST(PeerWatches, TheLimitIsFourTimesTheSlowestAnswer) {
  PeerWatches watches(1);
  watches.answered(800ms, kThen);
  EXPECT_EQ(watches.patience(), 3200ms);
  watches.answered(100ms, kThen + 1s);
  EXPECT_EQ(watches.patience(), 3200ms) << "a quick answer does not hide a slow one";
  watches.answered(1s, kThen + 2s);
  EXPECT_EQ(watches.patience(), 4s);
}

TEST(PeerWatches, TheLimitHasAMaximum) {
  PeerWatches watches(1);
  watches.answered(1min, kThen);
  EXPECT_EQ(watches.patience(), kLongestSilence);
}

TEST(PeerWatches, ASlowAnswerCountsFor30Seconds) {
  PeerWatches watches(1);
  watches.answered(1s, kThen);
  watches.answered(10ms, kThen + 29s);
  EXPECT_EQ(watches.patience(), 4s);
  watches.answered(10ms, kThen + 30s);
  EXPECT_EQ(watches.patience(), kSilent);
}

TEST(PeerWatches, EndInterruptsAPause) {
  PeerWatches watches(1);
  std::mutex mutex;
  std::thread watch([&] {
    std::unique_lock lock(mutex);
    while (!watches.has_ended()) watches.pause(lock, 24h);
  });
  {
    const std::scoped_lock lock(mutex);
    watches.end();
  }
  watch.join();
  EXPECT_TRUE(watches.has_ended());
}

TEST(PeerWatches, EndInterruptsRequests) {
  PeerWatches watches(1);
  EXPECT_FALSE(watches.interrupt().is_set());
  watches.end();
  EXPECT_TRUE(watches.interrupt().is_set());
}

TEST(PeerWatches, APauseEndsWhenTheNextRequestIsDue) {
  PeerWatches watches(1);
  std::mutex mutex;
  std::unique_lock lock(mutex);
  watches.pause(lock, 1ms);
  EXPECT_FALSE(watches.has_ended());
}

}  // namespace
