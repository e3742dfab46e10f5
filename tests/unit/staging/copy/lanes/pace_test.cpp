#include "staging/copy/lanes/pace.hpp"

#include <gtest/gtest.h>

#include "staging/copy/lanes/piece_limit.hpp"

namespace spark::staging {
namespace {

// A run of `total` bytes of large files that has moved `moved` of them.
PaceSample at(double seconds, Bytes moved, Bytes total) {
  PaceSample sample;
  sample.seconds = seconds;
  sample.bytes_moved = moved;
  sample.bytes_left = total - moved;
  return sample;
}

TEST(Pace, ASteadyRateGivesAnAccurateEta) {
  Pace pace;
  for (int quarter = 0; quarter <= 40; ++quarter)
    pace.add(at(quarter / 4.0, quarter * 25 * kMiB, 4000 * kMiB));
  EXPECT_EQ(pace.bytes_per_second(), 100 * kMiB);
  ASSERT_TRUE(pace.eta_s());
  EXPECT_NEAR(*pace.eta_s(), 30, 0.01);
}

TEST(Pace, HasNoEtaInTheFirstMoments) {
  Pace pace;
  pace.add(at(0, 0, 100 * kMiB));
  pace.add(at(0.25, 10 * kMiB, 100 * kMiB));
  EXPECT_FALSE(pace.eta_s());
}

TEST(Pace, TheEtaNeverRisesWhileTheRateFluctuates) {
  Pace pace;
  Bytes moved = 0;
  std::optional<double> last;
  for (int quarter = 0; quarter < 200; ++quarter) {
    moved += (quarter % 8 < 4 ? 30 : 20) * kMiB;
    pace.add(at(quarter / 4.0, moved, 8000 * kMiB));
    if (last) {
      ASSERT_TRUE(pace.eta_s());
      EXPECT_LE(*pace.eta_s(), *last);
    }
    last = pace.eta_s();
  }
  EXPECT_TRUE(last);
}

TEST(Pace, AStalledRunHasNoEtaAndAResumedOneHasANewOne) {
  Pace pace;
  int quarter = 0;
  for (; quarter < 40; ++quarter) pace.add(at(quarter / 4.0, quarter * 25 * kMiB, 4000 * kMiB));
  const Bytes moved = 39 * 25 * kMiB;
  for (; quarter < 80; ++quarter) pace.add(at(quarter / 4.0, moved, 4000 * kMiB));
  EXPECT_FALSE(pace.eta_s());
  EXPECT_EQ(pace.bytes_per_second(), 0U);
  EXPECT_EQ(pace.bottleneck(), "");
  for (int i = 1; i < 40; ++i) pace.add(at((quarter + i) / 4.0, moved + i * 25 * kMiB, 4000 * kMiB));
  ASSERT_TRUE(pace.eta_s());
  EXPECT_NEAR(*pace.eta_s(), 20.5, 1);
}

// The fast part of a drive is full: the estimate must follow, instead of keeping the old end.
TEST(Pace, APermanentSlowdownRaisesTheEta) {
  Pace pace;
  Bytes moved = 0;
  for (int quarter = 0; quarter < 160; ++quarter) {
    moved += (quarter < 40 ? 40 : 5) * kMiB;
    pace.add(at(quarter / 4.0, moved, 8000 * kMiB));
  }
  ASSERT_TRUE(pace.eta_s());
  EXPECT_GT(*pace.eta_s(), 200);
}

TEST(Pace, NamesTheRecentBottleneck) {
  Pace pace;
  PaceSample sample = at(0, 0, 1000);
  pace.add(sample);
  sample.seconds = 1;
  sample.spent_ns[static_cast<std::size_t>(Activity::Source)] = 10;
  sample.spent_ns[static_cast<std::size_t>(Activity::LocalDrive)] = 30;
  pace.add(sample);
  EXPECT_EQ(pace.bottleneck(), "local drive");
  sample.seconds = 20;
  sample.spent_ns[static_cast<std::size_t>(Activity::Source)] = 1000;
  pace.add(sample);
  EXPECT_EQ(pace.bottleneck(), "source");
}

TEST(Pace, SmallFilesCountForMoreThanTheirBytes) {
  Pace pace;
  PaceSample sample;
  for (int second = 0; second <= 10; ++second) {
    sample.seconds = second;
    sample.files_moved = second * 1000;
    sample.files_left = 20000 - sample.files_moved;
    pace.add(sample);
  }
  ASSERT_TRUE(pace.eta_s());
  EXPECT_NEAR(*pace.eta_s(), 10, 0.01);
}

// --- the number of pieces in progress

TEST(PieceLimit, IsHalfASecondsWorthOfPieces) {
  SteadyTime now{};
  PieceLimit limit(now);
  EXPECT_EQ(limit.most(), 2U);
  const auto run = [&](Bytes bytes_per_second, int seconds) {
    for (int i = 0; i < seconds * 100; ++i)
      limit.moved(bytes_per_second / 100, now += std::chrono::milliseconds(10));
  };
  run(1600 * kMiB, 1);
  EXPECT_EQ(limit.most(), 100U);
  run(16 * kMiB, 5);
  EXPECT_EQ(limit.most(), 2U);
  run(320 * kMiB, 5);
  EXPECT_NEAR(static_cast<double>(limit.most()), 20, 1);
}

TEST(PieceLimit, AnInitialBurstIsNotARate) {
  SteadyTime now{};
  PieceLimit limit(now);
  for (int i = 0; i < 4; ++i) limit.moved(kMiB, now += std::chrono::microseconds(100));
  EXPECT_EQ(limit.most(), 2U);
}

TEST(PieceLimit, GrowsAgainSoonAfterAStall) {
  SteadyTime now{};
  PieceLimit limit(now);
  limit.moved(2 * kMiB, now += std::chrono::seconds(30));
  EXPECT_EQ(limit.most(), 2U);
  for (int i = 0; i < 200; ++i) limit.moved(2 * kMiB, now += std::chrono::milliseconds(10));
  EXPECT_GT(limit.most(), 8U);
}

}  // namespace
}  // namespace spark::staging
