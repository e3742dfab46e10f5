#include "base/threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <new>
#include <stdexcept>

#include "tests/support/thread_limit.hpp"

namespace spark {
namespace {

TEST(Threads, EachNumberRunsOnceAndTheFirstOnTheCallersThread) {
  std::atomic<unsigned> bits{0};
  std::thread::id first;
  const auto ran = run_in_threads(5, [&](std::size_t number) {
    bits ^= 1U << number;
    if (number == 0) first = std::this_thread::get_id();
  });
  EXPECT_EQ(ran.value(), 5u);
  EXPECT_EQ(bits, 0b11111u);
  EXPECT_EQ(first, std::this_thread::get_id());
}

TEST(Threads, ZeroThreadsRunNothing) {
  EXPECT_EQ(run_in_threads(0, [](std::size_t) { ADD_FAILURE(); }).value(), 0u);
}

TEST(Threads, WhenSomeThreadsCannotStartTheOthersRun) {
  for (const int more : {0, 2}) {
    const ThreadLimit limit(more);
    std::atomic<unsigned> bits{0};
    const auto ran = run_in_threads(5, [&](std::size_t number) { bits ^= 1U << number; });
    EXPECT_EQ(ran.value(), static_cast<std::size_t>(more) + 1);
    EXPECT_EQ(bits, (2U << more) - 1);
    EXPECT_EQ(ThreadLimit::refused(), 1);
  }
}

TEST(Threads, AnExceptionIsReturnedAsAnErrorAfterAllThreadsEnd) {
  for (const std::size_t thrower : {0U, 3U}) {
    std::atomic<unsigned> ended{0};
    const auto ran = run_in_threads(5, [&](std::size_t number) {
      if (number == thrower) throw std::bad_alloc();
      ++ended;
    });
    ASSERT_FALSE(ran);
    EXPECT_EQ(ran.error().number, ENOMEM);
    EXPECT_EQ(ran.error().what, "Cannot allocate memory");
    EXPECT_EQ(ended, 4u);
  }
}

TEST(Threads, AnExceptionWakesTheWaitingThreads) {
  std::atomic<bool> is_over{false};
  const auto ran = run_in_threads(
      4,
      [&](std::size_t number) {
        if (number == 2) throw std::runtime_error("a defect");
        is_over.wait(false);
      },
      [&] {
        is_over = true;
        is_over.notify_all();
      });
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().what, "a defect");
}

TEST(Threads, AThreadThatCannotStartIsNotJoinable) {
  const ThreadLimit limit(0);
  EXPECT_FALSE(start_thread([] { ADD_FAILURE(); }).joinable());
}

}  // namespace
}  // namespace spark
