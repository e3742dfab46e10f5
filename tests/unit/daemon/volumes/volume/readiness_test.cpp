#include "daemon/volumes/volume/readiness.hpp"

#include <gmock/gmock.h>

#include "tests/support/run_on.hpp"
#include "tests/unit/daemon/volumes/volume_fixture.hpp"

namespace spark::volumes {
namespace {

using namespace test;

using testing::HasSubstr;

class ReadinessTest : public VolumeTest {};

TEST_F(ReadinessTest, AReadyVolumeCanBeUsed) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_TRUE(check_ready(*volume));
}

TEST_F(ReadinessTest, AVolumeThatComesUpIsWaitedFor) {
  world.target_up = false;
  start();
  ASSERT_TRUE(run_until([&] { return !reason().empty(); }));
  const auto ready = check_ready(*volume);
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().kind, Errc::Unavailable);
  EXPECT_THAT(ready.error().what, testing::MatchesRegex("volume datasets is waiting since 20.*Z: .*"));
  EXPECT_EQ(ready.error().hint, "`spark-stage wait datasets` ends when it is ready");
}

TEST_F(ReadinessTest, AVolumeTakenDownIsBroughtUpAndNotWaitedFor) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  ASSERT_TRUE(await(context, volume->requests().keep_down("alice", OnDown::Disconnect))
                  .value_or(Result<>(fail(Errc::Failed, "no answer"))));
  const auto ready = check_ready(*volume);
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().kind, Errc::Unavailable);
  EXPECT_EQ(ready.error().what, "volume datasets was taken down by alice");
  EXPECT_EQ(ready.error().hint, "`sudo spark-stage volumes up datasets` brings it up");
}

TEST_F(ReadinessTest, AMountThatAnotherProgramChangedIsNotReadyUntilItIsCheckedWhichIsDueAtOnce) {
  timings.first_retry = timings.longest_retry = std::chrono::hours(1);
  start();
  ASSERT_TRUE(becomes(State::Ready));
  const int before = volume->context().checked->mount.id();
  const mounts::Mount its = world.mounts.front();
  seen.clear();
  reasons.clear();
  world.mounts.clear();
  world.mount("/mnt/data", true, its.device_number);
  const auto is_rechecked = [&] {
    const auto& checked = volume->context().checked;
    return volume->status().state == State::Ready && checked && checked->mount.id() != before;
  };
  EXPECT_TRUE(run_until(is_rechecked)) << reason();
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.front(), State::Recovering);
  EXPECT_EQ(reasons.front(), "another program changed its mount, which is checked");
}

}  // namespace
}  // namespace spark::volumes
