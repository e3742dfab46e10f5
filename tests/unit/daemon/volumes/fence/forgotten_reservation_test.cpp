// A target that was restarted and forgot its reservations.
#include "tests/support/run_on.hpp"
#include "tests/unit/daemon/volumes/fence/fence_fixture.hpp"

namespace spark::volumes {
namespace {

using namespace test;

using testing::HasSubstr;

TEST_F(FenceTest, AVolumeWithADeadMountReacquiresAReservationTheTargetForgot) {
  let_it_be_held_without_mmp();
  world.reservations.restart();  // nvmet: a namespace that is disabled for a moment has the same effect
  world.lose_device();
  ASSERT_TRUE(run_until([&] { return volume->status().history.recoveries() == 1; }));
  EXPECT_EQ(holder(), FakeWorld::kHostId);
}

TEST_F(FenceTest, AForgottenReservationIsNotReacquiredIfAnotherHostMountedTheFileSystemMeanwhile) {
  let_it_be_held_without_mmp();
  world.reservations.restart();
  world.lose_device();
  ++world.superblock.mounts;
  expect_refused_after_one_mount();
}

TEST_F(FenceTest, AForgottenReservationIsNotReacquiredWithTheDeadMountOfAnotherFileSystem) {
  let_it_be_held_without_mmp();
  settings.nvme->filesystem_uuid = "0000aaaa-1111-2222-3333-444444444444";
  const auto set = await(context, volume->set_live(settings, target));
  ASSERT_TRUE(set && *set);
  world.superblock.uuid = settings.nvme->filesystem_uuid;  // another host's
  world.reservations.restart();
  world.lose_device();
  expect_refused_after_one_mount();
}

// An xfs has no count of mounts: its writer has the superblock written when it mounts.
TEST_F(FenceTest, AForgottenReservationOfAnXfsIsNotReacquiredIfItsSuperblockChangedLongAfterTheLastProbe) {
  target->options.keep_alive = std::chrono::seconds(0);
  let_it_be_held_without_mmp();
  world.superblock.mounts = 0;
  const auto probes = world.count("probe");
  ASSERT_TRUE(run_until([&] { return world.count("probe") >= probes + 2; }));
  world.reservations.restart();
  world.lose_device();
  ++world.superblock.stamp;
  expect_refused_after_one_mount();
}

TEST_F(FenceTest, AForgottenReservationOfAnXfsIsReacquiredBeforeATakeoverCouldHaveMountedIt) {
  let_it_be_held_without_mmp();
  world.superblock.mounts = 0;
  const auto probes = world.count("probe");
  ASSERT_TRUE(run_until([&] { return world.count("probe") >= probes + 2; }));
  world.set_link("connecting");
  ASSERT_TRUE(becomes(State::Stalled));
  world.reservations.restart();
  ++world.superblock.stamp;  // this host's own write
  world.set_link("live");
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(holder(), FakeWorld::kHostId);
}

TEST_F(FenceTest, ARestartedDaemonStopsWritingIfAnotherHostMountedItSinceAndTheTargetForgotThat) {
  let_it_be_held_without_mmp();
  end_daemon();
  world.reservations.restart();
  ++world.superblock.mounts;
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reasons, testing::Contains(HasSubstr("the target forgot the reservation")));
  EXPECT_EQ(world.count("stop writing"), 1);
}

TEST_F(FenceTest, ARestartedDaemonReacquiresAForgottenReservationIfNoOtherHostMountedItSince) {
  let_it_be_held_without_mmp();
  end_daemon();
  world.reservations.restart();
  ++world.superblock.stamp;
  start();
  ASSERT_TRUE(becomes(State::Ready)) << reason();
  EXPECT_EQ(holder(), FakeWorld::kHostId);
  EXPECT_EQ(world.count("stop writing"), 0);
}

TEST_F(FenceTest, ARestartedDaemonStopsWritingIfTheReservationOfItsMountWasTakenAndReleased) {
  let_it_be_held_without_mmp();
  end_daemon();
  let_another_host_hold_it();
  ASSERT_TRUE(nvmetcp::release_reservation(other, kThem));
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reasons, testing::Contains(HasSubstr("was taken from this host")));
  EXPECT_EQ(world.count("stop writing"), 1);
}

