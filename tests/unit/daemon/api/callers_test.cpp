#include "daemon/api/callers.hpp"

#include <gtest/gtest.h>

namespace spark::api {
namespace {

using namespace std::chrono_literals;

TEST(Callers, AnIdleUserSavesUpAtMostOneSecondOfRequests) {
  Callers callers({.user_requests_per_second = 10});
  const Caller user{.uid = 1000};
  SteadyTime now{1h};
  for (int i = 0; i < 10; ++i) EXPECT_EQ(callers.until_turn(user, now), 0s) << i;
  EXPECT_EQ(callers.until_turn(user, now), 100ms);
  EXPECT_EQ(callers.until_turn(user, now), 200ms);
  EXPECT_EQ(callers.until_turn({.uid = 1001}, now), 0s) << "another user has turns of its own";
  now += 24h;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(callers.until_turn(user, now), 0s) << i;
  EXPECT_EQ(callers.until_turn(user, now), 100ms);
}

TEST(Callers, ATurnOfAClientThatHasLeftIsGivenBack) {
  Callers callers({.user_requests_per_second = 10});
  const Caller user{.uid = 1000};
  const SteadyTime now{1h};
  for (int i = 0; i < 10; ++i) EXPECT_EQ(callers.until_turn(user, now), 0s);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(callers.until_turn(user, now), 100ms);
    callers.give_turn_back(user);
  }
}

TEST(Callers, AnUnreadAnswerHoldsUpOnlyItsUsersNextOnes) {
  Callers callers({.user_answers = 4 << 20});
  const Caller user{.uid = 1000}, root{.may_change = true};
  const SteadyTime now{1h};
  EXPECT_EQ(callers.until_room(user, now), 0s);
  callers.keep_answer(user, 5 << 20, now);
  EXPECT_GT(callers.until_room(user, now + 24h), 0s);
  EXPECT_EQ(callers.until_room({.uid = 1001}, now), 0s);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(callers.until_room(root, now), 0s);
  callers.drop_answer(user, 5 << 20);
  EXPECT_EQ(callers.until_room(user, now + 24h), 0s);
}

TEST(Callers, ALargeAnswerCountsAsManyRequests) {
  Callers callers({.user_requests_per_second = 10, .answer_per_request = 1000});
  const Caller user{.uid = 1000}, root{.may_change = true};
  const SteadyTime now{1h};
  for (const Caller& caller : {user, root}) {
    EXPECT_EQ(callers.until_room(caller, now), 0s);
    callers.keep_answer(caller, 50'000, now);
    callers.drop_answer(caller, 50'000);
  }
  EXPECT_EQ(callers.until_room(user, now), 5s);
  EXPECT_EQ(callers.until_room(user, now + 5s), 0s);
  EXPECT_EQ(callers.until_room(root, now), 0s);
}

TEST(Callers, AClosedConnectionMakesRoomForAnother) {
  Callers callers({.user_connections = 1});
  const Caller user{.uid = 1000};
  EXPECT_TRUE(callers.enter(user));
  EXPECT_FALSE(callers.enter(user));
  callers.leave(user);
  EXPECT_TRUE(callers.enter(user));
}

}  // namespace
}  // namespace spark::api
