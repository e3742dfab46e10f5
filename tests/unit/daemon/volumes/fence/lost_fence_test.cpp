// A mount that this host may no longer write: it is unmounted only if nothing more can be written.
#include "daemon/volumes/release_step.hpp"
#include "tests/support/run_on.hpp"
#include "tests/unit/daemon/volumes/fence/fence_fixture.hpp"

namespace spark::volumes {
namespace {

using namespace test;

using testing::HasSubstr;

TEST_F(FenceTest, AMountWhoseWritesCouldNotBeStoppedIsNotUnmounted) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.stop_error = Error{Errc::TimedOut, "no answer within 20 s", ""};
  let_another_host_hold_it();
  ASSERT_TRUE(run_until([&] { return world.count("stop writing") > 2; })) << "it is tried again";
  EXPECT_THAT(reason(), HasSubstr("the dead mount stays: no answer within 20 s"));
  EXPECT_EQ(world.count("unmount"), 0);
  world.stop_error.reset();
  ASSERT_TRUE(run_until([&] { return world.mounts.empty(); }));
  EXPECT_EQ(world.count("unmount"), 1);
}

// Before 6.15, Linux writes its superblock: after the link is back, and after what the other host has
// written.
TEST_F(FenceTest, AShutDownExt4IsNotUnmountedWhileItsLinkIsDown) {
  timings.leave = Duration(5);
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.unmount_error = Error{Errc::Refused, "/mnt/data is in use by python3 (pid 7)", "end it first"};
  let_another_host_hold_it();
  ASSERT_TRUE(run_until([&] { return world.count("unmount") > 0; }));
  world.set_link("connecting");
  ASSERT_TRUE(run_until([&] { return reason().find("no path to the target is live") != std::string::npos; }))
      << reason();
  EXPECT_THAT(reason(), HasSubstr("the dead mount stays"));
  world.unmount_error.reset();
  const auto unmounts = world.count("unmount");
  const auto down = await(context, volume->requests().keep_down("alice"));
  ASSERT_TRUE(down && !*down);
  EXPECT_THAT(down->error().message(),
              HasSubstr("no path to the target is live, and its unmount would write"));
  EXPECT_THAT(down->error().message(), HasSubstr("`sudo nvme disconnect -n raid5-data` ends the mount"));
  EXPECT_EQ(world.count("unmount"), unmounts);
  world.set_link("live");
  EXPECT_TRUE(run_until([&] { return world.mounts.empty(); }));
}

TEST_F(FenceTest, ABrokenExt4IsNotUnmountedUntilTheTargetSaysWhoHasIt) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.while_confirming = [this] { world.answers = !world.shut_down; };
  world.shut_down = true;
  ASSERT_TRUE(run_until([&] { return reason().find("no answer") != std::string::npos; })) << reason();
  EXPECT_EQ(world.count("unmount"), 0);
  world.while_confirming = [] {};
  world.answers = true;
  EXPECT_TRUE(run_until([&] { return world.count("unmount") > 0; }));
}

TEST_F(FenceTest, AnExt4ThatOnlyMmpKeptOutIsCutOffAndNotUnmounted) {
  world.reservations.offers = false;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  let_another_host_open_it();
  ASSERT_TRUE(run_until([&] { return world.count("cut off") > 0; })) << reason();
  ASSERT_TRUE(run_until([&] { return reason().find("host 'spark2' has it open") != std::string::npos; }))
      << reason();
  EXPECT_EQ(world.count("unmount"), 0);
  EXPECT_EQ(world.count("mount rw"), 1);
}

// By then its writes are no longer refused.
TEST_F(FenceTest, AnExt4WhoseTakerHasGivenTheReservationBackIsCutOff) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.unmount_error = Error{Errc::Refused, "/mnt/data is in use by python3 (pid 7)", "end it first"};
  let_another_host_hold_it();
  ASSERT_TRUE(run_until([&] { return world.count("unmount") > 0; }));
  EXPECT_EQ(world.count("cut off"), 0) << "the target refuses its writes";
  ASSERT_TRUE(nvmetcp::release_reservation(other, kThem));
  ASSERT_TRUE(run_until([&] { return world.count("cut off") > 0; })) << reason();
}

