#include "staging/copy/transfer/thread_gate.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace spark::staging {
namespace {

using std::chrono::milliseconds;

// Batches of one unit each, `apart` in time.
void do_batches(ThreadGate& gate, int batches, milliseconds apart, SteadyTime& now) {
  for (int i = 0; i < batches; ++i) gate.did(1, now += apart);
}

TEST(ThreadGate, BeginsWithTheFirstThreads) {
  ThreadGate gate(ThreadSearch({2, 1, 4}));
  EXPECT_TRUE(gate.may_work(0));
  EXPECT_TRUE(gate.may_work(1));
  EXPECT_FALSE(gate.may_work(2));
}

TEST(ThreadGate, AllowsMoreThreadsAfterAMeasurement) {
  ThreadGate gate(ThreadSearch({2, 1, 4}));
  SteadyTime now{};
  do_batches(gate, 1000, milliseconds(0), now);
  EXPECT_FALSE(gate.may_work(3)) << "no time has passed";
  do_batches(gate, 1, milliseconds(100), now);
  EXPECT_TRUE(gate.may_work(3));
}

TEST(ThreadGate, AFewBatchesAreNotAMeasurement) {
  ThreadGate gate(ThreadSearch({2, 1, 4}));
  SteadyTime now{};
  do_batches(gate, 5, milliseconds(1000), now);
  EXPECT_FALSE(gate.may_work(3));
  do_batches(gate, 1, milliseconds(1000), now);
  EXPECT_TRUE(gate.may_work(3));
}

TEST(ThreadGate, AWaitingThreadContinuesWhenAllowed) {
  ThreadGate gate(ThreadSearch({1, 1, 2}));
  std::jthread waits([&] { EXPECT_TRUE(gate.wait(1)); });
  SteadyTime now{};
  do_batches(gate, 3, milliseconds(100), now);
  EXPECT_TRUE(gate.may_work(1));
}

TEST(ThreadGate, WaitingThreadsEndWhenTheGateCloses) {
  ThreadGate gate(ThreadSearch({1, 1, 4}));
  std::vector<std::jthread> waiting;
  for (unsigned thread = 1; thread < 4; ++thread)
    waiting.emplace_back([&gate, thread] { EXPECT_FALSE(gate.wait(thread)); });
  gate.close();
  waiting.clear();
  EXPECT_TRUE(gate.wait(0));
  EXPECT_FALSE(gate.wait(1));
}

}  // namespace
}  // namespace spark::staging
