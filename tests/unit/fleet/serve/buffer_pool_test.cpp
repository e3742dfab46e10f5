#include "fleet/serve/buffer_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace spark::fleet;
using spark::staging::IoBuffer;

namespace {

std::unique_ptr<IoBuffer> small_buffer() {
  return std::make_unique<IoBuffer>(spark::staging::kLargestAlignment);
}

TEST(BufferPool, ABufferIsUsedAgain) {
  BufferPool pool(2, small_buffer);
  const IoBuffer* first = nullptr;
  {
    const auto loan = pool.take("a");
    first = loan.get();
  }
  const auto again = pool.take("a");
  EXPECT_EQ(again.get(), first);
}

TEST(BufferPool, AnAnswerThatEndsWithAnExceptionGivesItsBufferBack) {
  BufferPool pool(1, small_buffer);
  EXPECT_THROW(
      {
        const auto buffer = pool.take("a");
        throw std::runtime_error("reading");
      },
      std::runtime_error);
  EXPECT_TRUE(pool.take("a"));
}

TEST(BufferPool, ABufferWithoutMemoryTakesNoPlace) {
  bool has_memory = false;
  BufferPool pool(1, [&] { return has_memory ? small_buffer() : throw std::bad_alloc(); });
  EXPECT_THROW(pool.take("a"), std::bad_alloc);
  has_memory = true;
  EXPECT_TRUE(pool.take("a"));
}

TEST(BufferPool, ALateAnswerGetsTheBufferOfAnEarlierOne) {
  BufferPool pool(1, small_buffer);
  auto loan = pool.take("a");
  const IoBuffer* const only = loan.get();
  std::thread late([&] { EXPECT_EQ(pool.take("a").get(), only); });
  loan.reset();
  late.join();
}

TEST(BufferPool, SlowClientsThatHaveAllBuffersKeepNoneFromAnother) {
  int made = 0;
  BufferPool pool(8, [&] {
    ++made;
    return small_buffer();
  });
  std::vector<BufferPool::Loan> slow;
  for (int i = 0; i < 4; ++i) {
    slow.push_back(pool.take("slow"));
    slow.push_back(pool.take("slow too"));
  }
  const auto loan = pool.take("fast");  // waits for neither of them
  EXPECT_EQ(made, 9);
  EXPECT_EQ(pool.in_use(), 9u);
  slow.clear();
  EXPECT_EQ(pool.in_use(), 1u);
  for (int i = 0; i < 6; ++i) slow.push_back(pool.take("fast"));
  EXPECT_EQ(made, 9) << "eight are kept";
}

TEST(BufferPool, AClientWithMoreThanItsShareGetsNoMoreUntilTheOtherHasEnded) {
  BufferPool pool(4, small_buffer);
  std::vector<BufferPool::Loan> many;
  for (int i = 0; i < 2; ++i) many.push_back(pool.take("many"));
  auto other = pool.take("other");
  std::atomic<bool> has_more{false};
  std::thread asking([&] {
    const auto more = pool.take("many");
    has_more = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(has_more);
  other.reset();
  asking.join();
}

TEST(BufferPool, SlowClientsTogetherDoNotTakeMoreThanFourTimesAsMany) {
  BufferPool pool(1, small_buffer);
  std::vector<BufferPool::Loan> slow;
  for (const char* name : {"a", "b", "c", "d"}) slow.push_back(pool.take(name));
  std::atomic<bool> has_one{false};
  std::thread late([&] {
    const auto loan = pool.take("e");
    has_one = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(has_one);
  slow.pop_back();
  late.join();
  EXPECT_TRUE(has_one);
}

}  // namespace