TEST_F(FenceTest, AnXfsThatWasShutDownIsUnmountedAlthoughItsLinkIsDown) {
  world.superblock.type = "xfs";
  world.superblock.has_mmp = false;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.mounts.back().type = "xfs";
  world.unmount_error = Error{Errc::Refused, "/mnt/data is in use by python3 (pid 7)", "end it first"};
  let_another_host_hold_it();
  ASSERT_TRUE(run_until([&] { return world.count("unmount") > 0; }));
  world.set_link("connecting");
  world.unmount_error.reset();
  EXPECT_TRUE(run_until([&] { return world.mounts.empty(); }));
}

TEST_F(FenceTest, AHostThatTakesItOverWhileItIsAdoptedStopsWritingHere) {
  world.superblock.has_mmp = false;
  world.superblock.mmp_node.clear();
  world.plug_in(kNqn);
  world.mount("/mnt/data", false, world.block->device_number);
  world.while_reserving = [&] { let_another_host_hold_it(); };
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr(kOther));
  EXPECT_EQ(world.count("stop writing"), 1);
}

TEST_F(FenceTest, AMountAtAnotherPlaceStopsWritingWhenAnotherHostTakesOver) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.mounts.clear();  // by a person, who keeps this one
  world.mount("/mnt/other", false, world.block->device_number);
  let_another_host_hold_it();
  ASSERT_TRUE(run_until([&] { return world.count("stop writing") > 0; }));
  world.shut_down = true;
  const auto stopped = world.count("stop writing");
  EXPECT_THAT(world.mounts, testing::SizeIs(1)) << "it is the person's";
  ASSERT_TRUE(run_until([&] { return reason().find("was shut down there") != std::string::npos; }))
      << reason();
  EXPECT_LE(world.count("stop writing"), stopped + 1);
}

TEST_F(FenceTest, AMountAtAnotherPlaceIsLeftAloneIfItOnlyReads) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.mounts.clear();
  world.mount("/mnt/other", true, world.block->device_number);
  let_another_host_hold_it();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("holds the reservation"));
  EXPECT_EQ(world.count("stop writing"), 0);
}

// A copy of this host: the target takes the two for one, and does not refuse the writes of either.
TEST_F(FenceTest, AMountAtAnotherPlaceIsLeftAloneIfACopyOfThisHostHoldsTheReservation) {
  sim::SimulatedReservations copy{world.reservations, FakeWorld::kHostId};
  ASSERT_TRUE(nvmetcp::take_reservation(copy, {FakeWorld::kHostId, 99}));
  world.plug_in(kNqn);
  world.mount("/mnt/other", false, world.block->device_number);
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("this host's own host ID"));
  EXPECT_EQ(world.count("stop writing"), 0);
}

class ExchangedDiskTest : public FenceTest {
 protected:
  void exchange_the_disk() {
    start();
    ASSERT_TRUE(becomes(State::Ready));
    world.mounted_uuid = kUuid;
    world.superblock.uuid = "99999999-bbbb-cccc-dddd-eeeeeeeeeeee";
  }
};

TEST_F(ExchangedDiskTest, AConnectionOfAnotherProgramKeepsTheMount) {
  exchange_the_disk();
  world.controllers.front().owner = "stas";
  ASSERT_TRUE(run_until([&] { return reason().find("nvme7 belongs to stas") != std::string::npos; }))
      << reason();
  EXPECT_EQ(world.count("unmount"), 0);
}

TEST_F(ExchangedDiskTest, AMountWhoseWritesCouldNotBeStoppedIsNotCutOff) {
  world.stop_error = Error{Errc::TimedOut, "stopping all writes: no answer within 20 s", ""};
  exchange_the_disk();
  ASSERT_TRUE(run_until([&] { return world.count("stop writing") > 2; })) << "it is tried again";
  EXPECT_EQ(world.count("cut off"), 0) << "the kernel would flush it";
}

TEST_F(ExchangedDiskTest, AConnectionThatCannotBeEndedKeepsTheMount) {
  exchange_the_disk();
  world.disconnect_error = Error{Errc::TimedOut, "the kernel has not finished", ""};
  ASSERT_TRUE(run_until([&] { return world.count("cut off") > 2; })) << "it is tried again";
  EXPECT_THAT(reason(), HasSubstr("would write to /dev/nvme7n1, and the kernel has not finished"));
  EXPECT_EQ(world.count("unmount"), 0);
}