TEST_F(FenceTest, ATakeoverHoldsItsReservationAgainIfTheTargetForgotItDuringTheWait) {
  world.superblock.has_mmp = false;
  target->options.keep_alive = std::chrono::seconds(1);
  let_another_host_hold_it();
  start();
  ASSERT_TRUE(becomes(State::Refused));
  boost::asio::steady_timer restart(context, std::chrono::seconds(1));
  restart.async_wait([&](auto) { world.reservations.restart(); });
  ASSERT_TRUE(take());
  EXPECT_EQ(world.count("mount rw"), 1);
  EXPECT_EQ(holder(), FakeWorld::kHostId);
}

TEST_F(FenceTest, ATakeoverBeginsAgainIfAnotherHostMountedItAfterTheTargetForgotTheReservationDuringTheWait) {
  world.superblock.has_mmp = false;
  world.superblock.mounts = 5;
  target->options.keep_alive = std::chrono::seconds(1);
  let_another_host_hold_it();
  start();
  ASSERT_TRUE(becomes(State::Refused));
  boost::asio::steady_timer restart(context, std::chrono::seconds(1));
  restart.async_wait([&](auto) {
    world.reservations.restart();  // and again, after the other host's mount
    ++world.superblock.mounts;
    world.superblock.being_written = true;
  });
  const auto taken = take();
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().what, HasSubstr("during the wait, and its file system was written meanwhile"));
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("has it open for writing, or died while it had"));
  EXPECT_EQ(world.count("mount rw"), 0);
  EXPECT_EQ(holder(), "");
}

// Its writer may come back and hold it again: nothing shows that this host has opened an xfs before that is
// mounted.
TEST_F(FenceTest, ATakeoverWaitsAlsoIfTheTargetForgotTheReservationOfTheWriterBefore) {
  world.superblock.has_mmp = false;
  world.superblock.being_written = true;
  target->options.keep_alive = std::chrono::seconds(1);
  start();
  ASSERT_TRUE(becomes(State::Refused));
  boost::asio::steady_timer restart(context, std::chrono::seconds(1));
  restart.async_wait([&](auto) {
    world.reservations.restart();
    let_another_host_hold_it();
  });
  const auto taken = take();
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().what, HasSubstr("holds the reservation"));
  EXPECT_EQ(world.count("mount rw"), 0);
  EXPECT_EQ(holder(), kOther);
}

// The kernel gives the number of a mount that is gone to the next one.
TEST_F(FenceTest, TheRecordOfAMountThatIsGoneEndsBeforeTheNextMount) {
  let_it_be_held_without_mmp();
  ASSERT_FALSE(world.records[Record::Held].empty());
  bool was_recorded = true;
  world.while_mounting = [&] { was_recorded = !world.records[Record::Held].empty(); };
  world.mounts.clear();
  ASSERT_TRUE(run_until([&] { return world.count("mount rw") == 2; }));
  EXPECT_FALSE(was_recorded);
}

TEST_F(FenceTest, AMountThatAnotherHostsReservationPreventsNamesThatHostAlsoWithMmpAlone) {
  settings.fence = config::Fence::Mmp;
  let_another_host_hold_it();
  world.mount_error = Error{Errc::Failed, "claiming: Invalid exchange", ""};
  start();
  ASSERT_TRUE(becomes(State::Refused)) << reason();
  EXPECT_THAT(reason(), HasSubstr(kOther));
  EXPECT_THAT(reason(), HasSubstr("holds the reservation"));
}

TEST_F(FenceTest, ATakeoverStopsAFlushBeforeTheVolumeLeaves) {
  let_it_be_held_without_mmp();
  world.flush_waits = true;
  std::optional<Result<>> answer;
  auto ask = [](Volume& asked, std::optional<Result<>>& into) -> boost::asio::awaitable<void> {
    into = co_await asked.requests().keep_down("alice");
  };
  boost::asio::co_spawn(context, ask(*volume, answer), boost::asio::detached);
  ASSERT_TRUE(becomes(State::Leaving));
  let_another_host_hold_it();
  ASSERT_TRUE(run_until([&] { return world.count("stop writing") == 1; }));
  ASSERT_TRUE(run_until([&] { return answer.has_value(); }));
  EXPECT_FALSE(*answer) << "some data was not written";
}

