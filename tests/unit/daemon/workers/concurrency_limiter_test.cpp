#include "daemon/workers/concurrency_limiter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/steady_timer.hpp>

#include <memory>
#include <vector>

#include "daemon/token.hpp"
#include "tests/support/run_on.hpp"

namespace spark::workers {
namespace {

using testing::ElementsAre;
namespace asio = boost::asio;

class ConcurrencyLimiterTest : public testing::Test {
 protected:
  // A coroutine that enters, stays until `leave`, and exits.
  struct Visitor {
    explicit Visitor(asio::io_context& context) : leave(context, asio::steady_timer::time_point::max()) {}
    asio::steady_timer leave;
  };

  std::size_t visit(ConcurrencyLimiter& limiter) {
    visitors.push_back(std::make_unique<Visitor>(context));
    auto stay = [](ConcurrencyLimiter& entered, Visitor& who, std::vector<std::size_t>& order,
                   std::size_t number) -> asio::awaitable<void> {
      const ConcurrencyLimiter::Pass pass = co_await entered.enter();
      order.push_back(number);
      co_await who.leave.async_wait(kToken);
    };
    const std::size_t number = visitors.size() - 1;
    asio::co_spawn(context, stay(limiter, *visitors.back(), came_in, number), asio::detached);
    return number;
  }
  void settle() {
    context.restart();
    context.poll();
  }

  asio::io_context context;
  std::vector<std::unique_ptr<Visitor>> visitors;
  std::vector<std::size_t> came_in;  // numbers of the visitors that entered
};

TEST_F(ConcurrencyLimiterTest, CallersOverTheLimitWaitAndEnterInOrder) {
  ConcurrencyLimiter limiter(context.get_executor(), 2, std::chrono::hours(1));
  for (int i = 0; i < 5; ++i) visit(limiter);
  settle();
  EXPECT_THAT(came_in, ElementsAre(0u, 1u));
  EXPECT_TRUE(limiter.is_crowded());
  visitors[1]->leave.cancel();
  settle();
  EXPECT_THAT(came_in, ElementsAre(0u, 1u, 2u));
  visitors[0]->leave.cancel();
  visitors[2]->leave.cancel();
  settle();
  EXPECT_THAT(came_in, ElementsAre(0u, 1u, 2u, 3u, 4u));
  EXPECT_FALSE(limiter.is_crowded());
}

TEST_F(ConcurrencyLimiterTest, TheFullLimitIsAvailableAgainAfterAllHaveLeft) {
  ConcurrencyLimiter limiter(context.get_executor(), 2, std::chrono::hours(1));
  for (int i = 0; i < 3; ++i) visit(limiter);
  settle();
  for (auto& visitor : visitors) visitor->leave.cancel();
  settle();
  visitors[2]->leave.cancel();  // it had not entered yet when the others were cancelled
  settle();
  for (int i = 0; i < 3; ++i) visit(limiter);
  settle();
  EXPECT_THAT(came_in, ElementsAre(0u, 1u, 2u, 3u, 4u));
}

TEST_F(ConcurrencyLimiterTest, ASlowCallerStopsCountingAgainstTheLimit) {
  ConcurrencyLimiter limiter(context.get_executor(), 1, std::chrono::milliseconds(20));
  visit(limiter);
  visit(limiter);
  ASSERT_TRUE(run_until(context, [&] { return came_in.size() == 2; }));
  visitors[0]->leave.cancel();  // no longer counts against the limit
  settle();
  visitors[1]->leave.cancel();
  settle();
  visit(limiter);
  settle();
  EXPECT_EQ(came_in.size(), 3u);
}

TEST_F(ConcurrencyLimiterTest, DestroyingTheLimiterDoesNotAffectCallersInside) {
  auto limiter = std::make_unique<ConcurrencyLimiter>(context.get_executor(), 1, std::chrono::hours(1));
  visit(*limiter);
  settle();
  limiter.reset();
  visitors[0]->leave.cancel();
  settle();
  EXPECT_THAT(came_in, ElementsAre(0u));
}

}  // namespace
}  // namespace spark::workers