// MikroTik's bare slot names, for example: another volume has namespace 2 of another target.
TEST_F(ExchangedDiskTest, AMountOfAnotherTargetsNamespaceDoesNotKeepTheConnection) {
  exchange_the_disk();
  world.plug_in_other(kNqn);
  const auto& theirs = *world.others.begin()->second;
  world.mount("/mnt/logs", false, theirs.device_number, "/dev/nvme9n1");
  EXPECT_TRUE(run_until([&] { return world.count("cut off") > 0; })) << reason();
}

TEST_F(ExchangedDiskTest, AMountTableThatCannotBeReadKeepsTheConnection) {
  exchange_the_disk();
  world.mount_table_readable = false;
  EXPECT_FALSE(loose_connection(volume->context().seams, settings));
}

// An older one may be of a former mount with the same number.
TEST_F(FenceTest, ARecordThatCannotBeRenewedIsRemoved) {
  let_it_be_held_without_mmp();
  world.is_state_full = true;
  world.superblock.mounts = 0;
  ++world.superblock.stamp;
  EXPECT_TRUE(run_until([&] { return world.records[Record::Held].empty(); }));
}

TEST_F(FenceTest, AReservationTakenForAMountThatTimedOutIsGivenBackWhenItFails) {
  world.mount_error = Error{Errc::TimedOut, "no answer within 120 s", ""};
  start();
  ASSERT_TRUE(run_until([&] { return world.count("mount rw") > 1; }));
  EXPECT_EQ(holder(), FakeWorld::kHostId);
  world.mount_error = Error{Errc::Refused, "host 'spark2' has it open (MMP)", ""};
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_EQ(holder(), "");
}

// The operator was not asked, or agreed to something else.
TEST_F(FenceTest, TakeOfAVolumeWhoseMountHasJustGoneTakesNothingFromItsNewHolder) {
  timings.probe = timings.watch = std::chrono::hours(1);
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.mounts.clear();
  let_another_host_hold_it();
  ASSERT_EQ(volume->status().state, State::Ready) << "no probe has run since";
  for (const auto what : {Requests::Take::Over, Requests::Take::IfHere}) {
    const auto taken = take(what);
    ASSERT_FALSE(taken) << *taken;
    EXPECT_EQ(taken.error().kind, Errc::Unavailable);
    EXPECT_THAT(taken.error().message(), HasSubstr("is not mounted here any more"));
    EXPECT_EQ(holder(), kOther);
  }
}

TEST_F(FenceTest, ASecondTakeThatFailsWithTheFirstTakesNothingOverLater) {
  target->options.keep_alive = std::chrono::seconds(0);
  let_another_host_hold_it();
  start();
  ASSERT_TRUE(becomes(State::Refused));
  std::optional<Result<std::string>> second;
  auto ask = [&]() -> boost::asio::awaitable<void> {
    second = co_await volume->requests().take(Requests::Take::Over);
  };
  world.mount_error = Error{Errc::Failed, "no memory", ""};
  world.while_mounting = [&] {
    boost::asio::co_spawn(context, ask(), boost::asio::detached);
    let_another_host_hold_it();
    world.while_mounting = [] {};
  };
  EXPECT_FALSE(take());
  ASSERT_TRUE(run_until([&] { return second.has_value(); }));
  EXPECT_FALSE(*second);
  world.mount_error.reset();
  const auto looks = world.count("superblock");
  ASSERT_TRUE(run_until([&] { return world.count("superblock") > looks + 5; }));
  EXPECT_EQ(holder(), kOther);
  EXPECT_EQ(world.count("mount rw"), 1);
}

// No answer tells nothing about another host.
TEST_F(FenceTest, TakeOfAReadyVolumeWhoseTargetDoesNotAnswerIsNotSaidToBeDone) {
  timings.probe = std::chrono::hours(1);
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.silent_probes = 100;
  const auto taken = take();
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().kind, Errc::Unavailable);
  EXPECT_THAT(taken.error().message(),
              HasSubstr("whether another host has taken volume datasets over is not known"));
}

}  // namespace
}  // namespace spark::volumes