TEST_F(FenceTest, AMountThatIsNotAdoptedYetIsCheckedBeforeItIsTakenDown) {
  let_it_be_held_without_mmp();
  end_daemon();
  world.reservations.restart();
  ++world.superblock.mounts;
  start();
  std::optional<Result<>> answer;
  auto ask = [](Volume& asked, std::optional<Result<>>& into) -> boost::asio::awaitable<void> {
    into = co_await asked.requests().keep_down("alice");
  };
  boost::asio::co_spawn(context, ask(*volume, answer), boost::asio::detached);
  ASSERT_TRUE(run_until([&] { return answer.has_value(); }));
  EXPECT_TRUE(*answer) << answer->error().message();
  EXPECT_EQ(world.count("stop writing"), 1);
  EXPECT_EQ(world.count("flush"), 0);
  EXPECT_TRUE(world.mounts.empty());
}

TEST_F(FenceTest, ATakeoverThatADaemonDidNotFinishStillWaitsForTheOtherHostsLastWrites) {
  world.superblock.has_mmp = false;
  target->options.keep_alive = std::chrono::seconds(1);
  let_another_host_hold_it();
  start();
  ASSERT_TRUE(becomes(State::Refused));
  std::optional<Result<std::string>> answer;
  auto ask = [](Volume& asked, std::optional<Result<std::string>>& into) -> boost::asio::awaitable<void> {
    into = co_await asked.requests().take();
  };
  boost::asio::co_spawn(context, ask(*volume, answer), boost::asio::detached);
  ASSERT_TRUE(run_until([&] { return holder() == FakeWorld::kHostId; }));
  end_daemon();
  const auto before = clock.steady();
  start();
  ASSERT_TRUE(becomes(State::Ready)) << reason();
  EXPECT_GE(clock.steady() - before, std::chrono::seconds(3));
}

// Otherwise the next daemon would find the reservation its own, and mount before the wait is over.
TEST_F(FenceTest, ATakeoverWhoseWaitCannotBeRecordedTakesNothing) {
  world.superblock.has_mmp = false;
  target->options.keep_alive = std::chrono::seconds(1);
  let_another_host_hold_it();
  start();
  ASSERT_TRUE(becomes(State::Refused));
  world.is_state_full = true;
  const auto taken = take();
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message(), HasSubstr("nothing was taken over"));
  EXPECT_EQ(holder(), kOther);
  EXPECT_EQ(world.count("mount rw"), 0);
}

TEST_F(FenceTest, MultiMountProtectionTellsTheNextDaemonWithoutARecordThatTheOtherHostMayStillWrite) {
  let_another_host_hold_it();
  let_another_host_open_it();
  start();
  ASSERT_TRUE(becomes(State::Refused));
  world.is_state_full = true;
  (void)take();
  EXPECT_EQ(holder(), FakeWorld::kHostId);
}

TEST_F(FenceTest, AClockThatIsSetBackDoesNotProlongTheWaitForAnotherHostsLastWrites) {
  world.superblock.has_mmp = false;
  target->options.keep_alive = std::chrono::seconds(1);
  const auto tomorrow = clock.wall() + std::chrono::hours(24);
  const auto late = std::chrono::duration_cast<std::chrono::seconds>(tomorrow.time_since_epoch()).count();
  world.records[Record::LateWrites] = {{"until_s", late}};
  start();
  EXPECT_TRUE(becomes(State::Ready)) << reason();
}

TEST_F(FenceTest, AStalledVolumeStopsWritingIfAnotherHostWroteWhileTheTargetHadForgottenTheReservation) {
  let_it_be_held_without_mmp();
  world.set_link("connecting");
  ASSERT_TRUE(becomes(State::Stalled));
  world.reservations.restart();
  ++world.superblock.mounts;  // another host mounted it, wrote, and closed it
  world.set_link("live");
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reasons, testing::Contains(HasSubstr("the target forgot the reservation")));
  EXPECT_EQ(world.count("stop writing"), 1);
}

TEST_F(FenceTest, AStalledVolumeContinuesIfNoOtherHostMountedItWhileTheTargetHadForgottenTheReservation) {
  let_it_be_held_without_mmp();
  world.set_link("connecting");
  ASSERT_TRUE(becomes(State::Stalled));
  world.reservations.restart();
  ++world.superblock.stamp;  // this host's own write
  world.set_link("live");
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(holder(), FakeWorld::kHostId);
  EXPECT_EQ(world.count("stop writing"), 0);
}

}  // namespace
}  // namespace spark::volumes
