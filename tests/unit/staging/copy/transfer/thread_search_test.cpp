#include "staging/copy/transfer/thread_search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>

namespace spark::staging {
namespace {

using Rate = std::function<double(unsigned threads)>;

// Where the search is for most of the time, after some trials.
unsigned found(ThreadSearch search, const Rate& rate, int measurements = 200) {
  std::map<unsigned, int> times;
  for (int i = 0; i < measurements; ++i) {
    if (i > measurements / 2) ++times[search.threads()];
    search.measured(rate(search.threads()));
  }
  return std::ranges::max_element(times, {}, [](const auto& one) { return one.second; })->first;
}

// Each thread waits for its drive, whose queue is never full.
double waits(unsigned threads) {
  return threads;
}

// A fast drive: more than eight threads wait for each other.
double contends(unsigned threads) {
  return threads <= 8 ? threads : 8 * std::pow(8.0 / threads, 0.4);
}

TEST(ThreadSearch, ASlowDriveGetsAsManyThreadsAsAreAllowed) {
  EXPECT_EQ(found(ThreadSearch({8, 2, 32}), waits), 32U);
}

TEST(ThreadSearch, AFastDriveGetsNoMoreThreadsThanHelp) {
  EXPECT_EQ(found(ThreadSearch({8, 2, 32}), contends), 8U);
  EXPECT_EQ(found(ThreadSearch({32, 2, 32}), contends), 8U);
  EXPECT_EQ(found(ThreadSearch({2, 2, 32}), contends), 8U);
}

TEST(ThreadSearch, RatesThatDifferByChanceDoNotChangeTheNumber) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> chance(0.98, 1.02);
  EXPECT_EQ(found(ThreadSearch({8, 2, 32}), [&](unsigned) { return chance(random); }), 8U);
}

TEST(ThreadSearch, TrialsTakeASmallPartOfTheTime) {
  ThreadSearch search({8, 2, 32});
  int others = 0;
  for (int i = 0; i < 1000; ++i) {
    if (search.threads() != 8) ++others;
    search.measured(contends(search.threads()));
  }
  EXPECT_LE(others, 120);
  EXPECT_GE(others, 50) << "it never looks again";
}

TEST(ThreadSearch, FollowsADriveThatBecomesSlow) {
  ThreadSearch search({8, 2, 32});
  for (int i = 0; i < 100; ++i) search.measured(contends(search.threads()));
  EXPECT_EQ(found(search, waits), 32U);
}

TEST(ThreadSearch, AGivenNumberStays) {
  ThreadSearch search({5, 5, 5});
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(search.threads(), 5U);
    search.measured(i % 2 == 0 ? 1 : 100);
  }
}

TEST(ThreadSearch, StaysInItsRange) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> any(0, 100);
  ThreadSearch search({6, 3, 20});
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_GE(search.threads(), 3U);
    EXPECT_LE(search.threads(), 20U);
    search.measured(any(random));
  }
}

}  // namespace
}  // namespace spark::staging
