#include "fleet/serve/buffer_pool.hpp"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <thread>

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
    const auto loan = pool.take();
    first = loan.get();
  }
  const auto again = pool.take();
  EXPECT_EQ(again.get(), first);
}

TEST(BufferPool, AnAnswerThatEndsWithAnExceptionGivesItsBufferBack) {
  BufferPool pool(1, small_buffer);
  EXPECT_THROW(
      {
        const auto buffer = pool.take();
        throw std::runtime_error("reading");
      },
      std::runtime_error);
  EXPECT_TRUE(pool.take());
}

TEST(BufferPool, ABufferWithoutMemoryTakesNoPlace) {
  bool has_memory = false;
  BufferPool pool(1, [&] { return has_memory ? small_buffer() : throw std::bad_alloc(); });
  EXPECT_THROW(pool.take(), std::bad_alloc);
  has_memory = true;
  EXPECT_TRUE(pool.take());
}

TEST(BufferPool, ALateAnswerGetsTheBufferOfAnEarlierOne) {
  BufferPool pool(1, small_buffer);
  auto loan = pool.take();
  const IoBuffer* const only = loan.get();
  std::thread late([&] { EXPECT_EQ(pool.take().get(), only); });
  loan.reset();
  late.join();
}

}  // namespace
