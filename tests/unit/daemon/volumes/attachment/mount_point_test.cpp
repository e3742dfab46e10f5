// Protection against writes under a volume's mount point while it is not mounted.
#include <gmock/gmock.h>

#include "tests/unit/daemon/volumes/volume_fixture.hpp"

namespace spark::volumes {
namespace {

using namespace test;

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(VolumeTest, TheMountPointIsGuardedBeforeTheTargetIsReached) {
  world.target_up = false;
  world.while_connecting = [] { ADD_FAILURE() << "there is no target"; };
  start();
  ASSERT_TRUE(run_until([&] { return world.count("discover") > 0; }));
  EXPECT_FALSE(world.guarded.empty());
}

TEST_F(VolumeTest, TheMountPointOfAVolumeThatStartsDownIsGuarded) {
  world.intent = Intent{false, clock.wall(), "an operator"};
  start();
  ASSERT_TRUE(becomes(State::Down));
  EXPECT_FALSE(world.guarded.empty());
}

TEST_F(VolumeTest, TheMountPointBelowAnExistingMountIsGuarded) {
  world.plug_in(kNqn);
  world.mount("/mnt/data", true, world.block->device_number);
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_TRUE(world.guarded.front()) << "what is mounted there is the volume";
}

TEST_F(VolumeTest, AMountMayNotHideFilesOfAMountPointInOtherUse) {
  world.guard = {false, "", {"thesis"}};
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_FALSE(world.last_mount.may_hide_files) << "so the mount is refused";
  EXPECT_THAT(all_warnings(volume->status()), IsEmpty());
}

TEST_F(VolumeTest, AWarningNamesFilesHiddenByTheMountUntilTheyAreGone) {
  world.guard = {true, "", {"a", "b", "c", "d"}};
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_TRUE(world.last_mount.may_hide_files);
  EXPECT_THAT(all_warnings(volume->status()), Contains(HasSubstr("hides them: 'a', 'b', 'c' and more - ")));
  world.guard.files.clear();
  world.lose_device();
  ASSERT_TRUE(run_until([&] { return volume->status().history.recoveries() == 1; }));
  EXPECT_THAT(all_warnings(volume->status()), IsEmpty());
}

TEST_F(VolumeTest, AMountPointThatCannotBeGuardedOnlyCausesAWarning) {
  world.guard.gap = "programs can write to /mnt/data while it is not mounted";
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_THAT(all_warnings(volume->status()), Contains(world.guard.gap));
}

TEST_F(VolumeTest, AGuardThatDoesNotAnswerOnlyCausesAWarning) {
  world.guard_error = Error{Errc::TimedOut, "guard: no answer within 30 s", ""};
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_THAT(all_warnings(volume->status()), Contains(HasSubstr("no answer within 30 s")));
}

TEST_F(VolumeTest, AVolumeWithAMountOnTopIsRefused) {
  settings.access = config::Access::Exclusive;
  world.reservations.offers = true;
  world.plug_in(kNqn);
  world.mount("/mnt/data", true, world.block->device_number);
  world.mount("/mnt/data", false, 7, "shield", "tmpfs");
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("shield (tmpfs) is mounted on /mnt/data and hides volume datasets"));
  EXPECT_TRUE(world.reservations.state.registrants.empty()) << "it is not written";
  EXPECT_TRUE(world.touched.empty());
}

TEST_F(VolumeTest, AWriterBelowAnotherMountIsFencedLikeAnyOther) {
  settings.access = config::Access::Exclusive;
  world.reservations.offers = true;
  world.plug_in(kNqn);
  world.mount("/mnt/data", false, world.block->device_number);
  world.mount("/mnt/data", false, 7, "shield", "tmpfs");
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("hides volume datasets"));
  EXPECT_EQ(world.reservations.state.registrants.size(), 1U);
}

}  // namespace
}  // namespace spark::volumes
