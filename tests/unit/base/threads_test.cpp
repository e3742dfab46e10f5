#include "base/threads.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/support/thread_limit.hpp"

namespace spark {
namespace {

TEST(Threads, EachNumberRunsOnceAndTheFirstOnTheCallersThread) {
  std::atomic<unsigned> bits{0};
  std::thread::id first;
  const std::size_t ran = run_in_threads(5, [&](std::size_t number) {
    bits ^= 1U << number;
    if (number == 0) first = std::this_thread::get_id();
  });
  EXPECT_EQ(ran, 5u);
  EXPECT_EQ(bits, 0b11111u);
  EXPECT_EQ(first, std::this_thread::get_id());
}

TEST(Threads, NoneRunNothing) {
  EXPECT_EQ(run_in_threads(0, [](std::size_t) { ADD_FAILURE(); }), 0u);
}

TEST(Threads, WhereThereAreTooFewTheOthersDoTheWork) {
  for (const int more : {0, 2}) {
    const ThreadLimit limit(more);
    std::atomic<unsigned> bits{0};
    const std::size_t ran = run_in_threads(5, [&](std::size_t number) { bits ^= 1U << number; });
    EXPECT_EQ(ran, static_cast<std::size_t>(more) + 1);
    EXPECT_EQ(bits, (2U << more) - 1);
    EXPECT_EQ(ThreadLimit::refused(), 1);
  }
}

TEST(Threads, AThreadThatCantBeStartedIsNone) {
  const ThreadLimit limit(0);
  EXPECT_FALSE(start_thread([] { ADD_FAILURE(); }).joinable());
}

}  // namespace
}  // namespace spark
