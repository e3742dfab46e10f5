#include "cli/view/progress.hpp"

#include <gtest/gtest.h>

namespace spark::cli {
namespace {

using namespace std::chrono_literals;

constexpr Bytes kTotal = 100'000;

class EtaTest : public ::testing::Test {
 protected:
  // Simulates copying at a constant rate, with four samples per second.
  void copy_for(std::chrono::seconds seconds, Bytes per_second) {
    for (int i = 0; i < 4 * seconds.count(); ++i) {
      now += 250ms;
      done = std::min(kTotal, done + per_second / 4);
      eta.update(now, done, kTotal);
    }
  }

  Eta eta;
  SteadyTime now{1h};
  Bytes done = 0;
};

TEST_F(EtaTest, SaysNothingBeforeItKnows) {
  EXPECT_EQ(eta.left(now), std::nullopt);
  eta.update(now, 0, kTotal);
  copy_for(1s, 1000);
  EXPECT_EQ(eta.left(now), std::nullopt);
}

TEST_F(EtaTest, CountsDownAtASteadyRate) {
  eta.update(now, 0, kTotal);
  copy_for(10s, 1000);
  EXPECT_EQ(eta.left(now), 90s);
  copy_for(40s, 1000);
  EXPECT_EQ(eta.left(now), 50s);
}

TEST_F(EtaTest, DoesNotCountResumedBytesAsSpeed) {
  done = 90'000;
  eta.update(now, done, kTotal);
  copy_for(5s, 1000);
  EXPECT_EQ(eta.left(now), 5s);
}

TEST_F(EtaTest, DoesNotRiseWhileTheRateOnlyWavers) {
  eta.update(now, 0, kTotal);
  copy_for(10s, 1000);
  auto last = *eta.left(now);
  for (int i = 0; i < 60; ++i) {
    copy_for(1s, i % 2 == 0 ? 800 : 1200);
    ASSERT_TRUE(eta.left(now));
    EXPECT_LE(*eta.left(now), last) << i;
    last = *eta.left(now);
  }
}

TEST_F(EtaTest, AdmitsAClearlySlowerRate) {
  eta.update(now, 0, kTotal);
  copy_for(10s, 1000);
  copy_for(60s, 200);
  EXPECT_GT(*eta.left(now), 250s);
}

TEST_F(EtaTest, IsSilentWhileStalledAndHonestAfterwards) {
  eta.update(now, 0, kTotal);
  copy_for(10s, 1000);
  EXPECT_FALSE(eta.is_stalled(now));
  copy_for(60s, 0);
  EXPECT_TRUE(eta.is_stalled(now));
  EXPECT_EQ(eta.left(now), std::nullopt);
  copy_for(10s, 500);
  EXPECT_FALSE(eta.is_stalled(now));
  EXPECT_NEAR(static_cast<double>(eta.left(now)->count()), (kTotal - done) / 500.0, 2);
}

TEST_F(EtaTest, IsNotStalledWhenDone) {
  eta.update(now, kTotal, kTotal);
  now += 1h;
  EXPECT_FALSE(eta.is_stalled(now));
}

}  // namespace
}  // namespace spark::cli
