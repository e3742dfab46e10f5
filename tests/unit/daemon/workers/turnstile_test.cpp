#include "daemon/workers/turnstile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "daemon/token.hpp"
#include "tests/support/run_on.hpp"

namespace spark::workers {
namespace {

using testing::ElementsAre;
namespace asio = boost::asio;

class TurnstileTest : public testing::Test {
 protected:
  // Somebody who comes in, stays until `leave`, and goes.
  struct Visitor {
    explicit Visitor(asio::io_context& context) : leave(context, asio::steady_timer::time_point::max()) {}
    asio::steady_timer leave;
  };

  std::size_t visit(Turnstile& turnstile) {
    visitors.push_back(std::make_unique<Visitor>(context));
    auto stay = [](Turnstile& entered, Visitor& who, std::vector<std::size_t>& order,
                   std::size_t number) -> asio::awaitable<void> {
      const Turnstile::Pass pass = co_await entered.enter();
      order.push_back(number);
      co_await who.leave.async_wait(kToken);
    };
    const std::size_t number = visitors.size() - 1;
    asio::co_spawn(context, stay(turnstile, *visitors.back(), came_in, number), asio::detached);
    return number;
  }
  void settle() {
    context.restart();
    context.poll();
  }

  asio::io_context context;
  std::vector<std::unique_ptr<Visitor>> visitors;
  std::vector<std::size_t> came_in;  // numbers of visitors
};

TEST_F(TurnstileTest, OnlySoManyAreInsideAndTheOthersFollowInTheirOrder) {
  Turnstile turnstile(context.get_executor(), 2, std::chrono::hours(1));
  for (int i = 0; i < 5; ++i) visit(turnstile);
  settle();
  EXPECT_THAT(came_in, ElementsAre(0u, 1u));
  EXPECT_TRUE(turnstile.is_crowded());
  visitors[1]->leave.cancel();
  settle();
  EXPECT_THAT(came_in, ElementsAre(0u, 1u, 2u));
  visitors[0]->leave.cancel();
  visitors[2]->leave.cancel();
  settle();
  EXPECT_THAT(came_in, ElementsAre(0u, 1u, 2u, 3u, 4u));
  EXPECT_FALSE(turnstile.is_crowded());
}

TEST_F(TurnstileTest, WhenAllHaveLeftThereIsRoomForAsManyAgain) {
  Turnstile turnstile(context.get_executor(), 2, std::chrono::hours(1));
  for (int i = 0; i < 3; ++i) visit(turnstile);
  settle();
  for (auto& visitor : visitors) visitor->leave.cancel();
  settle();
  visitors[2]->leave.cancel();  // it was not inside yet when the others were sent away
  settle();
  for (int i = 0; i < 3; ++i) visit(turnstile);
  settle();
  EXPECT_THAT(came_in, ElementsAre(0u, 1u, 2u, 3u, 4u));
}

TEST_F(TurnstileTest, WhoIsInsideForLongHoldsNobodyUpAndCountsOnce) {
  Turnstile turnstile(context.get_executor(), 1, std::chrono::milliseconds(20));
  visit(turnstile);
  visit(turnstile);
  ASSERT_TRUE(run_until(context, [&] { return came_in.size() == 2; }));
  visitors[0]->leave.cancel();  // gone long since, as far as room is concerned
  settle();
  visitors[1]->leave.cancel();
  settle();
  visit(turnstile);
  settle();
  EXPECT_EQ(came_in.size(), 3u);
}

TEST_F(TurnstileTest, ItsEndLeavesThoseInsideAlone) {
  auto turnstile = std::make_unique<Turnstile>(context.get_executor(), 1, std::chrono::hours(1));
  visit(*turnstile);
  settle();
  turnstile.reset();
  visitors[0]->leave.cancel();
  settle();
  EXPECT_THAT(came_in, ElementsAre(0u));
}

}  // namespace
}  // namespace spark::workers
