#include "base/shares.hpp"

#include <gtest/gtest.h>

using spark::Shares;

namespace {

int enter_all(Shares<int>& shares, int client) {
  int entered = 0;
  while (shares.enter(client)) ++entered;
  return entered;
}

TEST(Shares, AFewClientsLeaveRoomForOthers) {
  Shares<int> shares(512, 128);
  for (int client = 0; client < 3; ++client) EXPECT_EQ(enter_all(shares, client), 128);
  for (int client = 3; client < 11; ++client) EXPECT_EQ(enter_all(shares, client), 16) << client;
  EXPECT_FALSE(shares.enter(11));
  shares.leave(0);
  EXPECT_FALSE(shares.enter(0)) << "it has more than others";
  EXPECT_TRUE(shares.enter(11));
}

TEST(Shares, OneThatLeavesMakesRoomForItself) {
  Shares<int> shares(4, 1);
  EXPECT_TRUE(shares.enter(1));
  EXPECT_FALSE(shares.enter(1));
  shares.leave(1);
  EXPECT_TRUE(shares.enter(1));
}

}  // namespace
