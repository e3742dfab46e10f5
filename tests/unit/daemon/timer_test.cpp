#include "daemon/timer.hpp"

#include <gtest/gtest.h>

#include <string>

#include "daemon/event.hpp"
#include "tests/histories/engine/virtual_time.hpp"
#include "tests/support/run_on.hpp"

namespace spark {
namespace {

using histories::VirtualTime;

class TimerTest : public testing::Test {
 protected:
  void wait_for(Timer& timer, const std::string& name) {
    auto wait = [](Timer& its_timer, std::string its_name, std::string& into) -> asio::awaitable<void> {
      const bool has_come = co_await its_timer.wait();
      into += its_name + (has_come ? " " : "(cancelled) ");
    };
    asio::co_spawn(context, wait(timer, name, seen), asio::detached);
  }

  std::string seen;
  asio::io_context context;
};

class VirtualTimerTest : public TimerTest {
 protected:
  VirtualTimerTest() { time.attach(context); }

  VirtualTime time{WallTime(std::chrono::hours(24))};
};

TEST_F(TimerTest, FollowsTheSystemsClockUnlessItsContextHasATimeSource) {
  Timer timer(context.get_executor());
  timer.expires_after(Duration(1));
  wait_for(timer, "a");
  EXPECT_TRUE(run_until(context, [&] { return seen == "a "; }));
}

TEST_F(TimerTest, AMomentPastTheEndOfTimeIsNever) {
  Timer timer(context.get_executor());
  timer.expires_after(Duration::max());
  wait_for(timer, "a");
  context.poll();
  EXPECT_EQ(seen, "");
  timer.cancel();
  context.restart();
  context.poll();
  EXPECT_EQ(seen, "a(cancelled) ");
}

TEST_F(VirtualTimerTest, AnHourPassesAtOnceAndInOrder) {
  Timer late(context.get_executor()), early(context.get_executor());
  late.expires_after(std::chrono::hours(1));
  early.expires_after(std::chrono::minutes(1));
  wait_for(late, "late");
  wait_for(early, "early");
  time.run_for(std::chrono::minutes(59));
  EXPECT_EQ(seen, "early ");
  time.run_for(std::chrono::minutes(1));
  EXPECT_EQ(seen, "early late ");
  EXPECT_EQ(time.elapsed(), std::chrono::hours(1));
}

TEST_F(VirtualTimerTest, ANewMomentEndsTheWaitForTheOldOne) {
  Timer timer(context.get_executor());
  timer.expires_after(Duration(10));
  wait_for(timer, "first");
  time.run_ready();
  timer.expires_after(Duration(20));
  wait_for(timer, "second");
  time.run_for(Duration(30));
  EXPECT_EQ(seen, "first(cancelled) second ");
}

TEST_F(VirtualTimerTest, AWaitThatBeginsAfterItsMomentEndsAtOnce) {
  Timer timer(context.get_executor());
  timer.expires_after(Duration(10));
  time.run_for(Duration(20));
  wait_for(timer, "late");
  time.run_ready();
  EXPECT_EQ(seen, "late ");
}

TEST_F(VirtualTimerTest, WorkIsDoneAtItsMomentAndNotIfCancelled) {
  Timer kept(context.get_executor()), cancelled(context.get_executor());
  kept.expires_after(Duration(10));
  kept.then([&] { seen += "kept "; });
  cancelled.expires_after(Duration(10));
  cancelled.then([&] { seen += "cancelled "; });
  cancelled.cancel();
  time.run_for(Duration(20));
  EXPECT_EQ(seen, "kept ");
}

TEST_F(VirtualTimerTest, ACancellationAlsoEndsWaitsThatBeganAfterTheirMoment) {
  Timer timer(context.get_executor());
  timer.expires_after(Duration(0));
  timer.then([&] { seen += "work "; });
  timer.cancel();
  wait_for(timer, "a");
  asio::post(context, [&] {
    timer.cancel();
    EXPECT_EQ(seen, "") << "it ends through the executor";
  });
  time.run_ready();
  EXPECT_EQ(seen, "a(cancelled) ");
}

TEST_F(VirtualTimerTest, WhatIsDueIsNotCancelledAnyMore) {
  Timer timer(context.get_executor()), other(context.get_executor());
  timer.expires_after(Duration(10));
  other.expires_after(Duration(10));
  other.then([&] { timer.cancel(); });
  wait_for(timer, "a");
  time.run_for(Duration(20));
  EXPECT_EQ(seen, "a ");
}

TEST_F(VirtualTimerTest, AfterACancellationTheMomentStays) {
  Timer timer(context.get_executor());
  timer.expires_after(Duration(10));
  wait_for(timer, "first");
  time.run_ready();
  timer.cancel();
  wait_for(timer, "second");
  time.run_ready();
  EXPECT_EQ(seen, "first(cancelled) ");
  time.run_for(Duration(10));
  EXPECT_EQ(seen, "first(cancelled) second ");
}

TEST_F(VirtualTimerTest, AKilledDaemonsTimersAreGone) {
  auto killed = std::make_unique<asio::io_context>();
  time.attach(*killed);
  auto wait = [](asio::any_io_executor executor, std::string& into) -> asio::awaitable<void> {
    Timer timer(executor);
    timer.expires_after(Duration(10));
    co_await timer.wait();
    into += "alive ";
  };
  asio::co_spawn(*killed, wait(killed->get_executor(), seen), asio::detached);
  time.run_ready();
  time.detach(*killed);
  killed.reset();
  time.run_for(Duration(20));
  EXPECT_EQ(seen, "");
}

TEST_F(VirtualTimerTest, TheWallClockMayJumpWithoutAnEffectOnTimers) {
  const WallTime before = time.wall();
  Timer timer(context.get_executor());
  timer.expires_after(Duration(10));
  wait_for(timer, "a");
  time.run_ready();
  time.shift_wall(-std::chrono::hours(1));
  time.run_for(Duration(10));
  EXPECT_EQ(seen, "a ");
  EXPECT_EQ(time.wall(), before - std::chrono::hours(1) + Duration(10));
}

TEST_F(VirtualTimerTest, AnEventWakesAllThatWaitForIt) {
  Event event(context.get_executor());
  auto wait = [](Event& its_event, std::string& into) -> asio::awaitable<void> {
    co_await its_event.wait();
    into += "woken ";
  };
  asio::co_spawn(context, wait(event, seen), asio::detached);
  asio::co_spawn(context, wait(event, seen), asio::detached);
  time.run_ready();
  event.notify();
  time.run_ready();
  EXPECT_EQ(seen, "woken woken ");
}

}  // namespace
}  // namespace spark
