#include "staging/copy/lanes/lane_shares.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace spark::staging {
namespace {

constexpr Bytes kMega = 1'000'000;

class LaneSharesTest : public testing::Test {
 protected:
  SteadyTime now_{};
  PieceLimit limit_{now_};

  void move_for_a_second(Bytes bytes) {
    for (int i = 0; i < 10; ++i) limit_.moved(bytes / 10, now_ += std::chrono::milliseconds(100));
  }
};

TEST_F(LaneSharesTest, UnitsAreForSlowRunsWithReadersAndMoreThanOneLane) {
  const LaneShares shares(&limit_, 8, true);
  EXPECT_TRUE(shares.has_units()) << "the rate is not known yet";
  move_for_a_second(200 * kMega);
  EXPECT_TRUE(shares.has_units());
  EXPECT_FALSE(LaneShares(&limit_, 8, false).has_units());
  EXPECT_FALSE(LaneShares(&limit_, 1, true).has_units());
  EXPECT_FALSE(LaneShares(nullptr, 8, true).has_units());
  move_for_a_second(2000 * kMega);
  EXPECT_FALSE(shares.has_units());
}

TEST_F(LaneSharesTest, NeitherKindGetsAllLanes) {
  move_for_a_second(400 * kMega);
  ASSERT_GT(limit_.most(), 16U);
  for (const std::size_t lanes : {2, 4, 8, 16}) {
    const LaneShares shares(&limit_, lanes, true);
    EXPECT_LT(shares.most_units(), lanes);
    EXPECT_GE(shares.most_units(), 1U);
    EXPECT_LT(shares.most_pieces(), lanes);
    EXPECT_GE(shares.most_pieces(), 1U);
  }
}

TEST_F(LaneSharesTest, LittleIsUnderWayWhileReadersWait) {
  move_for_a_second(400 * kMega);
  LaneShares shares(&limit_, 8, true);
  EXPECT_EQ(shares.most_pieces(), 6U);
  EXPECT_EQ(shares.chunk_of_piece(4 * kMiB), 4 * kMiB);
  shares.wanted();
  EXPECT_EQ(shares.most_pieces(), 2U);
  EXPECT_EQ(shares.chunk_of_piece(4 * kMiB), 512 * kKiB);
  EXPECT_EQ(shares.chunk_of_piece(64 * kKiB), 64 * kKiB);
  for (int i = 0; i < 1000; ++i) shares.moved();
  EXPECT_EQ(shares.most_pieces(), 6U) << "nobody has waited for long";
  EXPECT_EQ(shares.chunk_of_piece(4 * kMiB), 4 * kMiB);
  shares.wanted();
  move_for_a_second(2000 * kMega);
  EXPECT_EQ(shares.chunk_of_piece(4 * kMiB), 4 * kMiB);
  EXPECT_EQ(shares.most_pieces(), limit_.most());
}

}  // namespace
}  // namespace spark::staging
